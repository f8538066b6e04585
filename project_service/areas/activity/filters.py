"""Which events a feed is asked for, and in which order (events reference, sections 3 and 4)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from sqlalchemy import ColumnElement, and_, bindparam, or_

from project_service.domain.events.models import Action, Event
from project_service.domain.tracker import issues, milestones, notes, others
from project_service.kit.db.base import Timestamp

TARGETS = {
    "issue": issues.TARGET,
    "milestone": milestones.TARGET,
    "merge_request": others.MERGE_REQUEST,
    "note": notes.TARGET,
    "snippet": others.SNIPPET,
    "user": "User",
    "wiki": others.WIKI_PAGE,
    "design": others.DESIGN,
}
FIRST, LAST = dt.datetime.min.replace(tzinfo=dt.UTC), dt.datetime.max.replace(tzinfo=dt.UTC)
ABOUT_PROJECT = (Action.CREATED, Action.PUSHED, Action.JOINED, Action.LEFT, Action.EXPIRED)


@dataclass(frozen=True, slots=True)
class Filter:
    """The events of some action and target, after one moment and before another; the newest first, or ``ascending``."""

    action: Action | None = None
    target_type: str | None = None
    before: dt.datetime | None = None
    after: dt.datetime | None = None
    ascending: bool = False

    @classmethod
    def of(
        cls,
        action: str | None = None,
        target_type: str | None = None,
        before: dt.date | None = None,
        after: dt.date | None = None,
        sort: str | None = None,
    ) -> Self:
        """Read the parameters of a request; both days are left out themselves."""
        return cls(
            Action[action.upper()] if action else None,
            target_type or None,
            dt.datetime.combine(before, dt.time(), dt.UTC) if before else None,
            dt.datetime.combine(after, dt.time.max, dt.UTC) if after else None,
            sort == "asc",
        )

    @property
    def is_narrow(self) -> bool:
        """Whether it leaves out any events at all."""
        return replace(self, ascending=False) != Filter()

    @property
    def shape(self) -> Filter:
        """What statements are made of: the moments are values that they are sent with."""
        return replace(self, before=self.before and LAST, after=self.after and FIRST)

    @property
    def moments(self) -> dict[str, dt.datetime]:
        """The values that statements of this shape are sent with."""
        named = {"before": self.before, "after": self.after}
        return {name: moment for name, moment in named.items() if moment is not None}

    @property
    def end(self) -> dt.datetime:
        """The moment that none of these events is behind, in their order."""
        return (self.before or LAST) if self.ascending else (self.after or FIRST)

    def conditions(self) -> Iterable[ColumnElement[bool]]:
        """What must hold for an event."""
        if self.action:
            yield Event.action == self.action
        if self.target_type:
            yield _is_about(self.target_type)
        yield from self.days()

    def days(self) -> Iterable[ColumnElement[bool]]:
        """What must hold for the moment of an event."""
        if self.before:
            yield Event.created_at < bindparam("before", self.before, Timestamp)
        if self.after:
            yield Event.created_at > bindparam("after", self.after, Timestamp)

    def order(self, events: Any) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
        """The order of the feed, for anything with ``created_at`` and ``id``."""
        if self.ascending:
            return events.created_at.asc(), events.id.asc()
        return events.created_at.desc(), events.id.desc()


def _is_about(name: str) -> ColumnElement[bool]:
    if name != "project":
        return Event.target_type == TARGETS[name]
    untyped = and_(Event.target_type.is_(None), Event.action.in_(ABOUT_PROJECT))
    return or_(untyped, Event.target_type == "Project")
