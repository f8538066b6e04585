"""The events of several projects: each has its own index, which the database reads in order and merges.

PostgreSQL takes it from the order of every part, SQLite from that of the union, which it keeps; for any other both
would read all there are and sort them. A total needs no order at all.

To make such a statement takes longer than to carry it out. So it does not say whose projects these are: they stand
together by which conditions they have, filled up to 1, 2, 4, 8 … with one there is not, and few statements serve
everybody.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Select, bindparam, column, func, literal, select, union_all

from project_service.access.identity import Caller
from project_service.activity.filters import Filter
from project_service.activity.sights import NOBODY, Shape, Sight, within
from project_service.events.models import Event
from project_service.kit.database import Key, db, flush
from project_service.kit.reading import COUNTED, total_of
from project_service.kit.statements import Ready

NO_PROJECT = 0


@dataclass(frozen=True, slots=True)
class Merged:
    """A list of the ids of events, which reads any part of itself."""

    page: Ready
    counted: Ready
    values: Mapping[str, Any]

    @property
    def total(self) -> int:
        """How many there are, counted up to one more than ``COUNTED``."""
        return total_of(self.counted, self.values)

    def rows(self, offset: int, limit: int) -> list[int]:
        """The ids of some."""
        flush()
        found = self.page.send({**self.values, "page_offset": offset, "page_limit": limit})
        return [number for (number,) in found]


def merged(caller: Caller, sights: Mapping[int, Sight], wish: Filter) -> Merged:
    """The events of one or more projects, of each what the caller sees."""
    alike: dict[Shape, list[tuple[int, Sight]]] = {}
    for number, sight in sights.items():
        alike.setdefault(sight.shape, []).append((number, sight))
    shapes: list[Shape] = []
    values: dict[str, Any] = {"user": caller.user_id or NOBODY, **wish.moments}
    for shape, group in sorted(alike.items()):
        missing = (1 << (len(group) - 1).bit_length()) - len(group)
        for number, sight in group + [(NO_PROJECT, group[0][1])] * missing:
            names = _names(len(shapes))
            values |= zip(names, (number, sight.kinds, sight.restrictions), strict=True)
            shapes.append(shape)
    page, counted = _statements(tuple(shapes), wish.shape, db.engine.dialect.name)
    return Merged(page, counted, values)


@functools.lru_cache(maxsize=64)
def _statements(shapes: tuple[Shape, ...], wish: Filter, dialect: str) -> tuple[Ready, Ready]:
    """What reads a page, and what counts, for projects with sights of these shapes."""
    events = Event.__table__.c
    parts = [_part(place, shape, wish, events.id, events.created_at) for place, shape in enumerate(shapes)]
    if dialect == "sqlite":
        order = wish.order(_Columns(column("created_at"), column("id")))
        page = select(union_all(*parts).order_by(*order).subquery().c.id)
    else:
        ordered = union_all(*(select(part.order_by(*wish.order(events)).subquery()) for part in parts)).subquery().c
        page = select(ordered.id).order_by(*wish.order(ordered))
    limit, offset = bindparam("page_limit", type_=BigInteger), bindparam("page_offset", type_=BigInteger)
    ones = (_part(place, shape, wish, literal(1)) for place, shape in enumerate(shapes))
    few = select(union_all(*ones).subquery()).limit(COUNTED + 1).subquery()
    return Ready(page.limit(limit).offset(offset)), Ready(select(func.count()).select_from(few))


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
