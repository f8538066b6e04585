"""Queries of error-tracking settings."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import func, select

from project_service.areas.error_tracking.errors.models import HOUR_SECONDS, DroppedEventCount
from project_service.areas.error_tracking.settings.models import ErrorTrackingSetting
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http.errors import NotFound


def setting_of(project: Project) -> ErrorTrackingSetting | None:
    """The setting of a project, if it has one."""
    return db.session.scalar(select(ErrorTrackingSetting).where(ErrorTrackingSetting.project_id == project.id))


def find_setting(project: Project) -> ErrorTrackingSetting:
    """The same, or ``NotFound``."""
    setting = setting_of(project)
    if setting is None:
        raise no_setting()
    return setting


def no_setting() -> NotFound:
    """Return the error of a project whose errors are not tracked."""
    return NotFound("Error Tracking Setting")


def dropped_events(project: Project, now: dt.datetime, hours: int) -> dict[str, int]:
    """Return how many events were not stored in the last hours, by reason as people read it."""
    drops = DroppedEventCount
    rows = db.session.execute(
        select(drops.reason, func.sum(drops.count))
        .where(drops.project_id == project.id, drops.start > int(now.timestamp()) - hours * HOUR_SECONDS)
        .group_by(drops.reason)
        .order_by(drops.reason)
    )
    return {_reason(name): int(count) for name, count in rows}


def _reason(name: str) -> str:
    by_sdk, _, reason = name.rpartition(":")
    words = reason.replace("_", " ")
    return f"discarded by SDKs: {words}" if by_sdk else words
