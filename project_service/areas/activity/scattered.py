"""The events of so many projects that their indexes cannot all be merged in one statement.

Either much happens in them: then a page of theirs lies among the newest events of all projects, and the common index is
walked for it. Or little does: then it may lie behind any number of others, and the projects are asked one by one for as
many events as the page reaches to. A walk that comes too far is given up for that, so that of what belongs to others
no more is read than ``WALKED`` rows, and ``PATIENCE`` for each row down to the end of the page.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, func, literal, select, true, union_all
from sqlalchemy.orm import aliased

from project_service.areas.activity.filters import Filter
from project_service.domain.events.models import Event
from project_service.kit.db.bulk import listed
from project_service.kit.db.reading import COUNTED, rows
from project_service.kit.db.session import db

WALKED = 10_000
PATIENCE = 20


@dataclass(frozen=True, slots=True)
class Part:
    """Projects in which the same is seen, and the conditions that this puts on their events."""

    projects: tuple[int, ...]
    conditions: tuple[ColumnElement[bool], ...]


@dataclass(frozen=True, slots=True)
class Scattered:
    """A list that reads any part of itself: ``walk`` is the whole of it by the common index, in its order."""

    parts: tuple[Part, ...]
    walk: Select[int]
    wish: Filter

    @property
    def total(self) -> int:
        """How many there are, counted up to one more than ``COUNTED``."""
        counted = union_all(*map(self._counted, self.parts)).subquery()
        few = select(counted.c.one).limit(COUNTED + 1).subquery()
        return db.session.scalar(select(func.count()).select_from(few)) or 0

    def rows(self, offset: int, limit: int) -> list[int]:
        """The ids of some."""
        edge = self._edge(WALKED + PATIENCE * (offset + limit))
        if edge is None:
            return rows(self.walk, limit=limit, offset=offset)
        near = Event.created_at <= edge if self.wish.ascending else Event.created_at >= edge
        found: list[int] = rows(self.walk.where(near), limit=limit, offset=offset)
        return found if len(found) == limit else self._gathered(offset, limit)

    def _edge(self, behind: int) -> dt.datetime | None:
        """When the last event happened that a walk may come to; ``None`` if it may go through all."""
        common = select(Event.created_at).where(*self.wish.days()).order_by(*self.wish.order(Event))
        return next(iter(rows(common, limit=1, offset=behind)), None)

    def _gathered(self, offset: int, limit: int) -> list[int]:
        """The same from the index of each project."""
        gathered = union_all(*(self._first(part, offset + limit) for part in self.parts)).subquery()
        return rows(select(gathered.c.id).order_by(*self.wish.order(gathered.c)), limit=limit, offset=offset)

    def _counted(self, part: Part) -> Select[int]:
        """A row for each event of a part, or for some of them if there are more than are counted."""
        project = listed(part.projects)
        own = select(literal(1).label("one")).where(Event.project_id == project.c.value, *part.conditions)
        if _is_sqlite():
            return own
        inner = own.limit(COUNTED + 1).correlate(project).lateral()
        return select(inner.c.one).select_from(project.join(inner, true()))

    def _first(self, part: Part, most: int) -> Select[int, dt.datetime]:
        """So many events of each project of a part, the first ones in the order of the list.

        PostgreSQL runs the inner statement for each project; for SQLite, which has no ``LATERAL``, it names the rows.
        """
        project = listed(part.projects)
        first = select(Event.id, Event.created_at).where(Event.project_id == project.c.value, *part.conditions)
        first = first.order_by(*self.wish.order(Event)).limit(most).correlate(project)
        if _is_sqlite():
            event = aliased(Event)
            named = event.id.in_(first.with_only_columns(Event.id))
            return select(event.id, event.created_at).select_from(project.join(event, named))
        inner = first.lateral()
        return select(inner.c.id, inner.c.created_at).select_from(project.join(inner, true()))


def _is_sqlite() -> bool:
    return db.engine.dialect.name == "sqlite"
