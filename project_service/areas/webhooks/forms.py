"""The form of a web hook (webhooks reference, section 15)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wtforms import BooleanField, PasswordField, SelectField, StringField, TextAreaField

from project_service.areas.webhooks.models import WebHook
from project_service.kit.http.forms import Form

PUSHES = {"push_events": "Push events", "tag_push_events": "Tag push events"}
OF_PROJECTS = {
    **PUSHES,
    "issues_events": "Issue events",
    "confidential_issues_events": "Confidential issue events",
    "note_events": "Comments",
    "confidential_note_events": "Confidential comments",
    "milestone_events": "Milestone events",
    "alert_events": "Alert events",
    "error_events": "Error events",
    "vulnerability_events": "Vulnerability events",
    "releases_events": "Release events",
}
OF_GROUPS = {
    **OF_PROJECTS,
    "member_events": "Members of groups",
    "project_events": "Projects created or removed",
    "subgroup_events": "Subgroups created or removed",
}
STRATEGIES: dict[Any, str] = {
    "wildcard": "Branches of a wildcard, all if it is empty",
    "regex": "Branches of a regular expression",
    "all_branches": "All branches",
}
PLAIN = (
    *("url", "name", "description", "branch_filter_strategy", "push_events_branch_filter"),
    *("custom_webhook_template", "enable_ssl_verification"),
)
SECRETS = ("token", "signing_token")
SEPARATORS = {"url_variables": "=", "custom_headers": ":"}


class HookForm(Form):
    """A hook; an empty token keeps the stored one unless the URL changes.

    Variables and headers are lines of a name and a value; values are not shown, and a name alone keeps its value.
    """

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
    branch_filter_strategy = SelectField("Branches of push events", choices=STRATEGIES, default="wildcard")
    push_events_branch_filter = StringField("Wildcard or expression")
    url_variables = TextAreaField(
        "URL variables (optional)",
        description=(
            "Secret parts of the URL, which has {name} in their place: name=value, one in a line."
            " A name without = keeps its value, a removed line removes it."
        ),
    )
    custom_headers = TextAreaField(
        "Custom headers (optional)",
        description="Name: value, one in a line. A name alone keeps its value, a removed line removes it.",
    )
    custom_webhook_template = TextAreaField(
        "Custom template (optional)", description="JSON with placeholders such as {{project.id}}."
    )
    enable_ssl_verification = BooleanField("Verify TLS certificates", default=True)

    def fields(self, offered: Mapping[str, str]) -> dict[str, Any]:
        """Return what the service takes; ``offered`` are the events of the form."""
        values = {name: self[name].data for name in (*PLAIN, *offered)}
        values |= {name: self[name].data for name in SECRETS if self[name].data}
        for name in SEPARATORS:
            pairs = self.pairs(name)
            values[name] = [{"key": key, "value": value} for key, value in pairs.items() if value is not None]
        return values

    def pairs(self, name: str) -> dict[str, str | None]:
        """Return the pairs of a field by their names; ``None`` for a value that is to stay."""
        pairs: dict[str, str | None] = {}
        for line in (self[name].data or "").splitlines():
            key, separator, value = line.partition(SEPARATORS[name])
            if key.strip():
                pairs[key.strip()] = value.strip() if separator else None
        return pairs


for _name, _text in OF_GROUPS.items():
    setattr(HookForm, _name, BooleanField(_text, default=_name == "push_events"))


def form_of(hook: WebHook) -> HookForm:
    """Return the form of a stored hook, without its secrets."""
    values = {name: getattr(hook, name) for name in PLAIN}
    values |= {name: "\n".join(getattr(hook, name)) for name in SEPARATORS}
    return HookForm(formdata=None, data=values | {name: hook.enables(name) for name in OF_GROUPS})
