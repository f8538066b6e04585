"""The form of a protected branch."""

from __future__ import annotations

from typing import Any

from wtforms import BooleanField, SelectField, StringField

from project_service.domain.access_levels import Role
from project_service.domain.repositories.protected_names import LEVELS
from project_service.kit.http.forms import Form

LEVEL_TEXTS: dict[Any, str] = {int(level): text for level, text in reversed(LEVELS.items())}


class ProtectedBranchForm(Form):
    """A branch name or wildcard to protect; the names of its fields differ from those of protected tags."""

    branch = StringField(
        "Branch", description="A name, or a wildcard such as release/* or *-stable.", render_kw={"autocomplete": "off"}
    )
    push_access_level = SelectField("Allowed to push", choices=LEVEL_TEXTS, default=int(Role.MAINTAINER), coerce=int)
    merge_access_level = SelectField("Allowed to merge", choices=LEVEL_TEXTS, default=int(Role.MAINTAINER), coerce=int)
    allow_force_push = BooleanField("Allow force push", description="For those who are allowed to push.")
