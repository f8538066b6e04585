"""Forms of the members pages."""

from __future__ import annotations

from typing import Any

from wtforms import DateField, PasswordField, SelectField, StringField
from wtforms.validators import DataRequired, Optional

from project_service.domain.access_levels import MEMBER_ROLES, Role
from project_service.kit.http.forms import Form

# the owner role of a project is only inherited and cannot be assigned there (supporting resources reference, section 7)
ASSIGNABLE_ROLES: dict[str, dict[Any, str]] = {
    "group": {int(role): role.title for role in MEMBER_ROLES},
    "project": {int(role): role.title for role in MEMBER_ROLES if role < Role.OWNER},
}


# what a role may do, for the page: each may do what those before it may (access/abilities.py)
ROLE_TEXTS: dict[Role, str] = {
    Role.GUEST: "Reads issues and comments, and creates issues.",
    Role.REPORTER: "Reads code and errors, edits issues and labels, and sees confidential issues.",
    Role.DEVELOPER: "Pushes code, handles alerts, errors and security findings, and plans milestones.",
    Role.MAINTAINER: "Changes settings, members, variables, protected branches, integrations and web hooks; exports.",
    Role.OWNER: "Moves, archives and deletes; administers the group, its members and its audit events.",
}


class ImportMembersForm(Form):
    """The project whose members are added."""

    source = StringField(
        "Project",
        [DataRequired("can't be blank")],
        render_kw={"placeholder": "group/project", "autocomplete": "off", "autocapitalize": "off"},
        description="You have to be a maintainer of it, too. Members get the roles that they have there.",
    )


class InvitedUserForm(Form):
    """The account of a person who was invited; the e-mail address is that of the invitation."""

    name = StringField("Full name", [DataRequired("can't be blank")], render_kw={"autocomplete": "name"})
    username = StringField(
        "Username",
        [DataRequired("can't be blank")],
        render_kw={"autocomplete": "username", "autocapitalize": "off"},
        description="Others see and mention you by it.",
    )
    password = PasswordField(
        "Password",
        [DataRequired("can't be blank")],
        description="At least 8 characters.",
        render_kw={"autocomplete": "new-password"},
    )


class MemberForm(Form):
    """A new member."""

    username = StringField(
        "Username or e-mail",
        render_kw={"autocomplete": "off", "autocapitalize": "off"},
        description="People without an account get an invitation by mail.",
    )
    access_level = SelectField("Role", coerce=int)
    expires_at = DateField("Access expiration date", [Optional()], description="Empty: never.")


class RoleForm(Form):
    """Change the role or the expiry date of a member."""

    access_level = SelectField("Role", coerce=int)
    expires_at = DateField("Access expiration date", [Optional()], description="Empty: never.")
