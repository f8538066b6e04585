"""Forms of error-tracking settings."""

from __future__ import annotations

from wtforms import (
    BooleanField,
    HiddenField,
    IntegerField,
    PasswordField,
    RadioField,
    SelectField,
    StringField,
    TextAreaField,
)
from wtforms.validators import Optional

from project_service.areas.error_tracking.settings.service import MAX_RESOLVE_DAYS
from project_service.kit.http.forms import Form

INTEGRATED, SENTRY = "integrated", "sentry"


class ErrorTrackingForm(Form):
    """Edit the error-tracking settings of a project."""

    enabled = BooleanField("Enable error tracking")
    backend = RadioField(
        "Where errors are stored",
        choices={INTEGRATED: "This server", SENTRY: "A server of Sentry"},
    )
    api_url = StringField(
        "Tracker API URL",
        description="https://HOST/api/0/projects/ORGANISATION/PROJECT; https://HOST is enough to list projects.",
        render_kw={"inputmode": "url", "autocomplete": "off"},
    )
    token = PasswordField(
        "Auth token",
        description="Kept encrypted and never shown. Empty keeps the stored one; another URL needs it again.",
        render_kw={"autocomplete": "new-password"},
    )
    sealed_token = HiddenField()
    chosen = SelectField(
        "Project in Sentry",
        choices=(),
        validate_choice=False,
        description="Its address takes the place of the URL above.",
    )
    organization_name = StringField("Organisation")
    project_name = StringField("Project name", description="Made from the URL when empty.")
    store_addresses = BooleanField(
        "Store IP addresses",
        description="The address of who sent an event, where the SDK asks for it. Users are counted in any case.",
    )
    hidden_keys = TextAreaField(
        "Further keys to hide",
        description="One per line. Their values become [Filtered], like those of password or token.",
        render_kw={"rows": 3},
    )
    resolve_after_days = IntegerField(
        "Resolve after days without an event",
        [Optional()],
        description="0 never resolves by itself.",
        render_kw={"min": 0, "max": MAX_RESOLVE_DAYS},
    )


class ErrorIgnoreRuleForm(Form):
    """Add a rule for events that are not stored."""

    title = StringField(
        "Title", id="rule-title", description="Such as *ResizeObserver loop*", render_kw={"autocomplete": "off"}
    )
    release = StringField("Release", id="rule-release", description="Such as 1.*", render_kw={"autocomplete": "off"})
    environment = StringField(
        "Environment", id="rule-environment", description="Such as dev*", render_kw={"autocomplete": "off"}
    )
    file = StringField(
        "File", id="rule-file", description="Such as chrome-extension:*", render_kw={"autocomplete": "off"}
    )
