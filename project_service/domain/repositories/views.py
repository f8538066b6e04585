"""Local bare repositories: the only way to the objects and refs of a project's repository.

A view is a bare repository with the refs of one version, written from rows, whose objects are in the packs that this
machine has downloaded. Views and packs are a cache: they appear atomically and can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from project_service.domain import instance_settings
from project_service.domain.namespaces import Group, Namespace, NamespaceAncestor
from project_service.domain.projects import Project
from project_service.domain.repositories import packs
from project_service.domain.repositories.eviction import cache_of, clean_up
from project_service.domain.repositories.local_folders import in_use, locked_file, remove_unless_in_use
from project_service.domain.repositories.models import (
    CODE,
    Repository,
    RepositoryPack,
    RepositoryRef,
    repository_of,
    root,
)
from project_service.kit.db.session import db, snapshot

FALLBACK_BRANCH = "main"
MIN_AGE_SECONDS = 60  # of a view before it is removed: a reader may be about to lock it
CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
ESCAPED = re.compile(r"\\x([0-9a-f]{2})")


class ViewState(NamedTuple):
    """What a view is made of."""

    repository_id: int
    version: str
    head: str


@contextmanager
def repository_view(project: Project, kind: str = CODE) -> Iterator[Path | None]:
    """Provide a bare repository with all refs of a project as they are now; ``None`` if it has no repository.

    The folder shows one consistent state, is shared with other readers, must not be changed, and is there until the
    block ends. ``kind`` is one of ``models.KINDS``. Open it with ``git.opened`` or pass it to ``git.run``.
    """
    repository = repository_of(project, kind)
    if repository is None:
        yield None
        return
    with view_of(repository, head_of(project, repository)) as folder:
        yield folder


@contextmanager
def served_view(project: Project, kind: str = CODE) -> Iterator[Path]:
    """The same for clients of git: an empty repository if there is none."""
    with repository_view(project, kind) as folder:
        yield _empty_view(head_of(project, None)) if folder is None else folder


@contextmanager
def view_of(repository: Repository, head: str) -> Iterator[Path]:
    """Provide a bare repository of a repository whose HEAD is a branch."""
    state = ViewState(repository.id, repository.version, head)
    while True:
        folder = _path_of(state)
        with in_use(folder) as exists:
            if exists:
                os.utime(cache_of(state.repository_id))
                yield folder
                return
        state = _build(state)


def head_of(project: Project, repository: Repository | None) -> str:
    """The branch that HEAD names: the default branch, or what it is going to be."""
    named = project.default_branch if repository is None or repository.kind == CODE else None
    stored = repository.head if repository is not None else None
    return named or stored or default_branch_of(project.namespace) or FALLBACK_BRANCH


def default_branch_of(namespace: Namespace) -> str | None:
    """The default branch of new projects: that of the nearest group above, or of the instance."""
    above = (
        select(Group.default_branch)
        .join(NamespaceAncestor, NamespaceAncestor.ancestor_id == Group.id)
        .where(NamespaceAncestor.namespace_id == namespace.id, Group.default_branch.is_not(None))
        .order_by(func.length(Group.full_path).desc())
    )
    of_instance: str | None = instance_settings.setting("default_branch_name")
    return db.session.scalar(above.limit(1)) or of_instance


def machine_folder() -> Path:
    """The directory of this machine for repositories."""
    return root()


def encode_name(name: str) -> bytes:
    """The bytes of the name of a ref, from its text in the database."""
    raw = name.encode()
    return ESCAPED.sub(lambda match: chr(int(match[1], 16)), raw.decode("latin-1")).encode("latin-1")


def decode_name(raw: bytes) -> str:
    """The text of the name of a ref for the database."""
    return raw.decode("utf-8", "backslashreplace")


def write_bare_repository(folder: Path, head: str, packed_refs: bytes, objects: Path | None) -> None:
    """Write a bare repository without objects of its own, which borrows those of another folder."""
    for name in ("objects/pack", "objects/info", "refs"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_bytes(b"ref: refs/heads/" + encode_name(head) + b"\n")
    (folder / "config").write_text(CONFIG)
    (folder / "packed-refs").write_bytes(packed_refs)
    if objects is not None:
        (folder / "objects/info/alternates").write_bytes(os.fsencode(objects) + b"\n")


def _path_of(state: ViewState) -> Path:
    head = hashlib.sha256(state.head.encode()).hexdigest()[:8]
    return cache_of(state.repository_id) / "views" / f"{state.version}-{head}.git"


def _build(wanted: ViewState) -> ViewState:
    """Write a view of a repository as it is now; return its state, which may be newer than the wanted one."""
    base = cache_of(wanted.repository_id)
    with locked_file(base / "lock"), snapshot() as connection:
        of_id = select(Repository.version).where(Repository.id == wanted.repository_id)
        version = connection.scalar(of_id)
        if version is None:
            raise FileNotFoundError("the repository has been deleted")
        state = wanted._replace(version=version)
        target = _path_of(state)
        if target.exists():
            return state
        packed_refs = b"".join(_packed_refs(connection, state.repository_id))
        names = _live_packs(connection, state.repository_id)
        connection.rollback()
        pack_folder = base / "objects" / "pack"
        pack_folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            packs.provide(name, pack_folder)
        incomplete = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            write_bare_repository(incomplete, state.head, packed_refs, base / "objects")
            incomplete.rename(target)
        finally:
            shutil.rmtree(incomplete, ignore_errors=True)
        others = [path for path in target.parent.glob("[0-9a-f]*.git") if path != target]
        held_views = [other for other in others if not remove_unless_in_use(other, MIN_AGE_SECONDS)]
        if not held_views:
            _remove_packs_except(pack_folder, names)
    clean_up()
    return state


def _remove_packs_except(folder: Path, object_names: Iterable[str]) -> None:
    """Remove packs that were replaced; no view needs them."""
    needed = {name.rpartition("/")[2] for name in object_names}
    for path in folder.glob("pack-*"):
        if path.stem not in needed:
            path.unlink(missing_ok=True)


def _packed_refs(connection: Connection, repository_id: int) -> Iterator[bytes]:
    yield b"# pack-refs with: peeled fully-peeled sorted \n"
    columns = (RepositoryRef.name, RepositoryRef.target, RepositoryRef.peeled)
    of_repository = select(*columns).where(RepositoryRef.repository_id == repository_id)
    rows = [(encode_name(name), target, peeled) for name, target, peeled in connection.execute(of_repository)]
    for name, target, peeled in sorted(rows):
        yield b"%s %s\n" % (target.encode(), name)
        if peeled:
            yield b"^%s\n" % peeled.encode()


def _live_packs(connection: Connection, repository_id: int) -> list[str]:
    live = RepositoryPack.repository_id == repository_id, RepositoryPack.replaced_at.is_(None)
    return list(connection.scalars(select(RepositoryPack.object_name).where(*live)))


def _empty_view(head: str) -> Path:
    """Return an empty bare repository whose HEAD is a branch."""
    digest = hashlib.sha256(head.encode()).hexdigest()[:16]
    wanted = root() / f"empty-{digest}.git"
    if not wanted.exists():
        incomplete = wanted.with_name(f".{wanted.name}.{secrets.token_hex(4)}")
        write_bare_repository(incomplete, head, b"", None)
        try:
            incomplete.rename(wanted)
        except OSError:  # another process was first
            shutil.rmtree(incomplete, ignore_errors=True)
    return wanted
