"""Queries of imports and exports."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from sqlalchemy import func, select

from project_service.domain.project_files import ProjectFile
from project_service.domain.projects import Project
from project_service.domain.repositories.models import Repository
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.transfers.models import (
    FINISHED,
    LIVE,
    NONE,
    QUEUED,
    STARTED,
    ImportFailure,
    ProjectExport,
    ProjectImport,
)

MAX_SHOWN_FAILURES = 100
EXPORT_LIFETIME = dt.timedelta(hours=24)
RECENT = dt.timedelta(days=7)
REGENERATING = "regeneration_in_progress"


def import_of(project: Project) -> ProjectImport | None:
    """Return the import of a project, if it was imported."""
    return db.session.scalar(select(ProjectImport).where(ProjectImport.project_id == project.id))


def failures_of(project: Project) -> Sequence[ImportFailure]:
    """Return the last failures of an import, the newest first."""
    statement = select(ImportFailure).where(ImportFailure.project_id == project.id)
    return db.session.scalars(statement.order_by(ImportFailure.id.desc()).limit(MAX_SHOWN_FAILURES)).all()


def count_failures(project: Project) -> int:
    """Return the number of all failures of an import."""
    counted = select(func.count()).select_from(ImportFailure).where(ImportFailure.project_id == project.id)
    return db.session.scalar(counted) or 0


def count_recent_failures(project: Project) -> int:
    """Return the number of failures of an import that has ended recently, else 0."""
    ended = select(ProjectImport.ended_at).where(ProjectImport.project_id == project.id)
    ended_at = db.session.scalar(ended)
    return count_failures(project) if ended_at is not None and ended_at > clock.now() - RECENT else 0


def file_of(project: Project) -> ProjectExport | None:
    """Return the export whose file can be downloaded: the newest, for a day."""
    statement = select(ProjectExport).where(
        ProjectExport.project_id == project.id,
        ProjectExport.storage_name.is_not(None),
        ProjectExport.updated_at > clock.now() - EXPORT_LIFETIME,
    )
    return db.session.scalar(statement.order_by(ProjectExport.id.desc()).limit(1))


def size_of(project: Project) -> int:
    """Return the bytes of the repositories and files of a project."""
    repositories = select(func.sum(Repository.size)).where(Repository.project_id == project.id)
    files = select(func.sum(ProjectFile.size)).where(ProjectFile.project_id == project.id)
    return sum(int(db.session.scalar(total) or 0) for total in (repositories, files))


def live_export_of(project: Project) -> ProjectExport | None:
    """Return the running export, or the next one."""
    statement = select(ProjectExport).where(ProjectExport.project_id == project.id, ProjectExport.state.in_(LIVE))
    return db.session.scalar(statement.order_by(ProjectExport.state.desc(), ProjectExport.id).limit(1))


def newest_export_of(project: Project) -> ProjectExport | None:
    """Return the export that was started last."""
    statement = select(ProjectExport).where(ProjectExport.project_id == project.id)
    return db.session.scalar(statement.order_by(ProjectExport.id.desc()).limit(1))


def status_of(project: Project) -> str:
    """Return the export status of a project (export reference, section 3)."""
    live, file = live_export_of(project), file_of(project)
    if live is not None:
        return REGENERATING if file is not None else STARTED if live.state == STARTED else QUEUED
    return FINISHED if file is not None else NONE
