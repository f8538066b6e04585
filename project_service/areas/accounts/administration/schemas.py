"""Schemas of users (supporting resources reference, sections 2 and 3)."""

from __future__ import annotations

from typing import Any

from markupsafe import escape

from project_service.domain.accounts.users import User
from project_service.domain.schemas import UserBasicSchema
from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema


def _identities(user: User) -> list[dict[str, Any]]:
    if not user.provider:
        return []
    return [{"provider": user.provider, "extern_uid": user.extern_uid}]


def _work_information(user: User) -> str | None:
    return " at ".join(part for part in (user.job_title, user.organization) if part) or None


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
    pronouns = fields.String()
    discord = fields.String()
    github = fields.String()
    bot = fields.Boolean(attribute="is_bot")
    work_information = fields.Computed(_work_information)
    followers = fields.Constant(0)
    following = fields.Constant(0)
    is_followed = fields.Constant(False)
    local_time = fields.Constant(None)


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

    avatar = fields.Picture()
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
    pronouns = fields.String()
    discord = fields.String()
    github = fields.String()
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
