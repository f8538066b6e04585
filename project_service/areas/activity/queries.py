"""The events that a caller may see.

The visibility of a project's events is decided once per project, in Python (``visibility``), and becomes conditions on
columns that the indexes of the feeds carry: pages are cut, and totals counted, within an index. The statements select
ids; ``targets.events_with_targets`` loads the events of a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, exists, false, func, literal, literal_column, or_, select, union_all

from project_service.access.identity import Caller
from project_service.areas.activity.filters import EventFilter
from project_service.areas.activity.merged_feed import MergedFeed, ProjectGroup
from project_service.areas.activity.visibility import (
    ALL_KINDS,
    EventVisibility,
    visibility_by_joined_project,
    visibility_by_project_of_author,
    visibility_of,
)
from project_service.domain.accounts.users import ACTIVE, User
from project_service.domain.events.models import Event
from project_service.domain.project_access import ProjectAccess
from project_service.domain.projects import Project
from project_service.domain.repositories.models import CODE, Repository
from project_service.domain.tracker.documents.designs import Design
from project_service.domain.tracker.documents.wiki_pages import WikiPage
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import Note
from project_service.kit.db.session import db
from project_service.kit.http.pagination import MAX_COUNTED_ROWS


def kinds_of(project: Project) -> set[str]:
    """Return what a project has that events can be about, by the names of the filters of its page."""
    having = {
        "push": exists().where(Repository.project_id == project.id, Repository.kind == CODE),
        "issue": exists().where(Issue.project_id == project.id),
        "merged": exists().where(MergeRequest.project_id == project.id),
        "comments": exists().where(Note.project_id == project.id),
        "milestone": exists().where(Milestone.project_id == project.id),
        "wiki": exists().where(WikiPage.project_id == project.id),
        "designs": exists().where(Design.project_id == project.id),
    }
    row = db.session.execute(select(*(condition.label(name) for name, condition in having.items()))).one()
    return {name for name, is_there in row._mapping.items() if is_there}


@dataclass(frozen=True, slots=True)
class AuthorFeed:
    """The ids of the events of an author; ``countable`` are those of them that are counted with less work."""

    statement: Select[int]
    countable: Select[int] | None

    @property
    def total(self) -> int:
        """The number of events, counted up to one more than ``MAX_COUNTED_ROWS``."""
        if self.countable is not None and (total := _count(self.countable)) > MAX_COUNTED_ROWS:
            return total
        return _count(self.statement.order_by(None))

    def rows(self, offset: int, limit: int) -> list[int]:
        """The ids of a page."""
        return list(db.session.scalars(self.statement.limit(limit).offset(offset)))


def events_of_author(caller: Caller, author_id: int, **options: Any) -> AuthorFeed:
    """The events of an author that the caller may see."""
    filters, is_author = EventFilter.of(**options), Event.author_id == author_id
    grouped = _projects_by_visibility(visibility_by_project_of_author(caller, author_id))
    statement = _ids(filters, is_author, _visible_in(caller, grouped))
    return AuthorFeed(statement, None if filters.is_narrow else _countable(is_author, grouped))


def events_of_user(caller: Caller, user: User, **options: Any) -> Select[int] | AuthorFeed:
    """The same for a profile: private ones, and those of blocked users, show nothing to others.

    Events reference, section 5.
    """
    hidden = user.private_profile or user.state != ACTIVE
    if hidden and user.id != caller.user_id and not caller.admin:
        return _ids(EventFilter.of(**options), false())
    return events_of_author(caller, user.id, **options)


def events_of_memberships(caller: Caller, **options: Any) -> Select[int] | MergedFeed:
    """The events of all authors in the projects the caller belongs to."""
    filters = EventFilter.of(**options)
    grouped = _projects_by_visibility(visibility_by_joined_project(caller))
    if not grouped:
        return _ids(filters, false())
    groups = tuple(
        ProjectGroup(tuple(project_ids), (*visibility.conditions(caller), *filters.conditions()))
        for visibility, project_ids in grouped.items()
    )
    return MergedFeed(groups, _ids(filters, _visible_in(caller, grouped)), filters)


def events_of_project(caller: Caller, project: Project | ProjectAccess, **options: Any) -> Select[int]:
    """The events of a project that the caller may see."""
    visibility = visibility_of(caller, project)
    return _ids(EventFilter.of(**options), Event.project_id == project.id, *visibility.conditions(caller))


def _ids(filters: EventFilter, *conditions: ColumnElement[bool]) -> Select[int]:
    return select(Event.id).where(*conditions, *filters.conditions()).order_by(*filters.order(Event))


def _visible_in(caller: Caller, grouped: Mapping[EventVisibility, list[int]]) -> ColumnElement[bool]:
    """The condition for events of several projects."""
    # an expression, so that no database prefers an index by project to the one that has the order of the feed
    project_id = Event.project_id + literal_column("0")
    largest_first = sorted(grouped.items(), key=lambda item: -len(item[1]))
    visible = (
        and_(project_id.in_(project_ids), *visibility.conditions(caller)) for visibility, project_ids in largest_first
    )
    return or_(false(), *visible)


def _countable(is_author: ColumnElement[bool], grouped: Mapping[EventVisibility, list[int]]) -> Select[int] | None:
    """Those events of an author that are visible by project and restriction alone, which one small index contains."""
    parts = [
        select(literal(1).label("one")).where(
            is_author, Event.project_id.in_(project_ids), Event.restriction.in_(sorted(visibility.restrictions))
        )
        for visibility, project_ids in grouped.items()
        if visibility.kinds == ALL_KINDS
    ]
    return select(union_all(*parts).subquery().c.one) if parts else None


def _count(statement: Select[int]) -> int:
    return db.session.scalar(select(func.count()).select_from(statement.limit(MAX_COUNTED_ROWS + 1).subquery())) or 0


def _projects_by_visibility(visibilities: Mapping[int, EventVisibility]) -> dict[EventVisibility, list[int]]:
    grouped: dict[EventVisibility, list[int]] = {}
    for project_id, visibility in visibilities.items():
        grouped.setdefault(visibility, []).append(project_id)
    return grouped
