"""Pictures of users, groups and projects: checks, storage and addresses (uploads reference, section 4)."""

from __future__ import annotations

import functools
import hashlib
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sqlalchemy import select
from werkzeug.datastructures import FileStorage

from project_service.domain.accounts.users import User
from project_service.domain.namespaces import Group, Namespace, namespace_of
from project_service.domain.project_files import ProjectFile
from project_service.domain.projects import Project
from project_service.kit.db.session import after_commit, db
from project_service.kit.http import raw_content
from project_service.kit.http.errors import Invalid, NotFound
from project_service.kit.storage import storage

MAX_BYTES = 200 << 10
ENDINGS = ("png", "jpg", "jpeg", "gif", "bmp", "tiff", "ico", "webp")
UNSUPPORTED = f"file format is not supported. Please try one of the following supported formats: {', '.join(ENDINGS)}"
TOO_BIG = "is too big (should be at most 200 KiB)"
DIGEST_LENGTH = 16
FOLDER = "avatars"  # of the storage
ARCHIVE_FOLDER = "avatar"  # of archives
_UNSAFE = re.compile(r"[^\w.+-]")
_TIFF_OR_ICO = re.compile(rb"II\*\x00|MM\x00\*|\x00\x00\x01\x00")

Owner = User | Group | Project


def set_avatar(owner: Owner, file: FileStorage | None) -> None:
    """Store the picture of a user, group or project, or remove it; raise ``Invalid`` as ``store_avatar``."""
    if file is None:
        _replace(owner, None)
    else:
        store_avatar(owner, file.filename or "", file.stream.read(MAX_BYTES + 1))


def store_avatar(owner: Owner, filename: str, content: bytes) -> None:
    """Store a picture with the name of its file.

    Raises:
        Invalid: by its ending or its bytes the file is no picture that browsers show, or it is too large.

    """
    name = _UNSAFE.sub("_", re.split(r"[/\\]", filename)[-1])[-100:]
    _check(name, content)
    _replace(owner, (name, content))


def remove_avatars(kind: str, owner_id: int) -> None:
    """Delete what the storage has of the pictures of a user or group that is removed."""
    for name in storage().names(f"{FOLDER}/{kind}/{owner_id}"):
        storage().delete(name)


def _replace(owner: Owner, file: tuple[str, bytes] | None) -> None:
    former = _object_of(owner)
    if file is None:
        owner.avatar_url = None
    else:
        name, content = file
        kind = _kind(owner)
        digest = hashlib.sha256(content).hexdigest()[:DIGEST_LENGTH]
        # the digest lets browsers see a new picture at once, and the former object stay until the commit
        owner.avatar_url = f"/uploads/-/system/{kind}/avatar/{owner.id}/{name}?v={digest}"
        with storage().write(_object_name(kind, owner.id, digest)) as target:
            target.write(content)
    current = _object_of(owner)
    if isinstance(owner, Project):
        _keep_for_archives(owner, file, current, former)
    elif isinstance(owner, User) and owner.namespace_id is not None:
        namespace_of(owner).avatar_url = owner.avatar_url
    if former is not None and former != current:
        after_commit(lambda: storage().delete(former))
    db.session.flush()


def _keep_for_archives(
    project: Project, file: tuple[str, bytes] | None, object_name: str | None, former_name: str | None
) -> None:
    """Make the picture the file of the project that archives have; it is deleted with the project."""
    is_avatar = ProjectFile.path.startswith(f"{ARCHIVE_FOLDER}/", autoescape=True)
    former = db.session.scalars(select(ProjectFile).where(ProjectFile.project_id == project.id, is_avatar)).all()
    for row in former:
        db.session.delete(row)
        if row.storage_name not in (former_name, object_name):
            after_commit(functools.partial(storage().delete, row.storage_name))
    db.session.flush()
    if file is not None and object_name is not None:
        path, size = f"{ARCHIVE_FOLDER}/{file[0]}", len(file[1])
        db.session.add(ProjectFile(project_id=project.id, path=path, storage_name=object_name, size=size))


def read_avatar(owner: Owner) -> tuple[str, bytes]:
    """Return the name and the bytes of a picture; ``NotFound`` without one."""
    name = _object_of(owner)
    if name is None:
        raise NotFound("Avatar")
    with storage().open(name) as file:
        return urlsplit(owner.avatar_url or "").path.rpartition("/")[2], file.read()


def _check(name: str, content: bytes) -> None:
    is_picture = raw_content.type_of(content) in raw_content.IMAGES or _TIFF_OR_ICO.match(content)
    if name.rpartition(".")[2].lower() not in ENDINGS or not is_picture:
        raise Invalid(avatar=UNSUPPORTED)
    if len(content) > MAX_BYTES:
        raise Invalid(avatar=TOO_BIG)


def _kind(owner: Any) -> str:
    return "user" if isinstance(owner, User) else "group" if isinstance(owner, Namespace) else "project"


def _object_of(owner: Owner) -> str | None:
    parts = urlsplit(owner.avatar_url or "")
    digest = parse_qs(parts.query).get("v", [""])[0]
    if not parts.path.startswith("/uploads/-/system/") or not digest:
        return None
    return _object_name(_kind(owner), owner.id, digest)


def _object_name(kind: str, owner_id: int, digest: str) -> str:
    return f"{FOLDER}/{kind}/{owner_id}/{digest}"
