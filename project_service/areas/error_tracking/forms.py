"""The form of error-tracking settings."""

from __future__ import annotations

from wtforms import BooleanField, PasswordField, StringField

from project_service.kit.http.forms import Form


class ErrorTrackingForm(Form):
    """Edit the error-tracking settings of a project."""

    enabled = BooleanField("Enable error tracking")
    api_url = StringField(
        "Tracker API URL",
        description="https://HOST/api/0/projects/ORGANISATION/PROJECT",
        render_kw={"inputmode": "url", "autocomplete": "off"},
    )
    token = PasswordField(
        "Auth token",
        description="Kept encrypted and never shown. Empty keeps the stored one; another URL needs it again.",
        render_kw={"autocomplete": "new-password"},
    )
    organization_name = StringField("Organisation")
    project_name = StringField("Project name", description="Made from the URL when empty.")


class ErrorIssueForm(Form):
    """Link an existing issue to an error."""

    issue_iid = StringField("Issue number", render_kw={"inputmode": "numeric", "autocomplete": "off"})
