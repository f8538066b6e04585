"""The rules that abilities are made of, each beside the condition of the lists that it filters.

A rule is a function of the caller and the subject. Views and services check abilities (``access/abilities.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, CompoundSelect, and_, or_, select, true

from project_service.access.identity import Caller
from project_service.access.roles import role_of
from project_service.domain import instance_settings
from project_service.domain.access_levels import Role, Visibility
from project_service.domain.accounts.users import User
from project_service.domain.memberships import authorized_namespaces, authorized_projects
from project_service.domain.namespaces import Group, Namespace, NamespaceAncestor
from project_service.domain.project_access import ProjectAccess
from project_service.domain.projects import DISABLED, ENABLED, PRIVATE, Project
from project_service.domain.tracker.issues import Issue, IssueAssignee
from project_service.domain.tracker.notes import Note
from project_service.kit.db.base import table_of
from project_service.kit.db.session import db

Rule = Callable[[Caller, Any], bool]

_issues, _assignees = table_of(Issue).c, table_of(IssueAssignee).c


def at_least(role: Role) -> Rule:
    """The caller has this role in the subject."""

    def rule(caller: Caller, subject: Project | ProjectAccess | Namespace) -> bool:
        return role_of(caller, subject) >= role

    return rule


def opened_to(caller: Caller, visibility: int) -> bool:
    """Whether a visibility needs no role: public, or internal for signed-in users who are not external."""
    if visibility == Visibility.INTERNAL:
        return caller.user_id is not None and not caller.external
    return visibility == Visibility.PUBLIC


def sees(caller: Caller, subject: Project | ProjectAccess | Namespace) -> bool:
    """The subject is visible to the caller by its visibility or by a role."""
    if opened_to(caller, subject.visibility) or caller.admin:
        return True
    return role_of(caller, subject) > Role.NONE or (isinstance(subject, Group) and _has_project_below(caller, subject))


def _has_project_below(caller: Caller, group: Group) -> bool:
    if caller.user_id is None:
        return False
    below = select(NamespaceAncestor.namespace_id).where(NamespaceAncestor.ancestor_id == group.id)
    inside = select(Project.id).where(
        Project.namespace_id.in_(below), Project.id.in_(authorized_projects(caller.user_id))
    )
    groups_inside = below.where(NamespaceAncestor.namespace_id.in_(authorized_namespaces(caller.user_id)))
    return db.session.scalar(inside.limit(1)) is not None or db.session.scalar(groups_inside.limit(1)) is not None


def visible_projects(caller: Caller) -> ColumnElement[bool]:
    """The condition for lists of projects: the condition of ``sees``."""
    if caller.admin:
        return true()
    public = Project.visibility == Visibility.PUBLIC
    if caller.user_id is None:
        return public
    own = Project.id.in_(authorized_projects(caller.user_id))
    return or_(public, own) if caller.external else or_(Project.visibility >= Visibility.INTERNAL, own)


def visible_groups(caller: Caller) -> ColumnElement[bool]:
    """The condition for lists of groups: the condition of ``sees``."""
    if caller.admin:
        return true()
    public = Group.visibility == Visibility.PUBLIC
    if caller.user_id is None:
        return public
    own = Group.id.in_(own_groups(caller.user_id))
    return or_(public, own) if caller.external else or_(Group.visibility >= Visibility.INTERNAL, own)


def own_groups(user_id: int) -> CompoundSelect[Any]:
    """The ids of the groups in which a user has a role, and of those above them or above projects of the user."""
    above_projects = select(NamespaceAncestor.ancestor_id).where(
        NamespaceAncestor.namespace_id.in_(
            select(Project.namespace_id).where(Project.id.in_(authorized_projects(user_id)))
        )
    )
    above_groups = select(NamespaceAncestor.ancestor_id).where(
        NamespaceAncestor.namespace_id.in_(authorized_namespaces(user_id))
    )
    return above_groups.union(above_projects)


def has(feature: str) -> Rule:
    """The feature is switched on, and for this caller: ``private`` ones are for members."""

    def rule(caller: Caller, project: Project) -> bool:
        level = getattr(project, f"{feature}_access_level")
        return level == ENABLED or (level == PRIVATE and role_of(caller, project) > Role.NONE)

    return rule


def has_from(feature: str, least: Role) -> Rule:
    """The feature is enabled, and the caller has at least a role unless project and feature are open."""

    def rule(caller: Caller, project: Project) -> bool:
        level = getattr(project, f"{feature}_access_level")
        if level == ENABLED and opened_to(caller, project.visibility):
            return True
        return level != DISABLED and role_of(caller, project) >= least

    return rule


def projects_with(caller: Caller, feature: str) -> ColumnElement[bool]:
    """The condition for lists of projects: the condition of ``has``."""
    level: ColumnElement[str] = getattr(Project, f"{feature}_access_level")
    if caller.admin:
        return level.in_((ENABLED, PRIVATE))
    if caller.user_id is None:
        return level == ENABLED
    return or_(
        level == ENABLED, and_(level == PRIVATE, Project.id.in_(authorized_projects(caller.user_id, Role.MINIMAL)))
    )


def projects_with_alerts(caller: Caller) -> ColumnElement[bool]:
    """The condition for lists of alerts of several projects: the condition of ``READ_ALERTS``."""
    return projects_of_role(caller, "monitor", Role.DEVELOPER)


def projects_of_role(caller: Caller, feature: str, least: Role) -> ColumnElement[bool]:
    """The condition for lists of projects: the conditions of ``at_least`` and ``has``."""
    level: ColumnElement[str] = getattr(Project, f"{feature}_access_level")
    is_on = level != DISABLED
    return is_on if caller.admin else and_(is_on, Project.id.in_(authorized_projects(caller.user_id or 0, least)))


def has_issues_or_merge_requests(caller: Caller, project: Project) -> bool:
    """Milestones and labels belong to either."""
    return has("issues")(caller, project) or has("merge_requests")(caller, project)


def builds_are_on(_caller: Caller, project: Project) -> bool:
    """CI/CD and the repository are switched on (common reference, section 7.2)."""
    return project.builds_access_level != DISABLED and project.repository_access_level != DISABLED


def is_internal_or_member(caller: Caller, project: Project | ProjectAccess) -> bool:
    """A user who is not external, or one with a role in the project."""
    return opened_to(caller, Visibility.INTERNAL) or role_of(caller, project) > Role.NONE


def is_not_archived(_caller: Caller, project: Project) -> bool:
    """The project is not archived."""
    return not project.archived


def is_loaded(_caller: Caller, project: Project) -> bool:
    """No archive is being imported into the project."""
    return not project.loading


def anybody(_caller: Caller, _subject: object) -> bool:
    """No condition."""
    return True


def is_signed_in(caller: Caller, _subject: object) -> bool:
    """The caller is signed in."""
    return caller.user_id is not None


def is_admin(caller: Caller, _subject: object) -> bool:
    """An administrator of the instance."""
    return caller.admin


def may_create_groups(caller: Caller, _subject: object) -> bool:
    """The account of the caller may create top-level groups."""
    from_account = select(User.can_create_group).where(User.id == caller.user_id)
    return caller.admin or bool(db.session.scalar(from_account))


def imports_are_on(_caller: Caller, _subject: object) -> bool:
    """Imports of archives are enabled (import reference, section 2)."""
    return instance_settings.ARCHIVES in instance_settings.setting("import_sources")


def may_create_subgroups(caller: Caller, group: Group) -> bool:
    """Owners, and maintainers if the group allows it."""
    needed = Role.OWNER if group.subgroup_creation_level == "owner" else Role.MAINTAINER
    return role_of(caller, group) >= needed


def may_create_projects(caller: Caller, namespace: Namespace) -> bool:
    """The owner of a personal namespace; in a group the roles that ``project_creation_level`` admits."""
    if not isinstance(namespace, Group):
        return role_of(caller, namespace) >= Role.OWNER
    if caller.admin:
        return True
    levels = {"noone": None, "maintainer": Role.MAINTAINER, "developer": Role.DEVELOPER}
    needed = levels[namespace.project_creation_level or "developer"]
    return needed is not None and role_of(caller, namespace) >= needed


def is_member(caller: Caller, namespace: Namespace) -> bool:
    """The caller has a role: public groups alone are not listed as namespaces (namespaces reference, section 4)."""
    return role_of(caller, namespace) > Role.NONE


def may_create_tag(caller: Caller, project: Project, levels: list[int]) -> bool:
    """Whether the caller may create a tag that these levels protect (protected tags reference, section 8).

    Without a level the tag is not protected, and everyone who may push may create it. One matching level is enough; 0
    matches no one, not even administrators.
    """
    role = role_of(caller, project)
    if not levels:
        return role >= Role.DEVELOPER
    return any(level != Role.NONE and role >= max(level, Role.DEVELOPER) for level in levels)


sees_confidential = at_least(Role.REPORTER)


def may_see_issue(caller: Caller, issue: Issue) -> bool:
    """A confidential issue is for reporters and above, its author and its assignees."""
    return not issue.confidential or sees_confidential(caller, issue.project) or _is_own(caller, issue)


def may_change_issue(caller: Caller, issue: Issue) -> bool:
    """Reporters and above, the author and the assignees."""
    return not issue.project.archived and (_is_own(caller, issue) or role_of(caller, issue.project) >= Role.REPORTER)


def _is_own(caller: Caller, issue: Issue) -> bool:
    own = (issue.author_id, *(user.id for user in issue.assignees))
    return caller.user_id is not None and caller.user_id in own


def may_comment(caller: Caller, issue: Issue) -> bool:
    """Everyone who sees the issue; only members if the discussion is locked."""
    return not issue.discussion_locked or role_of(caller, issue.project) > Role.NONE


def may_change_note(caller: Caller, note: Note) -> bool:
    """The author and maintainers; system notes cannot be changed."""
    own = note.author_id == caller.user_id and caller.user_id is not None
    return not note.system and (own or role_of(caller, note.project) >= Role.MAINTAINER)


def may_see_note(caller: Caller, note: Note) -> bool:
    """An internal note is visible to reporters and above; access to its issue or merge request is checked before."""
    return not note.confidential or sees_confidential(caller, note.project)


def visible_notes(caller: Caller, project: Project) -> ColumnElement[bool]:
    """The condition for lists of notes of a project: that of ``may_see_note``."""
    return true() if sees_confidential(caller, project) else Note.confidential.is_(False)


def visible_issues(caller: Caller, project: Project | ProjectAccess) -> ColumnElement[bool]:
    """The condition for lists of issues: that of ``may_see_issue``."""
    if sees_confidential(caller, project):
        return true()
    if caller.user_id is None:
        return _issues.confidential.is_(False)
    return or_(_issues.confidential.is_(False), _issues.id.in_(own_issues(caller.user_id)))


def own_issues(user_id: int) -> CompoundSelect[Any]:
    """The ids of the issues that a user wrote or is assigned to."""
    assigned = select(_assignees.issue_id).where(_assignees.user_id == user_id)
    return select(_issues.id).where(_issues.author_id == user_id).union_all(assigned)
