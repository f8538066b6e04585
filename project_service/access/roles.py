"""The role of a caller in a project or group, cached for the rest of the request."""

from __future__ import annotations

from collections.abc import Sequence

from flask import g, has_request_context

from project_service.access import identity
from project_service.access.identity import Caller
from project_service.domain import projects
from project_service.domain.access_levels import Role
from project_service.domain.memberships import find_project_and_role, role_in, roles_in_groups
from project_service.domain.namespaces import Group, Namespace
from project_service.domain.project_access import ProjectAccess
from project_service.domain.projects import Project
from project_service.kit.http.errors import NotFound


def role_of(caller: Caller, subject: Project | ProjectAccess | Namespace) -> Role:
    """The effective role, cached per request; an administrator is an owner everywhere."""
    if caller.user_id is None:
        return Role.NONE
    if caller.admin:
        return Role.OWNER
    if isinstance(subject, ProjectAccess):
        return subject.role
    known_roles = _known_roles()
    key = (caller.user_id, isinstance(subject, Project), subject.id)
    if key not in known_roles:
        known_roles[key] = role_in(caller.user_id, subject)
    return known_roles[key]


def find_project(text: str) -> Project:
    """A project, found together with the caller's role in it."""
    caller = identity.caller()
    if caller.user_id is None or caller.admin:
        return projects.find_project(text)
    project, role = find_project_and_role(caller.user_id, text)
    _known_roles()[caller.user_id, True, project.id] = role
    return project


def find_project_access(text: str) -> ProjectAccess:
    """What permission checks need of a project, with the caller's role in it; ``NotFound`` without the project."""
    project = identity.project_of(identity.caller(), text)
    if project is None:
        raise NotFound("Project")
    return project


def load_roles(caller: Caller, groups: Sequence[Group]) -> None:
    """Load the roles in several groups with one statement, before rules are checked for each."""
    if caller.user_id is not None and not caller.admin:
        roles = roles_in_groups(caller.user_id, [group.id for group in groups])
        _known_roles().update({(caller.user_id, False, number): role for number, role in roles.items()})


def _known_roles() -> dict[tuple[int, bool, int], Role]:
    known_roles: dict[tuple[int, bool, int], Role] = g.setdefault("roles", {}) if has_request_context() else {}
    return known_roles


def forget_roles() -> None:
    """Drop the cached roles after a membership was changed in the same request."""
    g.pop("roles", None)
