"""Repositories of a project as bundles of an archive."""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, RowMapping, select

from project_service.domain.projects import Project
from project_service.domain.repositories import bundles, models
from project_service.domain.repositories.models import Repository, RepositoryPack, RepositoryRef
from project_service.domain.repositories.views import head_of, view_of
from project_service.kit.db.session import unit_of_work
from project_service.kit.storage import storage
from project_service.transfers.archive.writer import ArchiveWriter

COLUMNS = ("id", "project_id", "kind", "version", "size", "head", "bundle_header")


class JoinedFiles(io.RawIOBase):
    """A file that consists of some bytes and another file."""

    def __init__(self, first: bytes, rest: IO[bytes]) -> None:
        self._first, self._rest = io.BytesIO(first), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._first.read(len(buffer)) or self._rest.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def find_repository(connection: Connection, project_id: int, kind: str) -> RowMapping | None:
    """The row of a repository, if a project has it."""
    columns = [getattr(Repository, name) for name in COLUMNS]
    of_kind = Repository.project_id == project_id, Repository.kind == kind
    return connection.execute(select(*columns).where(*of_kind)).mappings().first()


def refs_of(connection: Connection, repository: RowMapping) -> dict[str, str]:
    """The refs that a bundle of a repository has, with their object ids."""
    if repository["bundle_header"] is not None:
        return bundles.parse_header(repository["bundle_header"])
    of_repository = RepositoryRef.repository_id == repository["id"]
    rows = connection.execute(select(RepositoryRef.name, RepositoryRef.target).where(of_repository))
    return dict(rows.all())


def add_repositories(archive: ArchiveWriter, connection: Connection, project: Project, folder: Path) -> None:
    """Add the bundles of all repositories of a project; one that was imported and not changed since is the same."""
    for kind in sorted(models.KINDS):
        repository = find_repository(connection, project.id, kind)
        if repository is None:
            continue
        branch = project.default_branch if kind == models.CODE else None
        has_other = branch is not None and bundles.has_another_head(refs_of(connection, repository), branch)
        if repository["bundle_header"] is None or has_other:
            _add_new(archive, project, repository, folder)
        else:
            _add_imported(archive, connection, repository)


def _add_new(archive: ArchiveWriter, project: Project, row: RowMapping, folder: Path) -> None:
    repository = Repository(**{name: row[name] for name in COLUMNS})
    bundle = folder / f"{repository.kind}.bundle"
    with unit_of_work(write=False):
        head = head_of(project, repository)
    with view_of(repository, head) as view:
        if not bundles.write_bundle(view, bundle):
            return
    with bundle.open("rb") as file:
        archive.add_stream(f"{repository.kind}.bundle", file, bundle.stat().st_size)
    bundle.unlink()


def _add_imported(archive: ArchiveWriter, connection: Connection, repository: RowMapping) -> None:
    of_repository = RepositoryPack.repository_id == repository["id"], RepositoryPack.replaced_at.is_(None)
    pack = connection.execute(select(RepositoryPack.object_name, RepositoryPack.size).where(*of_repository)).one()
    header: bytes = repository["bundle_header"]
    with storage().open(f"{pack.object_name}.pack") as file, io.BufferedReader(JoinedFiles(header, file)) as joined:
        archive.add_stream(f"{repository['kind']}.bundle", joined, len(header) + pack.size)
