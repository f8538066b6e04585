"""Members as they travel (supporting resources, section 7)."""

from __future__ import annotations

from typing import ClassVar

from project_service.domain.schemas import user_url
from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema


def _of_user(name: str) -> fields.Computed:
    kind = "integer" if name == "id" else "string"
    return fields.Computed(lambda member: getattr(member.user, name), type=kind)


class MemberSchema(Schema):
    """Somebody with a role in a place; ``id`` is the user's."""

    id = _of_user("id")
    name = _of_user("name")
    username = _of_user("username")
    state = _of_user("state")
    avatar_url = _of_user("avatar_url")
    web_url = fields.Computed(lambda member: user_url(member.user))
    access_level = fields.Integer(attribute="level")
    created_at = fields.Moment()
    expires_at = fields.Day()
    membership_state = fields.Constant("active")


class MemberFilterSchema(Schema):
    """Which members to list."""

    query = fields.String()
    user_ids = fields.Array(fields.Integer())


class MemberCreateSchema(Schema):
    """A new member, or several."""

    exclusive = (("user_id", "username"),)
    alternatives: ClassVar[dict[str, str]] = {"user_id": "username"}

    user_id = fields.Array(
        fields.Integer(), required=True, metadata={"description": "One id, or several separated by commas."}
    )
    username = fields.String()
    access_level = fields.Integer(required=True)
    expires_at = fields.Date()


class MemberUpdateSchema(Schema):
    """What can be changed of a membership."""

    access_level = fields.Integer(required=True)
    expires_at = fields.Date()


class MemberDeleteSchema(Schema):
    """What else to remove with a membership."""

    skip_subresources = fields.Boolean(default=False)
    unassign_issuables = fields.Boolean(default=False)
