"""The import of an archive, step by step.

Everything is written in steps, each with a checkpoint, and stays hidden (``Project.loading``) until the last step
makes it visible. A worker that takes an import over continues behind the last checkpoint. A failed import removes what
it has written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import structlog
from sqlalchemy import update

from project_service.domain import instance_settings, removal
from project_service.domain.events.models import Event
from project_service.domain.repositories import packs
from project_service.domain.repositories.git import BadBundle
from project_service.domain.repositories.models import Repository
from project_service.domain.repositories.releases import Release
from project_service.domain.tracker.documents.designs import Design
from project_service.domain.tracker.documents.snippets import Snippet
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.labels import Label
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import Note
from project_service.kit import clock, jobs
from project_service.kit.db.base import Base
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.http.errors import DISK_FULL_ERRNOS
from project_service.kit.security.outgoing_http.client import RequestFailed
from project_service.kit.security.outgoing_http.rules import Blocked
from project_service.kit.storage import storage
from project_service.transfers.archive import extraction, legacy
from project_service.transfers.archive.contents import BadArchive
from project_service.transfers.importing import finalization
from project_service.transfers.importing.files import check_snippets, record_left_out_files, store_files
from project_service.transfers.importing.repositories import restore_repository, store_repositories
from project_service.transfers.importing.row_loading import prepare_loading
from project_service.transfers.importing.state import STOPPED, check_in_progress, stored_import
from project_service.transfers.models import (
    ENDED,
    FAILED,
    FAILING,
    IN_PROGRESS,
    LOADING,
    SCHEDULED,
    STARTED,
    WAITING,
    ArchivedRow,
    ProjectImport,
)
from project_service.transfers.notifications import IMPORT_PAGE, add_todo, error_text
from project_service.transfers.remote import downloads
from project_service.transfers.workdir import remove_leftovers, throttled, working_directory

# in the order of removal: referencing tables first
CONTENT_TABLES: tuple[type[Base], ...] = (
    Event,
    Note,
    Design,
    Issue,
    MergeRequest,
    Snippet,
    Release,
    Milestone,
    Label,
    ArchivedRow,
    Repository,
)
log = structlog.get_logger(__name__)


def run(import_id: int, project_id: int) -> None:
    """Run an import until it is finished, has failed, or its project is removed."""
    phase = _start(import_id)
    if phase == LOADING:
        try:
            with working_directory(f"import-{import_id}") as folder:
                _import(import_id, project_id, folder)
        except (BadArchive, BadBundle, Blocked, RequestFailed, finalization.OverwriteNotPermitted) as error:
            start_failing(import_id, str(error))
            phase = FAILING
        except OSError as error:
            if error.errno not in DISK_FULL_ERRNOS:
                raise
            start_failing(import_id, "No space left on device")
            phase = FAILING
    if phase == FAILING:
        _remove_content(import_id, project_id)
    _remove_source(import_id, project_id)


def start_failing(import_id: int, *texts: str) -> None:
    """Store why an import failed; its rows are to be removed."""
    with jobs.step():
        project_import = stored_import(import_id)
        if project_import is not None and project_import.phase in IN_PROGRESS:
            project_import.phase = FAILING
            project_import.project.import_error = error_text(project_import.project, texts)


def _start(import_id: int) -> str:
    with jobs.step():
        project_import = stored_import(import_id)
        if project_import is None or project_import.project.deleting_since is not None:
            return ENDED
        if project_import.phase == WAITING:
            project_import.phase = LOADING
        if project_import.project.import_status == SCHEDULED:
            project_import.project.import_status = STARTED
        return project_import.phase


def _import(import_id: int, project_id: int, folder: Path) -> None:
    check = throttled(functools.partial(_check_wanted, import_id))
    archive = _fetch(import_id, folder, check)
    unpacked = extraction.unpack(archive, folder / "unpacked", check=check)
    archive.unlink()
    unpacked.check()
    legacy.convert_legacy(unpacked)
    loader = prepare_loading(import_id, project_id, unpacked)
    with ThreadPoolExecutor(max_workers=1) as pool:  # git runs while rows are loaded
        restored = {
            kind: pool.submit(restore_repository, folder, kind, bundle) for kind, bundle in unpacked.bundles.items()
        }
        try:
            loader.load()
        except BadArchive:
            for future in restored.values():  # an invalid bundle is the first thing to report
                future.result()
            raise
        store_repositories(project_id, unpacked, restored)
    store_files(project_id, unpacked)
    check_snippets(project_id, unpacked)
    with jobs.step():
        record_left_out_files(project_id, unpacked)
        project_import = stored_import(import_id)
        if project_import is None:
            raise BadArchive(STOPPED)
        finalization.finalize(project_import, unpacked, loader.context.users)


def _fetch(import_id: int, folder: Path, check: Callable[[], None]) -> Path:
    with unit_of_work(write=False):
        project_import = db.session.get_one(ProjectImport, import_id)
        storage_name, url = project_import.storage_name, project_import.url
        policy = instance_settings.outgoing_policy()
    archive = folder / "archive.tar.gz"
    if storage_name is not None:
        storage().provide_file(storage_name, archive)
    else:
        downloads.download(url or "", archive, policy, check)
    return archive


def _check_wanted(import_id: int) -> None:
    with unit_of_work(write=False):
        check_in_progress(import_id)


def _remove_content(import_id: int, project_id: int) -> None:
    """Remove what a failed import has stored; the empty project stays."""
    for model in CONTENT_TABLES:
        removal.empty_table(model, project_id, *((Event.target_type.is_not(None),) if model is Event else ()))
    packs.remove_all(project_id)
    with jobs.step():
        project_import = stored_import(import_id)
        if project_import is None:
            return
        project_import.phase, project_import.ended_at = ENDED, clock.now()
        project_import.project.import_status, project_import.project.loading = FAILED, False
        project_import.project.default_branch = None
        add_todo(project_import.project, project_import.user, IMPORT_PAGE)


def _remove_source(import_id: int, project_id: int) -> None:
    with unit_of_work(write=False):
        project_import = stored_import(import_id)
        storage_name, url = (project_import.storage_name, project_import.url) if project_import else (None, None)
    if storage_name:
        storage().delete(storage_name)
    if storage_name or url:
        with jobs.step():  # the address may contain credentials
            cleared = update(ProjectImport).where(ProjectImport.id == import_id).values(storage_name=None, url=None)
            db.session.execute(cleared)
    remove_leftovers(project_id)
