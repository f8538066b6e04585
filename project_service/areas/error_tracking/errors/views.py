"""Errors as the API and the pages show them, whether this server or one of Sentry stores them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from project_service.areas.error_tracking.errors.models import DAY_SECONDS, HOUR_SECONDS
from project_service.areas.error_tracking.events.event_views import EventView
from project_service.domain import page_paths
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.kit import clock
from project_service.kit.http import urls

Frequency = list[tuple[int, int]]
"""Occurrences by period: the epoch of its beginning and their number, oldest first."""


@dataclass(frozen=True, slots=True)
class ErrorView:
    """An error. ``id`` is a text: that of a Sentry server may exceed what JSON numbers hold exactly.

    ``closed_issue_iid`` is the number of the issue that the current request closed with it.
    """

    id: str
    project: Project
    title: str
    type: str | None
    message: str | None
    culprit: str
    level: str
    logger: str | None
    platform: str | None
    status: str
    count: int
    user_count: int
    first_seen: dt.datetime | None
    last_seen: dt.datetime | None
    frequency: Frequency
    first_release: str | None
    last_release: str | None
    environments: Sequence[str]
    resolved_at: dt.datetime | None
    regressed_at: dt.datetime | None
    issue: Issue | None
    integrated: bool
    assignee: User | None = None
    resolved_in_next_release: bool = False
    external_url: str | None = None
    closed_issue_iid: int | None = None

    @property
    def project_id(self) -> int:
        """The id of the project."""
        return self.project.id

    @property
    def issue_iid(self) -> int | None:
        """The number of the linked issue."""
        return None if self.issue is None else self.issue.iid

    @property
    def web_url(self) -> str:
        """The URL of its page."""
        return urls.absolute(self.path)

    @property
    def path(self) -> str:
        """The path of its page."""
        return f"/{self.project.full_path}{page_paths.error(self.id)}"

    @property
    def is_regression(self) -> bool:
        """Whether it is open because it occurred again after it had been resolved."""
        return self.status == "unresolved" and self.regressed_at is not None


@dataclass(frozen=True, slots=True)
class Period:
    """A time back from now, in hours or days: ``count`` of ``seconds`` each."""

    title: str
    seconds: int
    count: int

    @property
    def starts(self) -> list[int]:
        """The beginnings (epoch) of its hours or days, oldest first; the last has not ended."""
        current = int(clock.now().timestamp()) // self.seconds * self.seconds
        return [current - number * self.seconds for number in reversed(range(self.count))]

    def name_of(self, start: int) -> str:
        """Return an hour or day as it is shown."""
        moment = dt.datetime.fromtimestamp(start, dt.UTC)
        return f"{moment:%-d %b %H:%M} UTC" if self.seconds == HOUR_SECONDS else f"{moment:%-d %b %Y}"

    def frequency(self, counted: dict[int, int]) -> Frequency:
        """Return the occurrences of each of its hours or days, with zeros."""
        return [(start, counted.get(start, 0)) for start in self.starts]


LAST_DAY = Period("24 hours", HOUR_SECONDS, 24)
PERIODS = {
    "24h": LAST_DAY,
    "7d": Period("7 days", DAY_SECONDS, 7),
    "30d": Period("30 days", DAY_SECONDS, 30),
    "90d": Period("90 days", DAY_SECONDS, 90),
}


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """A page of a list. ``previous`` and ``following`` are the query parameters of the neighbouring pages.

    ``range_text`` says which rows these are, where that is known. ``notice`` says why the errors
    are not the current ones, or why there are none.
    """

    errors: list[ErrorView]
    previous: dict[str, str | int] | None = None
    following: dict[str, str | int] | None = None
    range_text: str = ""
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class ErrorDetails:
    """An error with one of its events. ``older`` and ``newer`` are the ids of the neighbouring events."""

    error: ErrorView
    event: EventView | None
    older: str | None = None
    newer: str | None = None
    notice: str | None = None
