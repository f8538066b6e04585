"""Visibility of events (events reference, section 5): decided per project, applied as conditions on event columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import CTE, ColumnElement, Select, and_, func, or_, select

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.access.rules import own_issues
from project_service.domain.access_levels import Role
from project_service.domain.events.models import Event, Kind, Restriction
from project_service.domain.memberships import levels_by_project
from project_service.domain.project_access import ProjectAccess, select_accesses
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.session import db

# what a caller needs to see events of a kind
KINDS = {
    Kind.PROJECT: Ability.READ_PROJECT,
    Kind.CODE: Ability.READ_CODE,
    Kind.ISSUE: Ability.READ_ISSUES,
    Kind.MERGE_REQUEST: Ability.READ_MERGE_REQUESTS,
    Kind.MILESTONE: Ability.READ_MILESTONES,
    Kind.WIKI: Ability.READ_WIKI,
    Kind.SNIPPET: Ability.READ_SNIPPETS,
}
# what a caller needs besides that for events with a restriction
RESTRICTIONS = {
    Restriction.NONE: Ability.ANYBODY,
    Restriction.SIGNED_IN: Ability.READ_INTERNAL_SNIPPETS,
    Restriction.MEMBERS: Ability.READ_PRIVATE_SNIPPETS,
    Restriction.CONFIDENTIAL: Ability.READ_CONFIDENTIAL,
    Restriction.INTERNAL: Ability.READ_CONFIDENTIAL,
    Restriction.DEVELOPERS: Ability.READ_ALERTS,
}
ALL_KINDS, ALL_RESTRICTIONS = frozenset(Kind), frozenset(Restriction)
NO_USER_ID = 0


@dataclass(frozen=True, slots=True)
class EventVisibility:
    """The kinds of events of a project that a caller may see, and the restrictions that do not exclude the caller."""

    kinds: frozenset[Kind]
    restrictions: frozenset[Restriction]

    def conditions(self, caller: Caller) -> Iterable[ColumnElement[bool]]:
        """Yield the conditions on an event of the project; none for most members."""
        if self.kinds != ALL_KINDS:
            yield Event.kind.in_(sorted(self.kinds))
        if self.restrictions == ALL_RESTRICTIONS:
            return
        allowed: ColumnElement[bool] = Event.restriction.in_(sorted(self.restrictions))
        if Restriction.CONFIDENTIAL not in self.restrictions and caller.user_id is not None:
            is_own_issue = Event.issue_id.in_(own_issues(caller.user_id))
            allowed = or_(allowed, and_(Event.restriction == Restriction.CONFIDENTIAL, is_own_issue))
        yield allowed


def visibility_of(caller: Caller, project: Project | ProjectAccess) -> EventVisibility:
    """Return which events of a project a caller may see."""
    kinds = {kind for kind, ability in KINDS.items() if allowed(caller, ability, project)}
    if project.loading:  # imported events appear when the import is complete
        kinds &= {Kind.PROJECT}
    restrictions = {name for name, ability in RESTRICTIONS.items() if allowed(caller, ability, project)}
    return EventVisibility(frozenset(kinds), frozenset(restrictions))


def visibility_by_joined_project(caller: Caller) -> dict[int, EventVisibility]:
    """Return the visibility for each project the caller belongs to, without those that show nothing."""
    levels, statement = _projects_with_role(caller)
    joined = statement.join(levels, levels.c.project_id == Project.id)
    return _visibilities(caller, joined.where(levels.c.access_level >= int(Role.GUEST)))


def visibility_by_project_of_author(caller: Caller, author_id: int) -> dict[int, EventVisibility]:
    """Return the visibility for each project an author has events in, without those that show nothing."""
    levels, statement = _projects_with_role(caller)
    projects = _projects_of_author(author_id)
    statement = statement.join(projects, projects.c.project_id == Project.id)
    return _visibilities(caller, statement.outerjoin(levels, levels.c.project_id == Project.id))


def _visibilities(caller: Caller, statement: Select[Any]) -> dict[int, EventVisibility]:
    by_settings: dict[tuple[Any, ...], EventVisibility] = {}
    visibilities: dict[int, EventVisibility] = {}
    for row in db.session.execute(statement):
        project = ProjectAccess.of(row)
        if project.settings not in by_settings:
            by_settings[project.settings] = visibility_of(caller, project)
        visibilities[project.id] = by_settings[project.settings]
    return {project_id: visibility for project_id, visibility in visibilities.items() if visibility.kinds}


def _projects_with_role(caller: Caller) -> tuple[CTE, Select[Any]]:
    """Return the roles of the caller by project, and a statement of projects with the columns of ``ProjectAccess``."""
    levels = levels_by_project(caller.user_id or NO_USER_ID, clock.today())
    role = func.coalesce(levels.c.access_level, int(Role.NONE))
    return levels, select_accesses(role).where(Project.deleting_since.is_(None)).order_by(Project.id)


def _projects_of_author(author_id: int) -> CTE:
    """The ids of the projects an author has events in, found by one index lookup per project (a loose index scan)."""
    is_author = Event.author_id == author_id
    projects = select(func.min(Event.project_id).label("project_id")).where(is_author).cte("authored", recursive=True)
    following = select(func.min(Event.project_id)).where(is_author, Event.project_id > projects.c.project_id)
    return projects.union_all(
        select(following.correlate(projects).scalar_subquery()).where(projects.c.project_id.is_not(None))
    )
