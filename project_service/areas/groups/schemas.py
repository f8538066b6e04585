"""Schemas of groups (supporting resources reference, section 5)."""

from __future__ import annotations

from typing import Any

from project_service.areas.groups import stored_settings
from project_service.domain.access_levels import VISIBILITIES, Visibility
from project_service.domain.namespaces import PLANS
from project_service.domain.schemas import GroupLinkSchema, ProjectSchema, namespace_url
from project_service.kit.http import fields
from project_service.kit.http.schemas import Embedded, Schema

CREATION_LEVELS = ("noone", "maintainer", "developer")
SHARE_LEVELS = (10, 20, 30, 40, 50)
SUBGROUP_LEVELS = ("owner", "maintainer")


def visibility_text(subject: Any) -> str:
    """Return the visibility of a group or project as the API names it."""
    return Visibility(subject.visibility).text


def _stored(name: str) -> fields.Computed:
    """A setting of a group that the service keeps without acting on it."""
    default = stored_settings.DEFAULTS[name]
    kind = "boolean" if isinstance(default, bool) else "string"
    return fields.Computed(lambda group: (group.attributes or {}).get(name, default), type=kind)


class GroupSchema(Schema):
    """A group in a list."""

    id = fields.Integer()
    web_url = fields.Computed(namespace_url)
    name = fields.String()
    path = fields.String()
    description = fields.String()
    visibility = fields.Computed(visibility_text)
    share_with_group_lock = fields.Boolean()
    require_two_factor_authentication = fields.Boolean()
    two_factor_grace_period = fields.Integer()
    project_creation_level = fields.String()
    auto_devops_enabled = fields.Boolean()
    subgroup_creation_level = fields.String()
    emails_disabled = fields.Boolean()
    mentions_disabled = fields.Boolean()
    lfs_enabled = fields.Boolean()
    default_branch_protection = fields.Integer()
    avatar_url = fields.OwnAddress()
    request_access_enabled = fields.Boolean()
    full_name = fields.String()
    full_path = fields.String()
    created_at = fields.Moment()
    parent_id = fields.Integer()
    default_branch = fields.String()
    default_branch_protection_defaults = fields.Computed(
        lambda group: stored_settings.protection_defaults(group.default_branch_protection), type="object"
    )
    emails_enabled = fields.Computed(lambda group: not group.emails_disabled, type="boolean")
    shared_runners_setting = _stored("shared_runners_setting")
    wiki_access_level = _stored("wiki_access_level")
    lock_duo_features_enabled = _stored("lock_duo_features_enabled")


class GroupDetailSchema(GroupSchema):
    """One group."""

    membership_lock = _stored("membership_lock")
    prevent_forking_outside_group = _stored("prevent_forking_outside_group")
    prevent_sharing_groups_outside_hierarchy = _stored("prevent_sharing_groups_outside_hierarchy")
    service_access_tokens_expiration_enforced = _stored("service_access_tokens_expiration_enforced")
    enabled_git_access_protocol = _stored("enabled_git_access_protocol")
    shared_with_groups = fields.Array(Embedded(GroupLinkSchema))
    projects = fields.Array(Embedded(ProjectSchema))
    shared_projects = fields.Array(Embedded(ProjectSchema))


class GroupFilterSchema(Schema):
    """Filters and order of the list of groups."""

    skip_groups = fields.Array(fields.Integer())
    all_available = fields.Boolean()
    search = fields.String()
    order_by = fields.String(default="name", choices=("name", "path", "id", "similarity"))
    sort = fields.String(default="asc", choices=("asc", "desc"))
    statistics = fields.Boolean(default=False)
    owned = fields.Boolean(default=False)
    min_access_level = fields.Integer(choices=(10, 20, 30, 40, 50))
    top_level_only = fields.Boolean()


class GroupShowSchema(Schema):
    """Options for showing a group."""

    with_projects = fields.Boolean(default=True)


class GroupUpdateSchema(Schema):
    """Changes of a group."""

    name = fields.String()
    path = fields.String()
    description = fields.String()
    visibility = fields.String(choices=VISIBILITIES)
    share_with_group_lock = fields.Boolean()
    require_two_factor_authentication = fields.Boolean()
    two_factor_grace_period = fields.Integer()
    project_creation_level = fields.String(choices=CREATION_LEVELS)
    auto_devops_enabled = fields.Boolean()
    subgroup_creation_level = fields.String(choices=SUBGROUP_LEVELS)
    emails_disabled = fields.Boolean()
    mentions_disabled = fields.Boolean()
    lfs_enabled = fields.Boolean()
    request_access_enabled = fields.Boolean()
    default_branch_protection = fields.Integer(choices=(0, 1, 2, 3, 4))
    default_branch = fields.String()
    default_branch_protection_defaults = fields.Hash()
    emails_enabled = fields.Boolean()
    shared_runners_setting = fields.String(choices=stored_settings.RUNNER_SETTINGS)
    wiki_access_level = fields.String(choices=stored_settings.CHOICES["wiki_access_level"])
    enabled_git_access_protocol = fields.String(choices=stored_settings.CHOICES["enabled_git_access_protocol"])
    lock_duo_features_enabled = fields.Boolean()
    membership_lock = fields.Boolean()
    prevent_forking_outside_group = fields.Boolean()
    prevent_sharing_groups_outside_hierarchy = fields.Boolean()
    service_access_tokens_expiration_enforced = fields.Boolean()
    plan = fields.String(choices=PLANS)
    trial = fields.Boolean()
    trial_ends_on = fields.Date()
    avatar = fields.Picture()


class GroupCreateSchema(GroupUpdateSchema):
    """A new group."""

    name = fields.String(required=True)
    path = fields.String(required=True)
    parent_id = fields.Integer()


class GroupIdentitySchema(Schema):
    """What a group is called."""

    id = fields.Integer()
    web_url = fields.Computed(namespace_url)
    name = fields.String()
    avatar_url = fields.OwnAddress()
    full_name = fields.String()
    full_path = fields.String()


class ProjectGroupsSchema(Schema):
    """Filters of the groups above a project."""

    search = fields.String()
    skip_groups = fields.Array(fields.Integer())
    with_shared = fields.Boolean(default=False)
    shared_visible_only = fields.Boolean(default=False)
    shared_min_access_level = fields.Integer(choices=SHARE_LEVELS)


class InvitedGroupsSchema(Schema):
    """Filters of the groups that a project or group is shared with."""

    relation = fields.Array(fields.String(choices=("direct", "inherited")))
    search = fields.String()
    min_access_level = fields.Integer(choices=SHARE_LEVELS)


class SharedGroupsSchema(Schema):
    """Filters of the groups that are shared with a group."""

    search = fields.String()
    skip_groups = fields.Array(fields.Integer())
    visibility = fields.String(choices=VISIBILITIES)
    min_access_level = fields.Integer(choices=SHARE_LEVELS)
