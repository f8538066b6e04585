"""Errors as the API and the pages show them, whether this server or one of Sentry stores them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from project_service.areas.error_tracking.error_models import HOUR_SECONDS
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.kit import clock
from project_service.kit.http import urls

FREQUENCY_HOURS = 24

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
        return f"/{self.project.full_path}/-/error_tracking/{self.id}/details"

    @property
    def is_regression(self) -> bool:
        """Whether it is open because it occurred again after it had been resolved."""
        return self.status == "unresolved" and self.regressed_at is not None


def period_starts(seconds: int, count: int) -> list[int]:
    """Return the beginnings (epoch) of the last periods of some seconds, oldest first."""
    current = int(clock.now().timestamp()) // seconds * seconds
    return [current - number * seconds for number in reversed(range(count))]


def last_day(counted: dict[int, int]) -> Frequency:
    """Return the occurrences of each of the last 24 hours, with zeros."""
    return [(start, counted.get(start, 0)) for start in period_starts(HOUR_SECONDS, FREQUENCY_HOURS)]
