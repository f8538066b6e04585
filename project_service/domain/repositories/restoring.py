"""Repositories from bundles: their packs go to the storage, their refs into rows."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import insert

from project_service.domain.projects import Project
from project_service.domain.repositories import bundles, git, packs
from project_service.domain.repositories.models import Repository, RepositoryRef
from project_service.domain.repositories.packs import StoredPack
from project_service.domain.repositories.protected_refs import protect_default_branch
from project_service.domain.repositories.views import decode_name
from project_service.kit.db.session import db

VERSION_BYTES = 16
PEELED = b"^{}"


@dataclass(frozen=True, slots=True)
class RestoredContent:
    """What was read from a bare repository: stored packs, refs, the branch of HEAD, the header of the bundle."""

    packs: list[StoredPack]
    refs: dict[str, tuple[str, str | None]]
    head: str | None
    header: bytes | None


def store_content(project_id: int, folder: Path, bundle: Path | None) -> RestoredContent:
    """Store the packs of a bare repository, and read its refs.

    ``bundle`` is what it was restored from, unless it has been changed since.
    """
    bundles.keep_detached_head(folder)
    stored = packs.store_packs(project_id, folder)
    pack_files = list(folder.glob("objects/pack/*.pack"))
    header = (
        bundles.header_of(bundle, pack_files[0]) if bundle is not None and len(pack_files) == len(stored) == 1 else None
    )
    return RestoredContent(stored, refs_in(folder), bundles.default_branch(folder), header)


def refs_in(folder: Path) -> dict[str, tuple[str, str | None]]:
    """The refs of a local repository: the target of each, and the object that an annotated tag points to."""
    refs: dict[str, tuple[str, str | None]] = {}
    done = git.run("show-ref", "--dereference", folder=folder)  # fails if there are none
    for line in done.stdout.splitlines():
        object_id, _, raw = line.partition(b" ")
        target = object_id.decode()
        if raw.endswith(PEELED):
            name = decode_name(raw.removesuffix(PEELED))
            refs[name] = (refs[name][0], target)
        else:
            refs[decode_name(raw)] = (target, None)
    return refs


def add_repository(project_id: int, kind: str, content: RestoredContent) -> None:
    """Add the rows of a repository that a project does not have yet."""
    repository = Repository(project_id=project_id, kind=kind, version=new_version(), size=0)
    db.session.add(repository)
    db.session.flush()
    fill(repository, content)


def fill(repository: Repository, content: RestoredContent) -> None:
    """Add what was restored to a repository without refs and packs."""
    repository.head, repository.bundle_header = content.head, content.header
    repository.size = len(content.header or b"")
    packs.add_rows(repository, content.packs)
    rows = [
        {"repository_id": repository.id, "name": name, "target": target, "peeled": peeled}
        for name, (target, peeled) in content.refs.items()
    ]
    if rows:
        db.session.execute(insert(RepositoryRef), rows)


def new_version() -> str:
    """Return a version that no repository ever had."""
    return secrets.token_hex(VERSION_BYTES)


def protect_imported_code(project: Project) -> None:
    """Protect the default branch of a project whose code was imported, as a first push does."""
    if project.default_branch is not None:
        protect_default_branch(project, project.default_branch, added_by_import=True)
