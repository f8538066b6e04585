"""The forms of CI/CD variables."""

from __future__ import annotations

from typing import Any

from wtforms import BooleanField, SelectField, StringField, TextAreaField

from project_service.areas.variables.models import ENV_VAR, FILE
from project_service.kit.http.forms import Form


class VariableFields(Form):
    """What the forms of all variables have."""

    key = StringField("Key", description="Letters, digits and “_”.", render_kw={"autocomplete": "off"})
    value = TextAreaField("Value", render_kw={"autocomplete": "off", "spellcheck": "false", "rows": 3})
    variable_type = SelectField("Type", choices={ENV_VAR: "Variable", FILE: "File"})
    protected = BooleanField("Protect variable", description="Only for jobs on protected branches and tags.")
    raw = BooleanField("Raw value", description="“$” has no meaning in it.")
    description = StringField("Description")

    def fields(self) -> dict[str, Any]:
        """Return what a service takes; the key is not among it."""
        fields = {name: data for name, data in self.data.items() if name not in ("csrf_token", "key")}
        return fields | {"description": self.description.data or None}


class InstanceVariableForm(VariableFields):
    """Create or edit a variable of the instance, which has no scope and cannot be hidden."""

    masked = BooleanField("Mask variable", description="Hidden in job logs; needs at least 8 fitting characters.")


class VariableForm(InstanceVariableForm):
    """Edit a variable of a project or group."""

    environment_scope = StringField("Environment scope", default="*", description="“*” stands for any text.")


class NewVariableForm(VariableForm):
    """Create a variable of a project or group."""

    masked_and_hidden = BooleanField(
        "Mask and hide variable", description="Masked, and never shown again, here or by the API. This is final."
    )


class HiddenVariableForm(VariableFields):
    """Edit a hidden variable, which stays masked and hidden."""

    environment_scope = StringField("Environment scope", default="*", description="“*” stands for any text.")
