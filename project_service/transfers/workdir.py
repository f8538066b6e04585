"""Where a transfer works on this machine, and its files in the storage."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import structlog
from flask import current_app
from sqlalchemy import select

from project_service.domain.projects import folder_of
from project_service.domain.repositories.models import Repository
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.storage import storage
from project_service.transfers.models import LIVE, ProjectExport, ProjectFile, ProjectImport

UPLOADS, UPLOAD = "imports", "upload-"  # a folder of the storage, and what a workplace of one that comes begins with
LOCK = ".lock"  # held by whoever works in the folder, for as long as they live
LOOK_EVERY_SECONDS = 5.0

log = structlog.get_logger(__name__)


@contextmanager
def workplace(name: str) -> Iterator[Path]:
    """An empty folder of this machine, gone at the end; what a killed worker left there is gone at the beginning."""
    folder = _root() / name
    with _take(folder) as lock:
        try:
            yield folder
        finally:
            if _is_in(folder, lock):  # whoever has taken the transfer over meanwhile has a new one
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def taking_in() -> Iterator[str]:
    """The name in the storage of an archive that is being uploaded.

    What a process that is killed meanwhile has written is known by its workplace, and goes with it.
    """
    token = secrets.token_hex(16)
    with workplace(UPLOAD + token):
        yield _upload_of(token)


def _upload_of(token: str) -> str:
    return f"{UPLOADS}/{token}.tar.gz"


def workplaces() -> list[str]:
    """The names of the folders that there are on this machine."""
    return sorted(folder.name for folder in _root().glob("*") if folder.is_dir())


def remove_workplaces(names: Collection[str]) -> None:
    """Remove folders of this machine whose transfers nobody goes on with; those that somebody still works in stay."""
    for name in names:
        folder = _root() / name
        try:
            with suppress(FileNotFoundError, BlockingIOError), (folder / LOCK).open("ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if name.startswith(UPLOAD):
                    _remove_upload(name.removeprefix(UPLOAD))
                shutil.rmtree(folder, ignore_errors=True)
        except OSError as error:  # a disk without room for the lock, most likely
            log.warning("what a worker left cannot be removed", folder=name, error=str(error))


def _remove_upload(token: str) -> None:
    """Remove what came of an upload, half written perhaps, unless an import has it."""
    with unit_of_work(write=False):
        wanted = select(ProjectImport.id).where(ProjectImport.storage_name == _upload_of(token))
        if db.session.scalar(wanted) is not None:
            return
    for found in storage().names(UPLOADS):
        if token in found:
            storage().delete(found)


def version_of(place: Path) -> str:
    """A name for the content of a file, the same whoever asks and however often."""
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def now_and_then(look: Callable[[], None]) -> Callable[[], None]:
    """What may be called at every turn, and looks every few seconds."""
    last = time.monotonic()

    def check() -> None:
        nonlocal last
        if time.monotonic() - last >= LOOK_EVERY_SECONDS:
            last = time.monotonic()
            look()

    return check


def remove_leftovers(project_id: int) -> None:
    """Remove the files of a project that no row speaks of: what killed workers left.

    While something else is made for the project its files are not spoken of yet: then whoever ends last does this.
    """
    db.session.commit()
    live = select(ProjectExport.id).where(ProjectExport.project_id == project_id, ProjectExport.state.in_(LIVE))
    busy = db.session.scalar(live.limit(1)) is not None
    known = {
        name
        for model in (ProjectFile, Repository, ProjectExport)
        for name in db.session.scalars(select(model.storage_name).where(model.project_id == project_id))
    }
    db.session.commit()
    if busy:
        return
    for name in storage().names(folder_of(project_id)):
        if name not in known:
            storage().delete(name)


def _take(folder: Path) -> IO[bytes]:
    """Make a folder anew; its lock, which is held until it is closed."""
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        with suppress(FileNotFoundError):  # it may be removed as one that was left before it is held
            lock = _opened(folder)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_in(folder, lock):
                return lock
            lock.close()


def _opened(folder: Path) -> IO[bytes]:
    """The lock of a new folder, which goes again when a full disk has room for it alone."""
    try:
        return (folder / LOCK).open("ab")
    except OSError:
        with suppress(OSError):
            folder.rmdir()
        raise


def _is_in(folder: Path, lock: IO[bytes]) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat((folder / LOCK).stat(), os.fstat(lock.fileno()))
    return False


def _root() -> Path:
    data_dir: Path = current_app.config["SETTINGS"].data_dir
    return data_dir / "transfers"
