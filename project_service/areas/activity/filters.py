"""The filters and the order of a feed (events reference, sections 2 and 3)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import ColumnElement, and_, or_

from project_service.domain.events.models import Action, Event
from project_service.domain.tracker import issues, merge_requests, milestones, notes
from project_service.domain.tracker.documents import designs, snippets, wiki_pages

STORED_TYPES = {
    "issue": issues.TARGET,
    "milestone": milestones.TARGET,
    "merge_request": merge_requests.TARGET,
    "note": notes.TARGET,
    "snippet": snippets.TARGET,
    "user": "User",
    "wiki": wiki_pages.TARGET,
    "design": designs.TARGET,
}
PROJECT_ACTIONS = (Action.CREATED, Action.PUSHED, Action.JOINED, Action.LEFT, Action.EXPIRED)


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Action, target type and times (both excluded) of the events; newest first unless ``ascending``."""

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
        """Create the filter from request parameters; the days named by ``before`` and ``after`` are excluded."""
        return cls(
            Action[action.upper()] if action else None,
            target_type or None,
            dt.datetime.combine(before, dt.time(), dt.UTC) if before else None,
            dt.datetime.combine(after, dt.time.max, dt.UTC) if after else None,
            sort == "asc",
        )

    @property
    def is_narrow(self) -> bool:
        """Whether the filter excludes any events."""
        return any(value is not None for value in (self.action, self.target_type, self.before, self.after))

    def conditions(self) -> Iterable[ColumnElement[bool]]:
        """Yield the conditions on an event."""
        if self.action:
            yield Event.action == self.action
        if self.target_type:
            yield _has_target_type(self.target_type)
        yield from self.time_conditions()

    def time_conditions(self) -> Iterable[ColumnElement[bool]]:
        """Yield the conditions on the creation time of an event."""
        if self.before:
            yield Event.created_at < self.before
        if self.after:
            yield Event.created_at > self.after

    def order(self, events: Any) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
        """Return the order of the feed, for an entity or columns with ``created_at`` and ``id``."""
        if self.ascending:
            return events.created_at.asc(), events.id.asc()
        return events.created_at.desc(), events.id.desc()


def _has_target_type(name: str) -> ColumnElement[bool]:
    if name != "project":
        return Event.target_type == STORED_TYPES[name]
    untyped = and_(Event.target_type.is_(None), Event.action.in_(PROJECT_ACTIONS))
    return or_(untyped, Event.target_type == "Project")
