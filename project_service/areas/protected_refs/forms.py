"""Forms of protected tags and branches; both are on one page, so that the names of their fields differ."""

from __future__ import annotations

from typing import Any

from wtforms import BooleanField, SelectField, StringField

from project_service.domain.access_levels import Role
from project_service.domain.repositories.protected_refs import LEVEL_TEXTS
from project_service.kit.http.forms import Form

CHOICES: dict[Any, str] = {int(level): text for level, text in reversed(LEVEL_TEXTS.items())}


class ProtectedTagForm(Form):
    """A tag name or wildcard to protect."""

    name = StringField(
        "Tag", description="A name, or a wildcard such as v* or *-release.", render_kw={"autocomplete": "off"}
    )
    create_access_level = SelectField("Allowed to create", choices=CHOICES, default=int(Role.MAINTAINER), coerce=int)


class ProtectedBranchForm(Form):
    """A branch name or wildcard to protect."""

    branch = StringField(
        "Branch", description="A name, or a wildcard such as release/* or *-stable.", render_kw={"autocomplete": "off"}
    )
    push_access_level = SelectField("Allowed to push", choices=CHOICES, default=int(Role.MAINTAINER), coerce=int)
    merge_access_level = SelectField("Allowed to merge", choices=CHOICES, default=int(Role.MAINTAINER), coerce=int)
    allow_force_push = BooleanField("Allow force push", description="For those who are allowed to push.")
