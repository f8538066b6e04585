"""Schemas of users and personal access tokens (supporting resources, sections 2 to 4)."""

from __future__ import annotations

from typing import Any

from markupsafe import escape

from project_service.domain.access_levels import MEMBER_ROLES, Role
from project_service.domain.schemas import UserBasicSchema
from project_service.domain.tokens import RESOURCE_SCOPES, SCOPES
from project_service.domain.users import User
from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema


def _identities(user: User) -> list[dict[str, Any]]:
    if not user.provider:
        return []
    return [{"provider": user.provider, "extern_uid": user.extern_uid}]


class UserSchema(UserBasicSchema):
    """A user as shown to other users."""

    created_at = fields.Moment()
    bio = fields.String()
    bio_html = fields.Computed(lambda user: f"<p>{escape(user.bio)}</p>" if user.bio else "")
    location = fields.String()
    public_email = fields.String()
    skype = fields.String()
    linkedin = fields.String()
    twitter = fields.String()
    website_url = fields.String()
    organization = fields.String()
    job_title = fields.String()


class UserPublicSchema(UserSchema):
    """A user as shown to themselves."""

    last_sign_in_at = fields.Moment()
    confirmed_at = fields.Moment()
    last_activity_on = fields.Day()
    email = fields.String()
    theme_id = fields.Integer()
    color_scheme_id = fields.Integer()
    projects_limit = fields.Integer()
    current_sign_in_at = fields.Moment()
    identities = fields.Computed(_identities, type="array", metadata={"items": {"type": "object"}})
    can_create_group = fields.Boolean()
    can_create_project = fields.Computed(lambda user: user.projects_limit > 0, type="boolean")
    two_factor_enabled = fields.Boolean()
    external = fields.Boolean()
    private_profile = fields.Boolean()


class UserAdminSchema(UserPublicSchema):
    """A user as shown to administrators, in lists."""

    is_admin = fields.Boolean(attribute="admin")
    note = fields.String()
    namespace_id = fields.Integer()


class UserDetailsSchema(UserAdminSchema):
    """A user as shown to administrators, in full."""

    current_sign_in_ip = fields.String()
    last_sign_in_ip = fields.String()
    sign_in_count = fields.Integer()


class UserFilterSchema(Schema):
    """Filters and order of the list of users."""

    all_or_none = ("extern_uid", "provider")

    username = fields.String()
    search = fields.String()
    active = fields.Boolean(default=False)
    blocked = fields.Boolean(default=False)
    external = fields.Boolean(default=False)
    exclude_internal = fields.Boolean(default=False)
    humans = fields.Boolean(default=False)
    exclude_humans = fields.Boolean(default=False)
    without_project_bots = fields.Boolean(default=False)
    extern_uid = fields.String()
    provider = fields.String()
    created_after = fields.DateTime()
    created_before = fields.DateTime()
    order_by = fields.String(default="id", choices=("id", "name", "username", "created_at", "updated_at"))
    sort = fields.String(default="desc", choices=("asc", "desc"))
    two_factor = fields.String(choices=("enabled", "disabled"))
    without_projects = fields.Boolean(default=False)


class UserUpdateSchema(Schema):
    """Changes of a user."""

    all_or_none = ("extern_uid", "provider")

    email = fields.String()
    name = fields.String()
    username = fields.String()
    password = fields.String()
    skip_confirmation = fields.Boolean(default=False)
    admin = fields.Boolean()
    can_create_group = fields.Boolean()
    external = fields.Boolean()
    private_profile = fields.Boolean()
    projects_limit = fields.Integer()
    bio = fields.String()
    location = fields.String()
    public_email = fields.String()
    organization = fields.String()
    job_title = fields.String()
    note = fields.String()
    skype = fields.String()
    linkedin = fields.String()
    twitter = fields.String()
    website_url = fields.String()
    extern_uid = fields.String()
    provider = fields.String()
    theme_id = fields.Integer()
    color_scheme_id = fields.Integer()


class UserCreateSchema(UserUpdateSchema):
    """A new user."""

    at_least_one = ("password", "reset_password")
    counts_too = ("force_random_password",)

    email = fields.String(required=True)
    name = fields.String(required=True)
    username = fields.String(required=True)
    reset_password = fields.Boolean()
    force_random_password = fields.Boolean()


class UserDeleteSchema(Schema):
    """Options for deleting a user."""

    hard_delete = fields.Boolean(default=False)


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
