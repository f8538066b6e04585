"""The form of a protected tag."""

from __future__ import annotations

from typing import Any

from wtforms import SelectField, StringField

from project_service.domain.access_levels import Role
from project_service.domain.repositories.protected_names import LEVELS
from project_service.kit.http.forms import Form

LEVEL_TEXTS: dict[Any, str] = {int(level): text for level, text in reversed(LEVELS.items())}


class ProtectedTagForm(Form):
    """A tag name or wildcard to protect."""

    name = StringField(
        "Tag", description="A name, or a wildcard such as v* or *-release.", render_kw={"autocomplete": "off"}
    )
    create_access_level = SelectField(
        "Allowed to create",
        choices=LEVEL_TEXTS,
        default=int(Role.MAINTAINER),
        coerce=int,
    )
