"""Schemas of members (supporting resources reference, section 7)."""

from __future__ import annotations

from typing import ClassVar

from project_service.domain.accounts.user_pictures import picture_address
from project_service.domain.schemas import user_url
from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema


def _user_field(name: str) -> fields.Computed:
    kind = "integer" if name == "id" else "string"
    return fields.Computed(lambda member: getattr(member.user, name), type=kind)


class MemberSchema(Schema):
    """A member of a project or group; ``id`` is that of the user."""

    id = _user_field("id")
    name = _user_field("name")
    username = _user_field("username")
    state = _user_field("state")
    avatar_url = fields.Computed(lambda member: picture_address(member.user))
    web_url = fields.Computed(lambda member: user_url(member.user))
    access_level = fields.Integer(attribute="level")
    created_at = fields.Moment()
    expires_at = fields.Day()
    membership_state = fields.Constant("active")


class MemberFilterSchema(Schema):
    """Filters of the list of members."""

    query = fields.String()
    user_ids = fields.Array(fields.Integer())


class ProjectUsersSchema(Schema):
    """Filters of the users of a project."""

    search = fields.String()
    skip_users = fields.Array(fields.Integer())


class MemberCreateSchema(Schema):
    """One or several new members."""

    exclusive = (("user_id", "username"),)
    alternatives: ClassVar[dict[str, str]] = {"user_id": "username"}

    user_id = fields.Array(
        fields.Integer(), required=True, metadata={"description": "One id, or several separated by commas."}
    )
    username = fields.String()
    access_level = fields.Integer(required=True)
    expires_at = fields.Date()


class MemberUpdateSchema(Schema):
    """Changes of a membership."""

    access_level = fields.Integer(required=True)
    expires_at = fields.Date()


class MemberDeleteSchema(Schema):
    """Options for removing a membership."""

    skip_subresources = fields.Boolean(default=False)
    unassign_issuables = fields.Boolean(default=False)


class InvitationSchema(Schema):
    """An invitation by mail; the link that it was mailed with is never shown."""

    id = fields.Integer()
    invite_email = fields.String(attribute="email")
    created_at = fields.Moment()
    access_level = fields.Integer()
    expires_at = fields.Day()
    user_name = fields.Constant(None)
    created_by_name = fields.Computed(lambda invitation: invitation.created_by.name)


class InvitationFilterSchema(Schema):
    """Filters of the list of invitations."""

    query = fields.String(metadata={"description": "A part of the address."})


class InvitationCreateSchema(Schema):
    """Who is invited, and the role that they get."""

    at_least_one = ("email", "user_id")

    email = fields.Array(fields.String(), metadata={"description": "One address, or several separated by commas."})
    user_id = fields.Array(fields.Integer(), metadata={"description": "One id, or several separated by commas."})
    access_level = fields.Integer(required=True)
    expires_at = fields.Date()


class InvitationUpdateSchema(Schema):
    """Changes of an invitation."""

    at_least_one = ("access_level", "expires_at")

    access_level = fields.Integer()
    expires_at = fields.Date()


class InvitationResultSchema(Schema):
    """``success``, or ``error`` with the reasons by address or username."""

    status = fields.String()
    message = fields.ConditionalField(lambda done: "message" in done, lambda done: done["message"], type="object")
