"""Forms of the members pages."""

from __future__ import annotations

from typing import Any

from wtforms import DateField, SelectField, StringField
from wtforms.validators import Optional

from project_service.domain.access_levels import MEMBER_ROLES, Role
from project_service.kit.http.forms import Form

# the owner role of a project is only inherited and cannot be assigned there (supporting resources reference, section 7)
ASSIGNABLE_ROLES: dict[str, dict[Any, str]] = {
    "group": {int(role): role.title for role in MEMBER_ROLES},
    "project": {int(role): role.title for role in MEMBER_ROLES if role < Role.OWNER},
}


class MemberForm(Form):
    """A new member."""

    username = StringField("Username", render_kw={"autocomplete": "off"})
    access_level = SelectField("Role", coerce=int)
    expires_at = DateField("Access expiration date", [Optional()], description="Empty: never.")


class RoleForm(Form):
    """Change the role or the expiry date of a member."""

    access_level = SelectField("Role", coerce=int)
    expires_at = DateField("Access expiration date", [Optional()], description="Empty: never.")
