"""The form of an environment."""

from __future__ import annotations

from wtforms import StringField

from project_service.kit.http.forms import Form


class EnvironmentForm(Form):
    """Create or edit an environment."""

    name = StringField(
        "Name", description="Alerts name it in gitlab_environment_name.", render_kw={"autocomplete": "off"}
    )
    external_url = StringField("External URL", render_kw={"inputmode": "url"})
