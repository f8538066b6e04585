"""The form of a protected tag."""

from __future__ import annotations

from wtforms import SelectField, StringField

from project_service.core.levels import Role
from project_service.kit.forms import Form
from project_service.protected_tags.schemas import LEVELS


class ProtectedTagForm(Form):
    """A tag name or wildcard to protect."""

    name = StringField(
        "Tag", description="A name, or a wildcard such as v* or *-release.", render_kw={"autocomplete": "off"}
    )
    create_access_level = SelectField(
        "Allowed to create",
        choices=[(int(level), text) for level, text in reversed(LEVELS.items())],
        default=int(Role.MAINTAINER),
        coerce=int,
    )
