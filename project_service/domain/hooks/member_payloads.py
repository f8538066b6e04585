"""Memberships as web hooks are notified of them (webhooks reference, section 13.7)."""

from __future__ import annotations

from typing import Any

from project_service.domain.access_levels import Role, Visibility
from project_service.domain.hooks import hook_events
from project_service.domain.hooks.hook_payloads import email_of, iso_seconds
from project_service.domain.memberships import Membership
from project_service.domain.namespaces import Namespace
from project_service.domain.projects import Project

ADDED, UPDATED, REMOVED = "add_to", "update_for", "remove_from"
OF_GROUP, OF_PROJECT = "member_events", "project_member_events"


def announce_member(subject: Any, membership: Membership, change: str) -> None:
    """Announce that a member was added, changed or removed: hooks of groups hear of members of groups only."""
    if isinstance(subject, Project):
        hook_events.announce(OF_PROJECT, subject, lambda: _of_project(subject, membership, change))
    else:
        hook_events.announce_in_group(OF_GROUP, subject, lambda: _of_group(subject, membership, change))


def _of_project(project: Project, membership: Membership, change: str) -> dict[str, Any]:
    return {
        **_times(membership),
        "project_name": project.name,
        "project_path": project.path,
        "project_path_with_namespace": project.full_path,
        "project_id": project.id,
        **_user(membership),
        "access_level": Role(membership.access_level).title,
        "project_visibility": Visibility(project.visibility).text,
        "event_name": f"user_{change}_team",
    }


def _of_group(group: Namespace, membership: Membership, change: str) -> dict[str, Any]:
    expires_at = membership.expires_at
    return {
        **_times(membership),
        "group_name": group.name,
        "group_path": group.path,
        "group_id": group.id,
        **_user(membership),
        "group_access": Role(membership.access_level).title,
        "group_plan": None,
        "expires_at": None if expires_at is None else f"{expires_at.isoformat()}T00:00:00Z",
        "event_name": f"user_{change}_group",
    }


def _times(membership: Membership) -> dict[str, Any]:
    return {"created_at": iso_seconds(membership.created_at), "updated_at": iso_seconds(membership.updated_at)}


def _user(membership: Membership) -> dict[str, Any]:
    user = membership.user
    return {"user_username": user.username, "user_name": user.name, "user_email": email_of(user), "user_id": user.id}
