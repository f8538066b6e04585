"""Visibility of events (events reference, section 5): decided per project, applied as conditions on event columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import CTE, ColumnElement, Select, and_, func, or_, select

from project_service.access.identity import Caller
from project_service.access.rules import opened_to, own_issues
from project_service.domain.access_levels import Role
from project_service.domain.events.models import Event, Kind, Restriction
from project_service.domain.memberships import levels_by_project
from project_service.domain.projects import ENABLED, PRIVATE, Project
from project_service.kit import clock
from project_service.kit.db.session import db

# the features that make a kind of event visible, and the lowest role where the project or the feature is private
FEATURES: dict[Kind, tuple[tuple[str, Role], ...]] = {
    Kind.CODE: (("repository", Role.REPORTER),),
    Kind.ISSUE: (("issues", Role.GUEST),),
    Kind.MERGE_REQUEST: (("merge_requests", Role.REPORTER),),
    Kind.MILESTONE: (("issues", Role.GUEST), ("merge_requests", Role.GUEST)),
    Kind.WIKI: (("wiki", Role.GUEST),),
    Kind.SNIPPET: (("snippets", Role.GUEST),),
}
FEATURE_LEVELS = tuple(
    dict.fromkeys(f"{feature}_access_level" for features in FEATURES.values() for feature, _ in features)
)
LOWEST_ROLES = {
    Restriction.NONE: Role.NONE,
    Restriction.SIGNED_IN: Role.MINIMAL,
    Restriction.MEMBERS: Role.GUEST,
    Restriction.CONFIDENTIAL: Role.REPORTER,
    Restriction.INTERNAL: Role.REPORTER,
    Restriction.DEVELOPERS: Role.DEVELOPER,
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


def visibility_of(caller: Caller, role: int, project: Any) -> EventVisibility:
    """Return what a caller with this role may see of a project, or of a row with its columns."""
    opened = opened_to(caller, project.visibility)
    features_by_kind = {} if project.loading else FEATURES  # imported events appear when the import is complete
    kinds = {kind for kind, features in features_by_kind.items() if _any_open(project, features, role, opened=opened)}
    if opened or role > Role.NONE:
        kinds.add(Kind.PROJECT)
    is_internal_user = caller.user_id is not None and not caller.external
    restrictions = {restriction for restriction, lowest in LOWEST_ROLES.items() if role >= lowest}
    if is_internal_user:
        restrictions.add(Restriction.SIGNED_IN)
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


def _any_open(project: Any, features: tuple[tuple[str, Role], ...], role: int, *, opened: bool) -> bool:
    levels = [(getattr(project, f"{feature}_access_level"), lowest) for feature, lowest in features]
    return any(
        (level == ENABLED and (opened or role >= lowest)) or (level == PRIVATE and role >= lowest)
        for level, lowest in levels
    )


def _visibilities(caller: Caller, statement: Select[Any]) -> dict[int, EventVisibility]:
    visibilities = {
        row.id: visibility_of(caller, Role.OWNER if caller.admin else row.role, row)
        for row in db.session.execute(statement)
    }
    return {project_id: visibility for project_id, visibility in visibilities.items() if visibility.kinds}


def _projects_with_role(caller: Caller) -> tuple[CTE, Select[Any]]:
    """Return the roles of the caller by project, and a statement of projects with the columns that are needed."""
    levels = levels_by_project(caller.user_id or NO_USER_ID, clock.today())
    role = func.coalesce(levels.c.access_level, int(Role.NONE)).label("role")
    columns = (getattr(Project, name) for name in FEATURE_LEVELS)
    statement = select(Project.id, role, Project.visibility, Project.loading, *columns)
    return levels, statement.where(Project.deleting_since.is_(None)).order_by(Project.id)


def _projects_of_author(author_id: int) -> CTE:
    """The ids of the projects an author has events in, found by one index lookup per project (a loose index scan)."""
    is_author = Event.author_id == author_id
    projects = select(func.min(Event.project_id).label("project_id")).where(is_author).cte("authored", recursive=True)
    following = select(func.min(Event.project_id)).where(is_author, Event.project_id > projects.c.project_id)
    return projects.union_all(
        select(following.correlate(projects).scalar_subquery()).where(projects.c.project_id.is_not(None))
    )
