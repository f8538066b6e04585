"""Working directories of transfers on this machine, and removal of their files from the storage."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog
from flask import current_app
from sqlalchemy import select

from project_service.domain.project_files import UPLOADS_FOLDER, ProjectFile
from project_service.domain.projects import folder_of
from project_service.kit import clock, file_locks
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.storage import storage
from project_service.transfers.models import LIVE, ProjectExport, ProjectImport

UPLOADS = "imports"  # the folder of the storage
UPLOAD_TIME = dt.timedelta(days=1)  # in which the row of an upload is stored after its object
UPLOAD = "upload-"  # the prefix of working directories of uploads
LOCK = ".lock"  # locked by the process that uses the directory
CHECK_INTERVAL_SECONDS = 5.0

log = structlog.get_logger(__name__)


@contextmanager
def working_directory(name: str) -> Iterator[Path]:
    """Create an empty directory, which is removed at the end; what a killed worker left in it is removed first."""
    folder = _root() / name
    lock = _create_locked(folder)
    try:
        yield folder
    finally:
        if file_locks.is_at(folder / LOCK, lock):  # another worker may have replaced it
            shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


@contextmanager
def receiving_upload() -> Iterator[str]:
    """Return the name in the storage for an archive that is being uploaded.

    If the process is killed, its working directory tells which file to remove.
    """
    token = secrets.token_hex(16)
    with working_directory(UPLOAD + token):
        yield _upload_of(token)


def _upload_of(token: str) -> str:
    return f"{UPLOADS}/{token}.tar.gz"


def workdir_names() -> list[str]:
    """Return the names of the working directories on this machine."""
    return sorted(folder.name for folder in _root().glob("*") if folder.is_dir())


def remove_workdirs(names: Collection[str]) -> None:
    """Remove working directories, except those in use."""
    for name in names:
        folder = _root() / name
        try:
            with suppress(FileNotFoundError):
                _remove_unless_in_use(name, folder)
        except OSError as error:  # a disk without room for the lock, most likely
            log.warning("a stale working directory cannot be removed", folder=name, error=str(error))


def _remove_unless_in_use(name: str, folder: Path) -> None:
    lock = file_locks.try_lock(folder / LOCK)
    if lock is None:
        return
    try:
        if name.startswith(UPLOAD):
            _remove_upload(name.removeprefix(UPLOAD))
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _remove_upload(token: str) -> None:
    """Remove the file of an upload, which may be incomplete, unless an import has it."""
    with unit_of_work(write=False):
        used_by = select(ProjectImport.id).where(ProjectImport.storage_name == _upload_of(token))
        if db.session.scalar(used_by) is not None:
            return
    for name in storage().names(UPLOADS):
        if token in name:
            storage().delete(name)


def version_of(path: Path) -> str:
    """Return a hash of the content of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def throttled(check: Callable[[], None]) -> Callable[[], None]:
    """Return a function that calls ``check`` at most every few seconds."""
    last = time.monotonic()

    def call() -> None:
        nonlocal last
        if time.monotonic() - last >= CHECK_INTERVAL_SECONDS:
            last = time.monotonic()
            check()

    return call


def remove_leftovers(project_id: int) -> None:
    """Remove the files of a project without a row, which killed workers left.

    While another export runs, its file has no row yet: then the export that ends last removes them.
    """
    db.session.commit()
    live = select(ProjectExport.id).where(ProjectExport.project_id == project_id, ProjectExport.state.in_(LIVE))
    has_running_exports = db.session.scalar(live.limit(1)) is not None
    names_in_use = {
        name
        for model in (ProjectFile, ProjectExport)
        for name in db.session.scalars(select(model.storage_name).where(model.project_id == project_id))
    }
    db.session.commit()
    if has_running_exports:
        return
    for name in storage().names(folder_of(project_id)):
        if name not in names_in_use and not _is_being_uploaded(name):
            storage().delete(name)


def _is_being_uploaded(name: str) -> bool:
    """Whether an object may be an upload that is stored but has no row yet."""
    return f"/{UPLOADS_FOLDER}/" in name and storage().modified(name) > clock.now() - UPLOAD_TIME


def _create_locked(folder: Path) -> int:
    """Create an empty directory; return the descriptor of its lock file, which is locked until it is closed."""
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        with suppress(FileNotFoundError):  # it may be removed as stale before it is locked
            lock = _lock_new(folder)
            if file_locks.is_at(folder / LOCK, lock):
                return lock
            os.close(lock)


def _lock_new(folder: Path) -> int:
    """Lock a new directory, which is removed if the disk is full."""
    try:
        return file_locks.lock(folder / LOCK)
    except OSError:
        with suppress(OSError):
            folder.rmdir()
        raise


def _root() -> Path:
    data_dir: Path = current_app.config["SETTINGS"].data_dir
    return data_dir / "transfers"
