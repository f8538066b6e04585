"""Create, change, delete and share groups."""

from __future__ import annotations

import datetime as dt
from typing import Any, TypedDict, Unpack

from project_service.access import audit
from project_service.access.identity import Caller
from project_service.areas.groups import stored_settings
from project_service.domain import instance_settings, removal
from project_service.domain.access_levels import Role, Visibility
from project_service.domain.accounts.users import User
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.hooks.place_payloads import CREATED, REMOVED, announce_group
from project_service.domain.memberships import Membership, Share
from project_service.domain.namespaces import MAX_NAMESPACE_DEPTH, Group, change_plan
from project_service.domain.paths import path_registry, path_rules
from project_service.domain.repositories.refs import is_like_sha, is_valid_name
from project_service.kit import clock
from project_service.kit.db.locking import delete_locked
from project_service.kit.db.session import add_unique, db
from project_service.kit.http.errors import Conflict, Invalid, RecordNotFound

MAX_DESCRIPTION_LENGTH = 500
# derived from other columns, or noted by the service itself
UNAUDITED = ("kind", "attributes", "full_path", "full_name", "seats_in_use", "max_seats_used", "deleting_since")


class GroupFields(TypedDict, total=False):
    """What requests and forms set of a group, by the names of the API."""

    name: str | None
    path: str | None
    description: str | None
    visibility: str | None
    parent_id: int | None
    share_with_group_lock: bool | None
    require_two_factor_authentication: bool | None
    two_factor_grace_period: int | None
    project_creation_level: str | None
    subgroup_creation_level: str | None
    auto_devops_enabled: bool | None
    emails_disabled: bool | None
    mentions_disabled: bool | None
    lfs_enabled: bool | None
    request_access_enabled: bool | None
    default_branch_protection: int | None
    default_branch: str | None
    default_branch_protection_defaults: dict[str, Any] | None
    emails_enabled: bool | None
    shared_runners_setting: str | None
    wiki_access_level: str | None
    enabled_git_access_protocol: str | None
    lock_duo_features_enabled: bool | None
    membership_lock: bool | None
    prevent_forking_outside_group: bool | None
    prevent_sharing_groups_outside_hierarchy: bool | None
    service_access_tokens_expiration_enforced: bool | None
    plan: str | None
    trial: bool | None
    trial_ends_on: dt.date | None


def create_group(author: User, parent: Group | None, **requested: Unpack[GroupFields]) -> Group:
    """Create a group; the author becomes its owner."""
    fields: dict[str, Any] = {**requested}
    fields.pop("parent_id", None)
    visibility = fields.pop("visibility", None) or instance_settings.setting("default_group_visibility")
    stored_settings.set_views(fields, fields.get("default_branch_protection"))
    attributes = stored_settings.taken_from(fields, {})
    group = Group(**_without_nulls(fields), visibility=Visibility.of(visibility), attributes=attributes)
    _check(group, parent, new=True, chooser=author)
    path_registry.store_namespace(group, parent, Invalid(path=path_rules.TAKEN))
    db.session.add(
        Membership(user_id=author.id, namespace_id=group.id, access_level=Role.OWNER, created_by_id=author.id)
    )
    db.session.flush()
    audit.record("group_created", group, "Added group", add="group")
    announce_group(group, CREATED)
    return group


def update_group(requester: Caller, group: Group, **requested: Unpack[GroupFields]) -> Group:
    """Change a group; the full paths and names of everything below it are updated."""
    fields: dict[str, Any] = {**requested}
    visibility = fields.pop("visibility", None)
    former = _audited(group)
    stored_settings.set_views(fields, group.default_branch_protection)
    group.attributes = stored_settings.taken_from(fields, group.attributes or {})
    change_plan(group, **{name: fields.pop(name) for name in ("plan", "trial", "trial_ends_on") if name in fields})
    for name, value in _without_nulls(fields).items():
        setattr(group, name, value)
    old_visibility = group.visibility
    if visibility:
        group.visibility = Visibility.of(visibility)
    with db.session.no_autoflush:
        parent = db.session.get(Group, group.parent_id) if group.parent_id else None
        _check(group, parent, new=False, chooser=None if group.visibility == old_visibility else requester)
        full_path = f"{parent.full_path}/{group.path}" if parent else group.path
        if path_registry.path_taken(full_path, besides=group):
            raise Invalid(path=path_rules.TAKEN)
    path_registry.move_namespace(group, Invalid(path=path_rules.TAKEN))
    audit.record_changes("group", group, former, _audited(group))
    return group


def delete_group(group: Group) -> None:
    """Hide a group and everything below it, and enqueue the job that removes them."""
    audit.record("group_destroyed", group, "Group destroyed", remove="group")
    announce_group(group, REMOVED)
    path_registry.start_deleting_namespace(group)
    removal.remove_namespace.defer(group.id)


def share_group(group: Group, other: Group, *, group_access: int, expires_at: Any = None) -> Share:
    """Grant the members of another group access to this one, with at most the role ``group_access``."""
    if expires_at is not None and expires_at < clock.today():
        raise Invalid(expires_at="cannot be a date in the past")
    path_registry.lock_tree(other)
    share = Share(namespace_id=group.id, group_id=other.id, access_level=group_access, expires_at=expires_at)
    add_unique(share, Conflict("Group already shared with this group"))
    target, role = AuditTarget("Group", other.id, other.full_path), Role(group_access).title
    audit.record("group_share_with_group_link_created", group, f"Invited group as {role}", target=target)
    return share


def unshare_group(group: Group, other_id: int) -> None:
    """End a share."""
    share = db.session.query(Share).filter_by(namespace_id=group.id, group_id=other_id).one_or_none()
    if share is None:
        raise RecordNotFound
    delete_locked(share)
    target = AuditTarget("Group", other_id, db.session.get_one(Group, other_id).full_path)
    audit.record("group_share_with_group_link_removed", group, "Removed invited group", target=target)


def _audited(group: Group) -> dict[str, Any]:
    return audit.settings_of(group, UNAUDITED) | stored_settings.DEFAULTS | (group.attributes or {})


def _check(group: Group, parent: Group | None, *, new: bool, chooser: User | Caller | None) -> None:
    problems: dict[str, list[str]] = {}
    if texts := path_rules.group_name_problems(group.name or ""):
        problems["name"] = texts
    if texts := path_rules.namespace_path_problems(group.path or "", top_level=parent is None):
        problems["path"] = texts
    below = None if new else path_registry.visibility_problem_below(group)
    group.default_branch = (group.default_branch or "").strip() or None
    if group.default_branch and (is_like_sha(group.default_branch) or not is_valid_name(group.default_branch)):
        problems["default_branch_name"] = ["is invalid"]
    if len(group.description or "") > MAX_DESCRIPTION_LENGTH:
        problems["description"] = [f"is too long (maximum is {MAX_DESCRIPTION_LENGTH} characters)"]
    restricted = path_registry.restriction_problem(group.visibility, chooser.admin) if chooser else None
    if text := path_registry.visibility_problem(group.visibility, parent, "group") or below or restricted:
        problems["visibility_level"] = [text]
    if parent is not None and new and path_registry.is_too_deep(parent, MAX_NAMESPACE_DEPTH):
        problems["parent_id"] = ["has too deep level of nesting"]
    if problems:
        raise Invalid(**problems)


def _without_nulls(fields: dict[str, Any]) -> dict[str, Any]:
    nullable = {"default_branch", "description", "auto_devops_enabled", "emails_disabled", "mentions_disabled"}
    return {name: value for name, value in fields.items() if value is not None or name in nullable}
