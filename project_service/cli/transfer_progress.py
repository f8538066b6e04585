"""Starting imports and exports from the command line, and following their progress."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from flask import g
from werkzeug.datastructures import FileStorage

from project_service.access.abilities import Ability, judge
from project_service.access.identity import Caller
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.http.errors import Forbidden, NotFound
from project_service.kit.storage import CHUNK_BYTES, storage
from project_service.transfers import queries, service
from project_service.transfers.models import FAILED, FINISHED, ProjectExport, ProjectImport

POLL_SECONDS = 0.5


class TransferFailed(Exception):
    """The import or export failed; the text says why."""


@dataclass(frozen=True, slots=True)
class TransferProgress:
    """The rows that are done, and their total once it is known."""

    done: int
    total: int | None
    ended: bool


def start_import(user: User, stream: IO[bytes], name: str, path: str, **options: Any) -> Project:
    """Upload an archive under a file name and enqueue its import in the name of a user."""
    g.caller = Caller.of(user)
    with unit_of_work(write=False):
        return service.import_file(user, FileStorage(stream, name), path=path, **options)


def follow_import(project_id: int, pause: Callable[[float], None] = time.sleep) -> Iterator[TransferProgress]:
    """Generate the progress of an import until it has ended; raises ``TransferFailed`` if it failed."""
    while True:
        with unit_of_work(write=False):
            project = db.session.get_one(Project, project_id, populate_existing=True)
            record = db.session.query(ProjectImport).filter_by(project_id=project_id).populate_existing().one()
            status, error = project.import_status, project.import_error
            yield TransferProgress(record.rows_done, record.rows_total, status in (FINISHED, FAILED))
        if status == FAILED:
            raise TransferFailed(error or "the import failed")
        if status == FINISHED:
            return
        pause(POLL_SECONDS)


def left_out(project_id: int) -> Iterator[str]:
    """Generate a line for each row or file that was left out; of very many their number and the last ones."""
    with unit_of_work(write=False):
        project = db.session.get_one(Project, project_id)
        failures, count = queries.failures_of(project), queries.count_failures(project)
        if count > len(failures):
            yield f"{count} rows or files were left out, of which these are the last {len(failures)}"
        for failure in reversed(failures):
            origin = (
                failure.relation_name
                if failure.line_number is None
                else f"{failure.relation_name}, line {failure.line_number}"
            )
            # a message may quote the archive, and terminals execute control characters
            yield "".join(sign if sign.isprintable() else " " for sign in f"{origin}: {failure.exception_message}")


def start_export(user: User, project: Project) -> int:
    """Enqueue the export of a project in the name of a user; return the id of the export."""
    with unit_of_work():
        try:
            judge(Caller.of(user), Ability.EXPORT_PROJECT, project)
        except Forbidden as error:
            text = f"{user.username} may not export {project.full_path}: that takes at least a maintainer"
            raise TransferFailed(text) from error
        except NotFound as error:
            raise TransferFailed(f"{user.username} may not see {project.full_path}") from error
        return service.start_export(user, project, None, None).id


def follow_export(
    export_id: int, target: Path | IO[bytes], pause: Callable[[float], None] = time.sleep
) -> Iterator[TransferProgress]:
    """Generate the progress of an export, then write its archive; raises ``TransferFailed`` if there is none."""
    while True:
        with unit_of_work(write=False):
            export = db.session.get_one(ProjectExport, export_id, populate_existing=True)
            state, error, name = export.state, export.error, export.storage_name
            yield TransferProgress(export.rows_done, export.rows_total, state in (FINISHED, FAILED))
        if state == FAILED or (state == FINISHED and name is None):
            raise TransferFailed(error or "a newer export has taken the place of this one")
        if state == FINISHED:
            _fetch(str(name), target)
            return
        pause(POLL_SECONDS)


def _fetch(name: str, target: Path | IO[bytes]) -> None:
    with storage().open(name) as source:
        try:
            with target.open("wb") if isinstance(target, Path) else nullcontext(target) as file:
                shutil.copyfileobj(source, file, CHUNK_BYTES)
                file.flush()
        except BrokenPipeError:  # the reader of the pipe has closed it
            raise
        except OSError as error:
            raise TransferFailed(f"the archive cannot be written ({error.strerror})") from error
