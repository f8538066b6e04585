"""Where a transfer works on this machine, and its files in the storage."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from flask import current_app
from sqlalchemy import select

from project_service.core.projects import folder_of
from project_service.core.repositories import Repository
from project_service.kit import database
from project_service.kit.database import db
from project_service.kit.storage import storage
from project_service.transfers.models import LIVE, ProjectExport, ProjectFile

UPLOADS = "imports"
ABANDONED_SECONDS = 2 * 86400
LOOK_EVERY_SECONDS = 5.0


@contextmanager
def workplace(name: str) -> Iterator[Path]:
    """An empty folder of this machine, gone at the end; what a killed worker left there is gone at the beginning."""
    folder = _root() / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep_workplaces() -> None:
    """Remove the folders of transfers that ended long ago, or on another machine."""
    for folder in _root().glob("*"):
        if time.time() - folder.stat().st_mtime > ABANDONED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


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
    database.commit()
    live = select(ProjectExport.id).where(ProjectExport.project_id == project_id, ProjectExport.state.in_(LIVE))
    busy = db.session.scalar(live.limit(1)) is not None
    known = {
        name
        for model in (ProjectFile, Repository, ProjectExport)
        for name in db.session.scalars(select(model.storage_name).where(model.project_id == project_id))
    }
    database.commit()
    if busy:
        return
    for name in storage().names(folder_of(project_id)):
        if name not in known:
            storage().delete(name)


def _root() -> Path:
    data_dir: Path = current_app.config["SETTINGS"].data_dir
    return data_dir / "transfers"
