"""Store, find and remove uploads (uploads reference, section 2)."""

from __future__ import annotations

import re
import secrets
from typing import Any

from werkzeug.datastructures import FileStorage

from project_service.domain import instance_settings
from project_service.domain.accounts.users import User
from project_service.domain.project_files import UPLOAD_PATH, UPLOADS_FOLDER, ProjectFile, uploads_of
from project_service.domain.projects import Project, folder_of
from project_service.kit import clock
from project_service.kit.db.session import after_commit, db, one, writing
from project_service.kit.http.errors import BodyTooLarge, NotFound
from project_service.kit.storage import storage

MIB = 1 << 20
FORM_BYTES = 64 << 10  # what the body of a form has beside the file
MAX_NAME_BYTES = 200
SECRET_BYTES = 16
_UNSAFE = re.compile(r"[^\w.+-]")
# what is shown in the text itself; the name in the text has no ending then
EMBEDDED = (
    *("png", "jpg", "jpeg", "gif", "bmp", "tiff", "ico", "webp", "mp4", "m4v", "mov", "webm", "ogv"),
    *("mp3", "oga", "ogg", "spx", "wav"),
)
SVG = "svg"


def max_body_bytes() -> int:
    """How large the body of an upload may be."""
    return int(instance_settings.setting("max_attachment_size")) * MIB + FORM_BYTES


def clean_name(name: str) -> str:
    """Return a name that can be a part of an address: letters, digits and ``_ . - +``."""
    name = _UNSAFE.sub("_", re.split(r"[/\\]", name)[-1]) or "unnamed"
    if not name.strip("."):
        name = f"_{name}"
    stem, dot, ending = name.rpartition(".")
    while len(name.encode()) > MAX_NAME_BYTES:
        excess = len(name.encode()) - MAX_NAME_BYTES
        stem, ending = (stem[: -max(1, excess // 4)], ending) if len(stem) > 1 else (stem, ending[:-1])
        name = f"{stem}{dot}{ending}"
    return name


def add_upload(author: User, project: Project, file: FileStorage) -> ProjectFile:
    """Store a file, then its row: in a unit of work that only reads, so that nothing is locked meanwhile.

    Raises:
        BodyTooLarge: the file is larger than ``max_attachment_size``.

    """
    file.stream.seek(0, 2)
    size = file.stream.tell()
    if size > max_body_bytes() - FORM_BYTES:
        raise BodyTooLarge
    file.stream.seek(0)
    secret = secrets.token_hex(SECRET_BYTES)
    name = f"{folder_of(project.id)}/{UPLOADS_FOLDER}/{secret}"
    path = f"{UPLOADS_FOLDER}/{secret}/{clean_name(file.filename or '')}"
    row = ProjectFile(
        project_id=project.id,
        path=path,
        storage_name=name,
        size=size,
        created_at=clock.now(),
        uploaded_by_id=author.id,
    )
    storage().store(file.stream, name)
    try:
        with writing():
            db.session.add(row)
    except BaseException:
        storage().delete(name)
        raise
    return row


def find_upload(project: Project, upload_id: int) -> ProjectFile:
    """One upload by its id."""
    return one(uploads_of(project).where(ProjectFile.id == upload_id), NotFound())


def find_by_secret(project: Project, secret: str, filename: str) -> ProjectFile:
    """One upload by its secret and name."""
    path = f"{UPLOADS_FOLDER}/{secret}/{filename}"
    if UPLOAD_PATH.fullmatch(path) is None:
        raise NotFound
    return one(uploads_of(project).where(ProjectFile.path == path), NotFound())


def delete_upload(upload: ProjectFile) -> None:
    """Remove an upload; its object goes when the transaction is committed."""
    name = upload.storage_name
    db.session.delete(upload)
    db.session.flush()
    after_commit(lambda: storage().delete(name))


def described(upload: ProjectFile) -> dict[str, Any]:
    """Return an upload as the API answers it, with the Markdown that shows it or links to it."""
    stem, _, ending = upload.filename.rpartition(".")
    is_embedded = ending.lower() in EMBEDDED and bool(stem)
    alt = stem if is_embedded else upload.filename
    url = f"/{upload.path}"
    mark = "!" if is_embedded or ending.lower() == SVG else ""
    escaped = alt.replace("]", "\\]")
    return {
        "id": upload.id,
        "alt": alt,
        "url": url,
        "full_path": f"/-/project/{upload.project_id}{url}",
        "markdown": f"{mark}[{escaped}]({url})",
    }
