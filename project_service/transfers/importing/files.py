"""Storing the files of an archive: uploads, LFS objects, the avatar, bundles of snippets."""

from __future__ import annotations

import datetime as dt
import hashlib
from pathlib import Path
from typing import Any

from sqlalchemy import select

from project_service.domain.accounts import avatars
from project_service.domain.project_files import ProjectFile
from project_service.domain.projects import Project, folder_of
from project_service.domain.repositories import bundles
from project_service.domain.repositories.git import BadBundle
from project_service.domain.tracker.documents.snippets import Snippet
from project_service.kit import jobs
from project_service.kit.db.session import db, insert, unit_of_work
from project_service.kit.http.errors import Invalid
from project_service.kit.storage import storage
from project_service.transfers.archive import layout, reader
from project_service.transfers.archive.contents import Unpacked
from project_service.transfers.importing.mapping.context import MAX_MESSAGE_LENGTH
from project_service.transfers.importing.refusals import invalid, unreadable
from project_service.transfers.importing.single_rows import failure_of
from project_service.transfers.models import ImportFailure

FILES_AT_ONCE = 50


def store_files(project_id: int, unpacked: Unpacked) -> None:
    """Store the files, some per transaction; a repeated attempt stores them again under the same names."""
    types = reader.lfs_types_of(unpacked)
    carried = list(unpacked.carried.values())
    for start in range(0, len(carried), FILES_AT_ONCE):
        rows = []
        for file in carried[start : start + FILES_AT_ONCE]:
            name = f"{folder_of(project_id)}/files/{hashlib.sha256(file.path.encode()).hexdigest()}"
            storage().store_file(file.place, name)
            values = {"project_id": project_id, "path": file.path, "storage_name": name, "size": file.size}
            rows.append(values | {"data": types.get(file.path.removeprefix("lfs-objects/"))})
        with jobs.step():
            statement = insert(ProjectFile).on_conflict_do_nothing(index_elements=["project_id", "path"])
            db.session.execute(statement, rows)


def adopt_avatar(project: Project) -> None:
    """Make the avatar of an archive the picture of the project, or record why not; the file stays for exports."""
    is_avatar = ProjectFile.path.startswith(f"{avatars.ARCHIVE_FOLDER}/", autoescape=True)
    statement = select(ProjectFile).where(ProjectFile.project_id == project.id, is_avatar).order_by(ProjectFile.path)
    file = db.session.scalar(statement.limit(1))
    if file is None:
        return
    with storage().open(file.storage_name) as stream:
        content = stream.read(avatars.MAX_BYTES + 1)
    try:
        avatars.store_avatar(project, file.filename, content)
    except Invalid as error:
        refused = invalid(f"Avatar {'; '.join(error.message['avatar'])}")
        db.session.add(ImportFailure(project_id=project.id, **failure_of(refused, avatars.ARCHIVE_FOLDER, 0)))


def check_snippets(project_id: int, unpacked: Unpacked) -> None:
    """Raise ``BadBundle`` if the repository of a snippet is not valid (import reference, section 7).

    The name of a bundle is derived from the content of its snippet
    (archive format reference, section 1). A bundle of no snippet is stored unchecked.
    """
    bad = bad_snippet_bundles(unpacked)
    if not bad:
        return
    snippets = select(Snippet.id, Snippet.title, Snippet.extra, Snippet.created_at, Snippet.updated_at)
    snippets = (
        snippets.where(Snippet.project_id == project_id).order_by(Snippet.id).execution_options(yield_per=FILES_AT_ONCE)
    )
    with unit_of_work(write=False):
        for number, title, extra, *moments in db.session.execute(snippets):
            if bundle_of_snippet(title, extra, *moments) in bad:
                raise BadBundle(f"Invalid repository bundle for snippet with id {number}")


def bad_snippet_bundles(unpacked: Unpacked) -> set[str]:
    """Return the paths of bundles of snippets that are not valid."""
    return {path for path, file in unpacked.carried.items() if _is_bad_bundle(path, file.place)}


def bundle_of_snippet(title: str, extra: dict[str, Any] | None, *moments: dt.datetime) -> str:
    """Return the path of the bundle of a snippet in the archive."""
    content = [
        title,
        (extra or {}).get("description") or "",
        *(f"{moment:%Y-%m-%d %H:%M:%S} UTC" for moment in moments),
    ]
    return layout.snippet_bundle("".join(map(str, content)))


def _is_bad_bundle(path: str, bundle: Path) -> bool:
    if not layout.SNIPPET_BUNDLE.fullmatch(path):
        return False
    try:
        bundles.check_head(bundle)
    except BadBundle:
        return True
    return False


def record_left_out_files(project_id: int, unpacked: Unpacked) -> None:
    """Record a failure for each file that was left out because of its name."""
    for name in unpacked.left_out:
        refused = unreadable(f"The file is left out for its name: {name!r}"[:MAX_MESSAGE_LENGTH])
        failure = ImportFailure(
            project_id=project_id,
            exception_class=refused.kind,
            exception_message=str(refused),
            source=refused.source,
            relation_name=name.partition("/")[0],
        )
        db.session.add(failure)
