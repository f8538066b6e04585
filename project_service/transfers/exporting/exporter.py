"""The export of a project. A worker that takes an export over starts again."""

from __future__ import annotations

import datetime as dt
import functools
import itertools
from collections.abc import Iterator
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

import structlog
from sqlalchemy import Connection, select

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.domain import instance_settings
from project_service.domain.project_files import ProjectFile
from project_service.domain.projects import Project, folder_of
from project_service.domain.repositories import bundles, models
from project_service.kit import clock, exact_json, jobs
from project_service.kit.db.session import db, one, snapshot, unit_of_work
from project_service.kit.http import urls
from project_service.kit.http.errors import DISK_FULL_ERRNOS
from project_service.kit.storage import storage
from project_service.transfers.archive import layout
from project_service.transfers.archive.writer import ArchiveWriter, open_archive
from project_service.transfers.exporting.context import ExportContext
from project_service.transfers.exporting.repositories import add_repositories, find_repository, refs_of
from project_service.transfers.exporting.serializers import count_rows, relations_of, serialize
from project_service.transfers.exporting.serializers.nested import load_nested
from project_service.transfers.exporting.serializers.project import serialize_project
from project_service.transfers.exporting.templates import Line, without_empty_keys
from project_service.transfers.models import FINISHED, LIVE, STARTED, ProjectExport
from project_service.transfers.notifications import fail_export, notify
from project_service.transfers.remote import sending
from project_service.transfers.workdir import remove_leftovers, throttled, working_directory

MAX_FILE_NAME_LENGTH = 51
ENDING = "_export.tar.gz"
MAX_LINE_BYTES = 50 << 20
PROGRESS_INTERVAL_ROWS = 2000
BUFFER_BYTES = 1 << 20
MAX_BYTES_IN_MEMORY = 4 << 20  # of the rows of a relation; more are written to the disk

log = structlog.get_logger(__name__)


class ExportCanceled(Exception):
    """The project is being removed."""


def run(export_id: int, project_id: int) -> None:
    """Run an export until it is finished, has failed, or its project is removed."""
    name = f"{folder_of(project_id)}/exports/{export_id}.tar.gz"
    try:
        if not _start(export_id):
            return
        try:
            with working_directory(f"export-{export_id}") as folder:
                size = _write_archive(export_id, project_id, name, folder)
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                _check_not_canceled(export_id)  # the files of a project are removed before its rows
            if error.errno not in DISK_FULL_ERRNOS:
                raise
            with jobs.step():
                fail_export(_current_export(export_id), "No space left on device")
        else:
            _finish(export_id, name, size)
    except ExportCanceled:
        # the removal of the project may have run before the file was stored
        storage().delete(name)
    else:
        remove_leftovers(project_id)


def file_name(full_path: str, moment: dt.datetime) -> str:
    """Return the name of the file: the time and the path (export reference, section 4)."""
    stamp = f"{moment:%Y-%m-%d_%H-%M}-{moment.microsecond // 1000:03}"
    return f"{stamp}_{full_path.replace('/', '_')}"[:MAX_FILE_NAME_LENGTH] + ENDING


def _start(export_id: int) -> bool:
    with jobs.step():
        export = _current_export(export_id)
        if export.state not in LIVE:
            return False
        export.state = STARTED
        export.rows_done, export.relations_done = 0, 0
        return True


def _write_archive(export_id: int, project_id: int, name: str, folder: Path) -> int:
    path = folder / "archive.tar.gz"
    with unit_of_work(write=False):
        export = _current_export(export_id)
        project, user = export.project, export.user
        administers = user is not None and allowed(Caller.of(user), Ability.OWN_NAMESPACE, project.namespace)
        with_group_members = administers and project.namespace.kind == "group"
        db.session.expunge(project)
        db.session.expunge(export)
    with snapshot() as connection, open_archive(path) as archive:
        context = ExportContext(connection, project, with_group_members=with_group_members)
        load_nested(context)
        archive.add_bytes("VERSION", layout.FORMAT.encode())
        archive.add_bytes("GITLAB_VERSION", layout.RELEASE.encode())
        archive.add_bytes("GITLAB_REVISION", layout.REVISION.encode())
        attributes = serialize_project(context, export.description)
        if _needs_default_branch(connection, project):
            attributes["default_branch"] = project.default_branch
        archive.add_bytes("tree/project.json", exact_json.dumps(attributes))
        _add_relations(export_id, context, archive, folder)
        add_repositories(archive, connection, project, folder)
        _add_files(archive, connection, project_id)
    storage().store_file(path, name)
    return path.stat().st_size


def _add_relations(export_id: int, context: ExportContext, archive: ArchiveWriter, folder: Path) -> None:
    relations = relations_of(context)
    total, done = count_rows(context), 0
    _store_progress(export_id, 0, total, 0, len(relations))
    for count, relation in enumerate(relations, start=1):
        # the header of a member has its size: the rows are written to a file of their own first
        with SpooledTemporaryFile(MAX_BYTES_IN_MEMORY, buffering=BUFFER_BYTES, dir=str(folder)) as file:
            for _ in _write(context, relation, file):
                done += 1
                if done % PROGRESS_INTERVAL_ROWS == 0:
                    _store_progress(export_id, done, total, count, len(relations))
            size = file.tell()
            file.seek(0)
            archive.add_stream(f"tree/project/{relation}.ndjson", file, size)
        _store_progress(export_id, done, total, count, len(relations))


def _write(context: ExportContext, relation: str, file: IO[bytes]) -> Iterator[int]:
    """Write the lines of a relation; generate the size of each.

    Of a relation that is a single object only the first row is written: two would not be valid JSON.
    """
    single = relation in layout.OBJECTS
    wrote = False
    for line in itertools.islice(serialize(context, relation), 1 if single else None):
        raw = _dump(relation, line, b"" if single else b"\n")
        if raw is not None:
            wrote = True
            yield file.write(raw)
    if single and not wrote:
        file.write(b"null")


def _dump(relation: str, line: Line, end: bytes) -> bytes | None:
    """Return a row as a line; nothing if it is too long."""
    raw = exact_json.dumps(line) + end  # a copy: the buffer of the library may be larger
    if len(raw) > MAX_LINE_BYTES or exact_json.has_too_many_values(raw):  # importers would refuse it
        raw = exact_json.dumps(without_empty_keys(relation, line)) + end
        if exact_json.has_too_many_values(raw):
            log.warning("a row has too many values to be imported again", relation=relation, size=len(raw))
    if len(raw) > MAX_LINE_BYTES:
        log.warning("a row is too long for an archive", relation=relation, size=len(raw))
        return None
    return raw


def _store_progress(export_id: int, rows: int, rows_total: int, relations: int, relations_total: int) -> None:
    with jobs.step():
        export = _current_export(export_id)
        export.rows_done, export.rows_total = min(rows, rows_total), rows_total
        export.relations_done, export.relations_total = relations, relations_total


def _needs_default_branch(connection: Connection, project: Project) -> bool:
    repository, branch = find_repository(connection, project.id, models.CODE), project.default_branch
    return (
        repository is not None and branch is not None and bundles.is_ambiguous(refs_of(connection, repository), branch)
    )


def _add_files(archive: ArchiveWriter, connection: Connection, project_id: int) -> None:
    archive.add_directory("snippets")
    types: dict[str, object] = {}
    last = ""
    while True:
        rows = connection.execute(
            select(ProjectFile.path, ProjectFile.storage_name, ProjectFile.size, ProjectFile.data)
            .where(ProjectFile.project_id == project_id, ProjectFile.path > last)
            .order_by(ProjectFile.path)
            .limit(500)
        ).all()
        for path, name, size, data in rows:
            with storage().open(name) as file:
                archive.add_stream(path, file, size)
            if data is not None:
                types[path.removeprefix("lfs-objects/")] = data
        if not rows:
            break
        last = rows[-1][0]
    archive.add_bytes("lfs-objects.json", exact_json.dumps(types))


def _finish(export_id: int, name: str, size: int) -> None:
    """Upload the file if that was requested, replace the former file, and notify the user."""
    with unit_of_work(write=False):
        export = _current_export(export_id)
        url, method = export.upload_url, export.upload_method or "PUT"
        allowed_hosts = instance_settings.outgoing_policy()
    problem = None
    if url:
        with storage().open(name) as file:
            check = throttled(functools.partial(_check_not_canceled, export_id))
            problem = sending.upload(file, size, url, method, allowed_hosts, check)
    with jobs.step():
        # the lock serializes exports that finish at the same time
        of_export = select(ProjectExport.project_id).where(ProjectExport.id == export_id).scalar_subquery()
        db.session.execute(select(Project.id).where(Project.id == of_export).with_for_update())
        export = _current_export(export_id)
        with_file = select(ProjectExport).where(
            ProjectExport.project_id == export.project_id,
            ProjectExport.id != export_id,
            ProjectExport.storage_name.is_not(None),
        )
        former_exports = db.session.scalars(with_file).all()
        for other in former_exports:
            if other.id < export_id:
                other.storage_name = None
        export.state, export.error = FINISHED, problem
        # an export that was started later has newer content
        export.storage_name = None if any(other.id > export_id for other in former_exports) else name
        export.size = size
        export.file_name = file_name(export.project.full_path, clock.now())
        export.rows_done = export.rows_total or 0
        export.upload_url = None  # it may contain credentials
        if problem is None:
            address = urls.absolute(f"/{export.project.full_path}/download_export")
            notify(export, "Project was exported", f"The project {export.project.full_path} was exported.\n\n{address}")
        else:
            notify(export, "Project export failed", f"{problem}\n\nThe archive of {export.project.full_path} is kept.")


def _check_not_canceled(export_id: int) -> None:
    with unit_of_work(write=False):
        _current_export(export_id)


def _current_export(export_id: int) -> ProjectExport:
    """Return the current row; raises ``ExportCanceled`` if the project is being or has been removed."""
    statement = select(ProjectExport).join(ProjectExport.project)
    statement = statement.where(ProjectExport.id == export_id, Project.deleting_since.is_(None))
    return one(statement.execution_options(populate_existing=True), ExportCanceled())
