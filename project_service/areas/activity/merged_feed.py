"""The events of several projects: each has its own index, which the database reads in order and merges.

PostgreSQL takes it from the order of every part, SQLite from that of the union, which it keeps; for any other both
would read all there are and sort them. A total needs no order at all.

To make such a statement takes longer than to carry it out. So it does not say whose projects these are: they stand
together by which conditions they have, filled up to 1, 2, 4, 8 … with one there is not, and few statements serve
everybody.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Select, bindparam, column, func, literal, select, union_all

from project_service.access.identity import Caller
from project_service.areas.activity.filters import Filter
from project_service.areas.activity.visibility import NOBODY, Shape, Sight, within
from project_service.domain.events.models import Event
from project_service.kit.db.base import Key
from project_service.kit.db.reading import COUNTED, total_of
from project_service.kit.db.session import db
from project_service.kit.db.statements import Ready

NO_PROJECT = 0
FAR = 2_000  # how many events may lie before a page without any of them being counted
SAMPLE = 500  # so many tell how many there are in a span of time
MOMENT = dt.timedelta(microseconds=1)  # the time between two moments that differ


@dataclass(frozen=True, slots=True)
class Merged:
    """A list of the ids of events, which reads any part of itself."""

    shapes: tuple[Shape, ...]
    values: Mapping[str, Any]
    wish: Filter

    @property
    def total(self) -> int:
        """How many there are, counted up to one more than ``COUNTED``."""
        return total_of(self._statements.counted, self._values(limit=COUNTED + 1))

    def rows(self, offset: int, limit: int) -> list[int]:
        """The ids of some."""
        db.session.flush()
        if offset >= FAR and db.engine.dialect.name == "sqlite":
            return self._far(offset, limit)
        return self._read(offset, limit)

    def _read(self, offset: int, limit: int) -> list[int]:
        return [row.id for row in self._statements.page.send(self._values(offset, limit))]

    def _far(self, offset: int, limit: int) -> list[int]:
        """The same for a page far behind: what lies before it is counted as far as possible, and not merged.

        SQLite merges two by two, so that each event is handed on several times. Counting takes a tenth of that, in
        spans of time that are chosen by how many events there were in the one before, or in a sample. Where time tells
        too little of numbers the rest is merged.
        """
        rest, edge, span, seen = self, self.wish.end, dt.timedelta(), 0
        while offset >= FAR:
            is_sampled = not seen
            if is_sampled:
                first, further = rest._moment(0), rest._moment(SAMPLE)
                if first is None or further is None:
                    break
                edge, span, seen = first, abs(further - first), SAMPLE
            most = min(offset, COUNTED)
            aim = most * 9 // 10
            # nothing may be counted that the filter leaves out
            if not span or span >= abs(self.wish.end - edge) * (seen / aim):
                break
            span *= aim / seen
            edge = edge + span if self.wish.ascending else edge - span
            before, following = rest._parted(edge)
            seen = before._statements.counted.send(before._values(limit=most + 1)).scalar_one()
            if seen > most:
                break
            offset, rest = offset - seen, following
            if seen < aim // 4:
                if is_sampled:
                    break
                seen = 0  # a gap, behind which another sample is taken
        return rest._read(offset, limit)

    def _moment(self, offset: int) -> dt.datetime | None:
        """When the event at a place happened."""
        moment: dt.datetime | None = self._statements.moment.send(self._values(offset)).scalar()
        return moment

    def _parted(self, edge: dt.datetime) -> tuple[Merged, Merged]:
        """The events down to a moment, and those that follow."""
        wish = self.wish
        if wish.ascending:
            parts = replace(wish, before=edge + MOMENT), replace(wish, after=edge)
        else:
            parts = replace(wish, after=edge - MOMENT), replace(wish, before=edge)
        before, following = (replace(self, wish=part) for part in parts)
        return before, following

    @property
    def _statements(self) -> Statements:
        return _statements(self.shapes, self.wish.shape, db.engine.dialect.name)

    def _values(self, offset: int = 0, limit: int = 1) -> dict[str, Any]:
        return {**self.values, **self.wish.moments, "page_offset": offset, "page_limit": limit}


def merged(caller: Caller, sights: Mapping[int, Sight], wish: Filter) -> Merged:
    """The events of one or more projects, of each what the caller sees."""
    alike: dict[Shape, list[tuple[int, Sight]]] = {}
    for number, sight in sights.items():
        alike.setdefault(sight.shape, []).append((number, sight))
    shapes: list[Shape] = []
    values: dict[str, Any] = {"user": caller.user_id or NOBODY}
    for shape, group in sorted(alike.items()):
        missing = (1 << (len(group) - 1).bit_length()) - len(group)
        for number, sight in group + [(NO_PROJECT, group[0][1])] * missing:
            names = _names(len(shapes))
            values |= zip(names, (number, sight.kinds, sight.restrictions), strict=True)
            shapes.append(shape)
    return Merged(tuple(shapes), values, wish)


class Statements(NamedTuple):
    """What reads the ids of a page, what reads the moment of an event, and what counts."""

    page: Ready
    moment: Ready
    counted: Ready


@functools.lru_cache(maxsize=64)
def _statements(shapes: tuple[Shape, ...], wish: Filter, dialect: str) -> Statements:
    """For projects with sights of these shapes."""
    events = Event.__table__.c
    parts = [_part(place, shape, wish, events.id, events.created_at) for place, shape in enumerate(shapes)]
    if dialect == "sqlite":
        order = wish.order(_Columns(column("created_at"), column("id")))
        found = union_all(*parts).order_by(*order).subquery().c
        ids, moments = select(found.id), select(found.created_at)
    else:
        found = union_all(*(select(part.order_by(*wish.order(events)).subquery()) for part in parts)).subquery().c
        ids, moments = (select(one).order_by(*wish.order(found)) for one in (found.id, found.created_at))
    limit, offset = (_unseen(bindparam(name, type_=BigInteger), dialect) for name in ("page_limit", "page_offset"))
    ones = (_part(place, shape, wish, literal(1)) for place, shape in enumerate(shapes))
    few = select(union_all(*ones).subquery()).limit(limit).subquery()
    page, moment = (Ready(one.limit(limit).offset(offset)) for one in (ids, moments))
    return Statements(page, moment, Ready(select(func.count()).select_from(few)))


def _unseen(value: Any, dialect: str) -> Any:
    """A value that PostgreSQL cannot plan by: where it sees how little is wanted, it plans anew for each request.

    That takes several times what it takes to read a page, and comes to the same: the indexes are merged.
    """
    return value if dialect == "sqlite" else select(value).scalar_subquery()


@dataclass(frozen=True, slots=True)
class _Columns:
    created_at: Any
    id: Any


def _part(place: int, shape: Shape, wish: Filter, *columns: Any) -> Select[Any]:
    """The events of the project at a place."""
    project, kinds, restrictions = (bindparam(name, type_=Key) for name in _names(place))
    seen = within(shape, kinds, restrictions, bindparam("user", type_=Key))
    return select(*columns).where(Event.project_id == project, *seen, *wish.conditions())


def _names(place: int) -> tuple[str, str, str]:
    """What the values of the part at a place are called: its project, and the kinds and restrictions of the sight."""
    return f"project_{place}", f"kinds_{place}", f"restrictions_{place}"
