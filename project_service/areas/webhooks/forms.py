"""The form of a web hook (webhooks reference, section 15)."""

from __future__ import annotations

from typing import Any

from wtforms import BooleanField, PasswordField, SelectField, StringField, TextAreaField

from project_service.areas.webhooks.models import WebHook
from project_service.kit.http.forms import Form

OFFERED = {
    "push_events": "Push events",
    "tag_push_events": "Tag push events",
    "issues_events": "Issue events",
    "confidential_issues_events": "Confidential issue events",
    "note_events": "Comments",
    "confidential_note_events": "Confidential comments",
    "milestone_events": "Milestone events",
    "alert_events": "Alert events",
    "releases_events": "Release events",
}
STRATEGIES: dict[Any, str] = {
    "wildcard": "Branches of a wildcard, all if it is empty",
    "regex": "Branches of a regular expression",
    "all_branches": "All branches",
}


class HookForm(Form):
    """A hook; an empty token keeps the stored one unless the URL changes."""

    url = StringField("URL", description="Special characters must be percent-encoded.")
    name = StringField("Name (optional)")
    description = StringField("Description (optional)")
    token = PasswordField(
        "Secret token",
        description="Sent as X-Gitlab-Token. Empty: unchanged. It is cleared when the URL changes.",
        render_kw={"autocomplete": "new-password"},
    )
    signing_token = PasswordField(
        "Signing token",
        description="whsec_ and 32 bytes in Base64, for webhook-signature. Empty: unchanged.",
        render_kw={"autocomplete": "new-password"},
    )
    branch_filter_strategy = SelectField("Branches of push events", choices=STRATEGIES)
    push_events_branch_filter = StringField("Wildcard or expression")
    custom_webhook_template = TextAreaField(
        "Custom template (optional)", description="JSON with placeholders such as {{project.id}}."
    )
    enable_ssl_verification = BooleanField("Verify TLS certificates", default=True)
    push_events = BooleanField(OFFERED["push_events"], default=True)
    tag_push_events = BooleanField(OFFERED["tag_push_events"])
    issues_events = BooleanField(OFFERED["issues_events"])
    confidential_issues_events = BooleanField(OFFERED["confidential_issues_events"])
    note_events = BooleanField(OFFERED["note_events"])
    confidential_note_events = BooleanField(OFFERED["confidential_note_events"])
    milestone_events = BooleanField(OFFERED["milestone_events"])
    alert_events = BooleanField(OFFERED["alert_events"])
    releases_events = BooleanField(OFFERED["releases_events"])

    def fields(self) -> dict[str, Any]:
        """Return what the service takes."""
        secrets = ("token", "signing_token")
        values = {name: value for name, value in self.data.items() if name not in ("csrf_token", *secrets)}
        return values | {name: self[name].data for name in secrets if self[name].data}


def form_of(hook: WebHook) -> HookForm:
    """Return the form of a stored hook, without its tokens."""
    plain = (
        *("url", "name", "description", "branch_filter_strategy", "push_events_branch_filter"),
        *("custom_webhook_template", "enable_ssl_verification"),
    )
    values = {name: getattr(hook, name) for name in plain}
    return HookForm(formdata=None, data=values | {name: hook.enables(name) for name in OFFERED})
