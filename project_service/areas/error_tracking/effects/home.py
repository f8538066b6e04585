"""The panel of new and rising errors on the home page, the page of a group and the wall; the health mark of errors."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import ScalarSelect, func, select

from project_service.access.across_projects import projects_with_errors
from project_service.access.page_parts import health_marks, panels
from project_service.access.page_parts.home_scope import HomeScope
from project_service.areas.error_tracking.errors.models import (
    HOUR_SECONDS,
    ErrorStatus,
    TrackedError,
    TrackedErrorCount,
)
from project_service.domain.access_levels import Role
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.first_rows import first_of_each
from project_service.kit.db.session import db

MAX_SHOWN = 10
MAX_EXAMINED = 200  # errors seen last, of all projects
NEW_FOR = dt.timedelta(days=7)
# an error rises if it occurred this often in the last day, and this many times as often as in the day before
MIN_RISING_COUNT, RISING_FACTOR = 10, 2
LAST_SEEN_FIRST = (TrackedError.last_seen.desc(), TrackedError.id.desc())
UNRESOLVED = TrackedError.status == int(ErrorStatus.UNRESOLVED)


def fill(scope: HomeScope) -> dict[str, Any]:
    """Return the unresolved errors that are new, came back or rise, those seen last first, each with the reason."""
    day = dt.timedelta(days=1)
    now = clock.now()
    first = first_of_each(
        scope.projects(Role.REPORTER, "monitor"),
        TrackedError,
        TrackedError.project_id,
        [UNRESOLVED],
        LAST_SEEN_FIRST,
        MAX_SHOWN,
    )
    columns = (
        *(TrackedError.id, TrackedError.title, TrackedError.culprit, TrackedError.level, TrackedError.last_seen),
        *(TrackedError.first_seen, TrackedError.regressed_at, Project.full_path),
        _occurrences(now - day, now).label("last_day"),
        _occurrences(now - 2 * day, now - day).label("day_before"),
    )
    errors = select(*columns).join(Project, Project.id == TrackedError.project_id).where(TrackedError.id.in_(first))
    rows = db.session.execute(errors.order_by(*LAST_SEEN_FIRST).limit(MAX_EXAMINED)).all()
    shown_errors = [(row, reason) for row in rows if (reason := _reason(row, now))]
    return {"errors": shown_errors[:MAX_SHOWN]}


def _occurrences(start: dt.datetime, end: dt.datetime) -> ScalarSelect[int]:
    count = TrackedErrorCount
    return (
        select(func.coalesce(func.sum(count.count), 0))
        .where(
            count.error_id == TrackedError.id,
            count.seconds == HOUR_SECONDS,
            count.start >= int(start.timestamp()),
            count.start < int(end.timestamp()),
        )
        .correlate(TrackedError)
        .scalar_subquery()
    )


def _reason(row: Any, now: dt.datetime) -> str:
    """Say why an error is shown; empty if it is neither new nor back nor rising."""
    if row.regressed_at is not None and row.regressed_at > now - NEW_FOR:
        return "back"
    if row.first_seen > now - NEW_FOR:
        return "new"
    rises = row.last_day >= MIN_RISING_COUNT and row.last_day >= RISING_FACTOR * row.day_before
    return "rising" if rises else ""


for _page in ("home", "wall"):
    panels.add(panels.Panel(_page, 30, f"error_tracking/{_page}.html", fill))
health_marks.add(
    health_marks.HealthMark(
        noun="error",
        tone="warn",
        order=20,
        path="/-/error_tracking",
        counted=lambda: select(TrackedError.id).where(TrackedError.project_id == Project.id, UNRESOLVED),
        readable=projects_with_errors,
    )
)
