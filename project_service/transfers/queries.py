"""Imports and exports as they are looked up."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from sqlalchemy import func, select

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
    ProjectFile,
    ProjectImport,
)

MOST_FAILURES = 100
LIFETIME = dt.timedelta(hours=24)
LATELY = dt.timedelta(days=7)
REGENERATING = "regeneration_in_progress"


def import_of(project: Project) -> ProjectImport | None:
    """The import that made a project, if one did."""
    return db.session.scalar(select(ProjectImport).where(ProjectImport.project_id == project.id))


def failures_of(project: Project) -> Sequence[ImportFailure]:
    """What an import left out, the newest first, as many as are shown."""
    wanted = select(ImportFailure).where(ImportFailure.project_id == project.id)
    return db.session.scalars(wanted.order_by(ImportFailure.id.desc()).limit(MOST_FAILURES)).all()


def count_failures(project: Project) -> int:
    """How many rows an import left out, shown or not."""
    counted = select(func.count()).select_from(ImportFailure).where(ImportFailure.project_id == project.id)
    return db.session.scalar(counted) or 0


def left_out_lately(project: Project) -> int:
    """The same of an import that has ended not long ago."""
    ended = select(ProjectImport.ended_at).where(ProjectImport.project_id == project.id)
    ended_at = db.session.scalar(ended)
    return count_failures(project) if ended_at is not None and ended_at > clock.now() - LATELY else 0


def file_of(project: Project) -> ProjectExport | None:
    """The export whose file can be downloaded: the newest one, for a day."""
    wanted = select(ProjectExport).where(
        ProjectExport.project_id == project.id,
        ProjectExport.storage_name.is_not(None),
        ProjectExport.updated_at > clock.now() - LIFETIME,
    )
    return db.session.scalar(wanted.order_by(ProjectExport.id.desc()).limit(1))


def size_of(project: Project) -> int:
    """Bytes of a project that are kept in the storage, as the database knows them: repositories and files."""
    repositories = select(func.sum(Repository.size)).where(Repository.project_id == project.id)
    files = select(func.sum(ProjectFile.size)).where(ProjectFile.project_id == project.id)
    return sum(int(db.session.scalar(one) or 0) for one in (repositories, files))


def live_export_of(project: Project) -> ProjectExport | None:
    """The export that is made at the moment, or the next to be."""
    wanted = select(ProjectExport).where(ProjectExport.project_id == project.id, ProjectExport.state.in_(LIVE))
    return db.session.scalar(wanted.order_by(ProjectExport.state.desc(), ProjectExport.id).limit(1))


def newest_export_of(project: Project) -> ProjectExport | None:
    """The export that was asked for last."""
    wanted = select(ProjectExport).where(ProjectExport.project_id == project.id)
    return db.session.scalar(wanted.order_by(ProjectExport.id.desc()).limit(1))


def status_of(project: Project) -> str:
    """What is said of the export of a project (export reference, section 3)."""
    live, file = live_export_of(project), file_of(project)
    if live is not None:
        return REGENERATING if file is not None else STARTED if live.state == STARTED else QUEUED
    return FINISHED if file is not None else NONE
