"""Projects, groups and users as web hooks are notified of them (webhooks reference, sections 13.7 and 14).

Hooks of groups hear of projects and subgroups that are created or removed; system hooks of everything here.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from project_service.domain.access_levels import Role, Visibility
from project_service.domain.accounts.users import User
from project_service.domain.hooks import hook_events
from project_service.domain.hooks.hook_payloads import email_of, iso_seconds
from project_service.domain.memberships import Membership
from project_service.domain.namespaces import Namespace
from project_service.domain.projects import Project
from project_service.kit.db.session import db

OF_PROJECTS, OF_SUBGROUPS = "project_events", "subgroup_events"
OF_INSTANCE = "instance_events"  # no flag of hooks: only system hooks are told
CREATED, REMOVED, RENAMED, TRANSFERRED, UPDATED = "create", "destroy", "rename", "transfer", "update"


def announce_project(project: Project, change: str, former_path: str | None = None) -> None:
    """Announce that a project was created, removed, renamed, transferred or updated."""
    flag = OF_PROJECTS if change in (CREATED, REMOVED) else OF_INSTANCE
    hook_events.announce(
        flag,
        project,
        lambda: _of_project(project, change, former_path),
        system_payload=lambda: _of_project(project, change, former_path) | _owner(project),
    )


def announce_group(group: Namespace, change: str) -> None:
    """Announce that a group was created or removed."""
    parent = db.session.get(Namespace, group.parent_id) if group.parent_id is not None else None
    if parent is None:
        hook_events.announce_to_instance(OF_INSTANCE, lambda: _of_top_level_group(group, change))
    else:
        hook_events.announce_in_group(OF_SUBGROUPS, parent, lambda: _of_subgroup(group, parent, change))


def announce_user(user: User, change: str, former_username: str | None = None) -> None:
    """Announce that a user was created, removed or renamed."""
    hook_events.announce_to_instance(OF_INSTANCE, lambda: _of_user(user, change, former_username))


def _of_project(project: Project, change: str, former_path: str | None) -> dict[str, Any]:
    owners = [{"name": user.name, "email": email_of(user)} for user in _owners(project)]
    former = {} if former_path is None else {"old_path_with_namespace": former_path}
    return {
        **_times(project),
        "event_name": f"project_{change}",
        "name": project.name,
        "path": project.path,
        "path_with_namespace": project.full_path,
        "project_id": project.id,
        "project_namespace_id": project.namespace_id,
        "owners": owners,
        "project_visibility": Visibility(project.visibility).text,
        **former,
    }


def _owner(project: Project) -> dict[str, Any]:
    owner = project.namespace.owner
    if owner is None:
        return {"owner_name": project.namespace.name, "owner_email": ""}
    return {"owner_name": owner.name, "owner_email": email_of(owner)}


def _owners(project: Project) -> list[User]:
    if project.namespace.owner is not None:
        return [project.namespace.owner]
    owners = select(User).join(Membership, Membership.user_id == User.id)
    owners = owners.where(Membership.namespace_id == project.namespace_id, Membership.access_level == Role.OWNER)
    return list(db.session.scalars(owners.order_by(User.id)))


def _of_subgroup(group: Namespace, parent: Namespace, change: str) -> dict[str, Any]:
    return {
        **_of_group(group),
        "event_name": f"subgroup_{change}",
        "parent_group_id": parent.id,
        "parent_name": parent.name,
        "parent_path": parent.path,
        "parent_full_path": parent.full_path,
    }


def _of_top_level_group(group: Namespace, change: str) -> dict[str, Any]:
    return _of_group(group) | {"event_name": f"group_{change}"}


def _of_group(group: Namespace) -> dict[str, Any]:
    names = {"name": group.name, "path": group.path, "full_path": group.full_path, "group_id": group.id}
    return _times(group) | names


def _of_user(user: User, change: str, former_username: str | None) -> dict[str, Any]:
    former = {} if former_username is None else {"old_username": former_username}
    return {
        **_times(user),
        "event_name": f"user_{change}",
        "name": user.name,
        "email": email_of(user),
        "user_id": user.id,
        "username": user.username,
        **former,
    }


def _times(row: Any) -> dict[str, Any]:
    return {"created_at": iso_seconds(row.created_at), "updated_at": iso_seconds(row.updated_at)}
