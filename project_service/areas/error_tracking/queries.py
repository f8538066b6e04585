"""Queries of error-tracking settings."""

from __future__ import annotations

from sqlalchemy import select

from project_service.areas.error_tracking.models import ErrorTrackingSetting
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
        raise NotFound("Error Tracking Setting")
    return setting
