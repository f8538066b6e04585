"""The forms of CI/CD variables."""

from __future__ import annotations

import re
from typing import Any

from wtforms import BooleanField, SelectField, StringField, TextAreaField

from project_service.areas.variables.models import ENV_VAR, FILE
from project_service.kit.http.errors import ServiceError
from project_service.kit.http.forms import Form

INVALID = "is invalid"  # what the API says of a value that cannot be masked
MIN_MASKED_LENGTH = 8
MAX_NAMED_CHARACTERS = 3
CHARACTER_NAMES = {" ": "the space", "\n": "the line break", "\r": "the line break", "\t": "the tab"}
UNMASKABLE = {False: re.compile(r"[^a-zA-Z0-9_+=/@:.~-]"), True: re.compile(r"\s")}  # by whether the value is raw


def broken_mask_rules(value: str, *, raw: bool) -> str:
    """Say which rules keep a value from being masked; empty if it can be masked (variables reference, section 9)."""
    broken = []
    if len(value) < MIN_MASKED_LENGTH:
        broken.append(f"must be at least {MIN_MASKED_LENGTH} characters to be masked")
    names = dict.fromkeys(
        CHARACTER_NAMES.get(character, f"“{character}”") for character in UNMASKABLE[raw].findall(value)
    )
    if names:
        named = ", ".join(list(names)[:MAX_NAMED_CHARACTERS])
        more = " and others are" if len(names) > MAX_NAMED_CHARACTERS else " are" if len(names) > 1 else " is"
        broken.append(f"{named}{more} not allowed in a masked value")
    return "; ".join(broken)


class VariableFields(Form):
    """What the forms of all variables have."""

    key = StringField("Key", description="Letters, digits and “_”.", render_kw={"autocomplete": "off"})
    value = TextAreaField("Value", render_kw={"autocomplete": "off", "spellcheck": "false", "rows": 3})
    variable_type = SelectField("Type", choices={ENV_VAR: "Variable", FILE: "File"})
    protected = BooleanField("Protect variable", description="Only for jobs on protected branches and tags.")
    raw = BooleanField("Raw value", description="“$” has no meaning in it.")
    description = StringField("Description")

    def refuse(self, error: ServiceError) -> None:
        """Add the messages of an error to their fields; at the value, the rules of masking that it breaks."""
        super().refuse(error)
        broken = broken_mask_rules(self.value.data or "", raw=self.raw.data)
        self.value.errors = [broken if text == INVALID and broken else text for text in self.value.errors]

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
