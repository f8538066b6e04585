"""The stored state of an import, and whether it has been stopped."""

from __future__ import annotations

from sqlalchemy import select

from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.transfers.archive.contents import BadArchive
from project_service.transfers.models import LOADING, ProjectImport

STOPPED = "The import was stopped"


def stored_import(import_id: int) -> ProjectImport | None:
    """Return the current row; nothing if the project has been removed."""
    return db.session.get(ProjectImport, import_id, populate_existing=True)


def check_in_progress(import_id: int) -> None:
    """Raise ``BadArchive`` if the project is being removed or the import has been stopped."""
    in_progress = select(ProjectImport.id).join(ProjectImport.project)
    in_progress = in_progress.where(ProjectImport.phase == LOADING, Project.deleting_since.is_(None))
    if db.session.scalar(in_progress.where(ProjectImport.id == import_id)) is None:
        raise BadArchive(STOPPED)
