"""Background jobs: import, export, and removal of what is no longer needed."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import Row, func, select, update

from project_service.domain.accounts.users import User
from project_service.kit import clock, jobs
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.storage import storage
from project_service.transfers.exporting import exporter
from project_service.transfers.importing import importer
from project_service.transfers.models import FAILED, FAILING, IN_PROGRESS, LIVE, ProjectExport, ProjectImport
from project_service.transfers.notifications import IMPORT_PAGE, add_todo, error_text, fail_export
from project_service.transfers.queries import EXPORT_LIFETIME
from project_service.transfers.workdir import UPLOAD, UPLOADS, remove_workdirs, workdir_names

HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)
MIN_DELAY = dt.timedelta(seconds=5)
MAX_DELAY = dt.timedelta(minutes=1)
MAX_REMOTE_TRANSFERS_PER_USER = 2  # at a time; a machine has more workers
MAX_IMPORT_DURATION = DAY
TIMED_OUT = f"Import timed out. Import took longer than {round(MAX_IMPORT_DURATION.total_seconds())} seconds"


def _import_failed(arguments: tuple[Any, ...], text: str) -> None:
    """Fail an import after its last attempt; a new task removes what it has stored."""
    project_import = db.session.get(ProjectImport, arguments[0])
    if project_import is None:
        return
    if project_import.phase in IN_PROGRESS:
        project_import.phase = FAILING
        project_import.project.import_error = error_text(
            project_import.project, [f"the server failed ({text.partition(':')[0]})"]
        )
        import_project.defer(project_import.id, project_import.project_id)
    elif project_import.phase == FAILING:
        project_import.project.import_status = FAILED
        add_todo(project_import.project, project_import.user, IMPORT_PAGE)


@jobs.job("transfers.jobs.import_project", queue=jobs.TRANSFERS, on_failure=_import_failed)
def import_project(import_id: int, project_id: int) -> None:
    """Import an archive into a project."""
    project_import = db.session.get(ProjectImport, import_id)
    if project_import is not None and (later := _import_deferred_until(project_import)) is not None:
        import_project.on(_queue_of(project_import.url)).defer_until(later, import_id, project_id)
        return
    importer.run(import_id, project_id)


def _export_failed(arguments: tuple[Any, ...], text: str) -> None:
    export = db.session.get(ProjectExport, arguments[0])
    if export is not None and export.state in LIVE:
        fail_export(export, f"the server failed ({text.partition(':')[0]})")


@jobs.job("transfers.jobs.export_project", queue=jobs.TRANSFERS, on_failure=_export_failed)
def export_project(export_id: int, project_id: int) -> None:
    """Export a project; if it is being imported, after that."""
    export = db.session.get(ProjectExport, export_id)
    if export is not None and (later := _export_deferred_until(export)) is not None:
        export_project.on(_queue_of(export.upload_url)).defer_until(later, export_id, project_id)
        return
    exporter.run(export_id, project_id)


def defer_import(record: ProjectImport) -> None:
    """Enqueue an import; in a queue of its own if it downloads the archive."""
    import_project.on(_queue_of(record.url)).defer(record.id, record.project_id)


def defer_export(export: ProjectExport) -> None:
    """Enqueue an export; in a queue of its own if it uploads the archive."""
    export_project.on(_queue_of(export.upload_url)).defer(export.id, export.project_id)


# A transfer is deferred in the unit of work that its task ends with: there are never two tasks of one.


def _import_deferred_until(project_import: ProjectImport) -> dt.datetime | None:
    is_wanted = project_import.url and project_import.phase in IN_PROGRESS
    return _next_attempt(project_import) if is_wanted and _exceeds_user_limit(project_import) else None


def _export_deferred_until(export: ProjectExport) -> dt.datetime | None:
    if export.project.loading:
        return clock.now() + MIN_DELAY
    is_wanted = export.upload_url and export.state in LIVE
    return _next_attempt(export) if is_wanted and _exceeds_user_limit(export) else None


def _next_attempt(transfer: ProjectImport | ProjectExport) -> dt.datetime:
    # transfers that wait long may be many, and each attempt takes a worker
    now = clock.now()
    return now + max(MIN_DELAY, min((now - transfer.created_at) / 10, MAX_DELAY))


def _exceeds_user_limit(transfer: ProjectImport | ProjectExport) -> bool:
    """Whether the user has as many remote transfers in progress as are allowed."""
    if transfer.user_id is None:
        return False
    # the lock serializes this decision for transfers that begin at the same time
    db.session.execute(select(User.id).where(User.id == transfer.user_id).with_for_update(key_share=True))
    claimed = jobs.in_progress(jobs.REMOTE_TRANSFERS)
    running = 0
    for model, job in ((ProjectImport, import_project), (ProjectExport, export_project)):
        ids = {arguments[0] for name, arguments in claimed if name == job.name}
        if isinstance(transfer, model):
            ids.discard(transfer.id)
        theirs = select(func.count()).where(model.id.in_(ids), model.user_id == transfer.user_id)
        running += db.session.scalar(theirs) or 0
    return running >= MAX_REMOTE_TRANSFERS_PER_USER


def _queue_of(url: str | None) -> str:
    return jobs.REMOTE_TRANSFERS if url else jobs.TRANSFERS


@jobs.periodic(every=HOUR)
@jobs.job("transfers.jobs.clear_up")
def clear_up() -> None:
    """Remove expired exports, unused uploads, and what killed workers of this machine left."""
    jobs.for_each(
        (_expire_exports, _stop_endless_imports, _remove_uploads, remove_stale_workdirs),
        lambda act: act(),
    )


def remove_stale_workdirs() -> None:
    """Remove working directories of this machine, except those of transfers that will be continued."""
    names = workdir_names()
    if not names:
        return
    transfers = [name for name in names if not name.startswith(UPLOAD)]
    numbers = [int(number) for name in transfers if (number := name.rpartition("-")[2]).isdigit()]
    imports = select(ProjectImport.id).where(ProjectImport.id.in_(numbers), ProjectImport.phase.in_(IN_PROGRESS))
    exports = select(ProjectExport.id).where(ProjectExport.id.in_(numbers), ProjectExport.state.in_(LIVE))
    with unit_of_work(write=False):
        live = {f"import-{number}" for number in db.session.scalars(imports)}
        live |= {f"export-{number}" for number in db.session.scalars(exports)}
    remove_workdirs(set(names) - live)


def _expire_exports() -> None:
    old = (ProjectExport.storage_name.is_not(None), ProjectExport.updated_at <= clock.now() - EXPORT_LIFETIME)
    with jobs.step():
        expired = db.session.execute(select(ProjectExport.id, ProjectExport.storage_name).where(*old)).all()
    jobs.for_each(expired, _expire_export)


def _expire_export(export: Row[int, str | None]) -> None:
    storage().delete(str(export.storage_name))
    with jobs.step():
        db.session.execute(update(ProjectExport).where(ProjectExport.id == export.id).values(storage_name=None))


def _stop_endless_imports() -> None:
    is_endless = ProjectImport.created_at <= clock.now() - MAX_IMPORT_DURATION
    with jobs.step():
        ids = db.session.scalars(select(ProjectImport.id).where(ProjectImport.phase.in_(IN_PROGRESS), is_endless)).all()
    jobs.for_each(ids, _stop_import)


def _stop_import(import_id: int) -> None:
    with jobs.step():
        project_import = db.session.get(ProjectImport, import_id)
        if project_import is not None and project_import.phase in IN_PROGRESS:
            project_import.phase = FAILING
            project_import.project.import_error = TIMED_OUT
            import_project.defer(project_import.id, project_import.project_id)


def _remove_uploads() -> None:
    with jobs.step():
        stored_names = set(db.session.scalars(select(ProjectImport.storage_name)))
    jobs.for_each([name for name in storage().names(UPLOADS) if name not in stored_names], _remove_old_upload)


def _remove_old_upload(name: str) -> None:
    if storage().modified(name) < clock.now() - DAY:
        storage().delete(name)
