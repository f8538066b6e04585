"""The feed of events of many projects, merged by the time of the events.

A page is read in one of two ways, neither of which depends on the size of the table:

* from the index of all events by time, skipping the events of other projects: little is read where the projects have a
  good share of the recent events. It stops after a number of events that is bounded by the end of the page;
* if that does not fill the page, from the index of each project: as many events of each as the page reaches to.

The work grows with the depth of the page, and with the number of projects.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, func, literal, select, true, union_all
from sqlalchemy.orm import aliased

from project_service.areas.activity.filters import EventFilter
from project_service.domain.events.models import Event
from project_service.kit.db.bulk import table_of_ids
from project_service.kit.db.session import db
from project_service.kit.http.pagination import MAX_COUNTED_ROWS

MIN_SCANNED_EVENTS = 1_000
MAX_SCANNED_PER_RESULT = 20


@dataclass(frozen=True, slots=True)
class ProjectGroup:
    """Projects whose events have the same visibility, and the conditions for their events."""

    project_ids: tuple[int, ...]
    conditions: tuple[ColumnElement[bool], ...]


@dataclass(frozen=True, slots=True)
class MergedFeed:
    """The ids of the events of several groups of projects; ``statement`` selects all of them, in order."""

    groups: tuple[ProjectGroup, ...]
    statement: Select[int]
    filters: EventFilter

    @property
    def total(self) -> int:
        """The number of events, counted up to one more than ``MAX_COUNTED_ROWS``."""
        events = union_all(*map(self._countable, self.groups)).subquery()
        limited = select(events.c.one).limit(MAX_COUNTED_ROWS + 1).subquery()
        return db.session.scalar(select(func.count()).select_from(limited)) or 0

    def rows(self, offset: int, limit: int) -> list[int]:
        """The ids of a page."""
        last_scanned = self._time_at(MIN_SCANNED_EVENTS + MAX_SCANNED_PER_RESULT * (offset + limit))
        if last_scanned is None:  # there are few events: those of the projects can all be read
            return self._merged(offset, limit)
        is_scanned = Event.created_at <= last_scanned if self.filters.ascending else Event.created_at >= last_scanned
        ids = list(db.session.scalars(self.statement.where(is_scanned).limit(limit).offset(offset)))
        return ids if len(ids) == limit else self._merged(offset, limit)

    def _time_at(self, offset: int) -> dt.datetime | None:
        """The time of the event at an offset among those of all projects."""
        events = select(Event.created_at).where(*self.filters.time_conditions()).order_by(*self.filters.order(Event))
        return db.session.scalar(events.limit(1).offset(offset))

    def _merged(self, offset: int, limit: int) -> list[int]:
        """The ids of a page, read from the index of each project."""
        events = union_all(*(self._first_events(group, offset + limit) for group in self.groups)).subquery()
        merged = select(events.c.id).order_by(*self.filters.order(events.c)).limit(limit).offset(offset)
        return list(db.session.scalars(merged))

    def _countable(self, group: ProjectGroup) -> Select[int]:
        """A row for each event of a group; on PostgreSQL at most ``MAX_COUNTED_ROWS + 1`` of each project."""
        project = table_of_ids(group.project_ids)
        events = select(literal(1).label("one")).where(Event.project_id == project.c.value, *group.conditions)
        if _is_sqlite():
            return events
        limited = events.limit(MAX_COUNTED_ROWS + 1).correlate(project).lateral()
        return select(limited.c.one).select_from(project.join(limited, true()))

    def _first_events(self, group: ProjectGroup, count: int) -> Select[int, dt.datetime]:
        """The first ``count`` events of each project of a group, in the order of the feed.

        PostgreSQL runs the inner statement for each project; SQLite, which has no ``LATERAL``, looks up its ids.
        """
        project = table_of_ids(group.project_ids)
        first = select(Event.id, Event.created_at).where(Event.project_id == project.c.value, *group.conditions)
        first = first.order_by(*self.filters.order(Event)).limit(count).correlate(project)
        if _is_sqlite():
            event = aliased(Event)
            is_first = event.id.in_(first.with_only_columns(Event.id))
            return select(event.id, event.created_at).select_from(project.join(event, is_first))
        lateral = first.lateral()
        return select(lateral.c.id, lateral.c.created_at).select_from(project.join(lateral, true()))


def _is_sqlite() -> bool:
    return db.engine.dialect.name == "sqlite"
