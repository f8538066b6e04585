"""Pictures of users, groups and projects: checks, storage and addresses (uploads reference, section 4)."""

from __future__ import annotations

import hashlib
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from werkzeug.datastructures import FileStorage

from project_service.domain.namespaces import Group, Namespace
from project_service.domain.projects import Project
from project_service.domain.users import User
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
_UNSAFE = re.compile(r"[^\w.+-]")
_TIFF_OR_ICO = re.compile(rb"II\*\x00|MM\x00\*|\x00\x00\x01\x00")

Owner = User | Group | Project


def set_avatar(owner: Owner, file: FileStorage | None) -> None:
    """Store the picture of a user, group or project, or remove it.

    Raises:
        Invalid: by its ending or its bytes the file is no picture that browsers show, or it is too large.

    """
    former = _object_of(owner)
    if file is None:
        owner.avatar_url = None
    else:
        content = file.stream.read(MAX_BYTES + 1)
        name = _UNSAFE.sub("_", re.split(r"[/\\]", file.filename or "")[-1])[-100:]
        _check(name, content)
        kind = _kind(owner)
        digest = hashlib.sha256(content).hexdigest()[:DIGEST_LENGTH]
        # the digest lets browsers see a new picture at once, and the former object stay until the commit
        owner.avatar_url = f"/uploads/-/system/{kind}/avatar/{owner.id}/{name}?v={digest}"
        with storage().write(_object_name(kind, owner.id, digest)) as target:
            target.write(content)
    current = _object_of(owner)
    if former is not None and former != current:
        after_commit(lambda: storage().delete(former))
    db.session.flush()


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
