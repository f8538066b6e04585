"""The form of a CI/CD variable."""

from __future__ import annotations

from wtforms import BooleanField, SelectField, StringField, TextAreaField

from project_service.areas.variables.models import ENV_VAR, FILE
from project_service.kit.http.forms import Form


class VariableForm(Form):
    """Create or edit a variable."""

    key = StringField("Key", description="Letters, digits and “_”.", render_kw={"autocomplete": "off"})
    value = TextAreaField("Value", render_kw={"autocomplete": "off", "spellcheck": "false", "rows": 3})
    variable_type = SelectField("Type", choices={ENV_VAR: "Variable", FILE: "File"})
    environment_scope = StringField("Environment scope", default="*", description="“*” stands for any text.")
    protected = BooleanField("Protect variable", description="Only for jobs on protected branches and tags.")
    masked = BooleanField("Mask variable", description="Hidden in job logs; needs at least 8 fitting characters.")
    raw = BooleanField("Raw value", description="“$” has no meaning in it.")
    description = StringField("Description")
