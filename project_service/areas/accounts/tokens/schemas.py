"""Schemas of access tokens (supporting resources reference, sections 2 to 4)."""

from __future__ import annotations

from project_service.domain.access_levels import MEMBER_ROLES, Role
from project_service.domain.accounts.tokens import RESOURCE_SCOPES, SCOPES
from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema


class TokenSchema(Schema):
    """A personal access token, without its secret."""

    id = fields.Integer()
    name = fields.String()
    description = fields.String()
    revoked = fields.Boolean()
    created_at = fields.Moment()
    scopes = fields.Array(fields.String())
    user_id = fields.Integer()
    last_used_at = fields.Moment()
    active = fields.Boolean()
    expires_at = fields.Day()


class NewTokenSchema(TokenSchema):
    """A new personal access token with its secret, which is shown only once."""

    token = fields.String()


class TokenCreateSchema(Schema):
    """A new personal access token."""

    name = fields.String(required=True)
    description = fields.String()
    expires_at = fields.Date()
    scopes = fields.Array(fields.String(choices=SCOPES), required=True)


class ResourceTokenSchema(TokenSchema):
    """An access token of a project or group, with the role of its bot."""

    access_level = fields.Integer()


class NewResourceTokenSchema(ResourceTokenSchema):
    """A new access token of a project or group with its secret, which is shown only once."""

    token = fields.String()


class ResourceTokenCreateSchema(Schema):
    """A new access token of a project or group."""

    name = fields.String(required=True)
    description = fields.String()
    scopes = fields.Array(fields.String(choices=RESOURCE_SCOPES), required=True)
    access_level = fields.Integer(default=int(Role.MAINTAINER), choices=MEMBER_ROLES)
    expires_at = fields.Date()


class TokenRotateSchema(Schema):
    """Expiry of the new token."""

    expires_at = fields.Date()


class ResourceTokenFilterSchema(Schema):
    """Filters and order of the list of the tokens of a project or group."""

    revoked = fields.Boolean()
    state = fields.String(choices=("active", "inactive"))
    created_after = fields.DateTime()
    created_before = fields.DateTime()
    last_used_after = fields.DateTime()
    last_used_before = fields.DateTime()
    expires_after = fields.Date()
    expires_before = fields.Date()
    search = fields.String()
    sort = fields.String(
        choices=(
            "created_asc",
            "created_desc",
            "expires_asc",
            "expires_desc",
            "last_used_asc",
            "last_used_desc",
            "name_asc",
            "name_desc",
        )
    )


class TokenFilterSchema(ResourceTokenFilterSchema):
    """Filters and order of the list of personal access tokens."""

    user_id = fields.Integer(allow_blank=True)
