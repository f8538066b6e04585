"""Packs in the storage: store those of a local repository, provide them to a machine, remove what no row names."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select

from project_service.domain.repositories import git
from project_service.domain.repositories.models import Repository, RepositoryPack
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.storage import storage

FOLDER = "repositories"  # of the storage
SUFFIXES = (".pack", ".idx")  # in the order in which they appear: git looks for the second
NAME_BYTES = 20
PACK_HEADER_BYTES = 12  # the last four are the number of objects (git, gitformat-pack)
# a push or an import stores packs before their rows are committed
ORPHAN_AGE = dt.timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class StoredPack:
    """A pack in the storage that has no row yet."""

    object_name: str
    size: int


def folder_of_packs(project_id: int) -> str:
    """The folder of the storage for the packs of a project."""
    return f"{FOLDER}/{project_id}"


def store_packs(project_id: int, folder: Path) -> list[StoredPack]:
    """Store the packs of a local repository, each under a random name, and return those that have objects.

    Objects without a pack are packed first. The caller adds the rows; an object without one is removed later.
    """
    _pack_loose_objects(folder)
    stored = []
    for path in sorted(folder.glob("objects/pack/*.pack")):
        if _is_empty(path):
            continue
        name = f"{folder_of_packs(project_id)}/pack-{secrets.token_hex(NAME_BYTES)}"
        for suffix in SUFFIXES:
            storage().store_file(path.with_suffix(suffix), name + suffix)
        stored.append(StoredPack(name, path.stat().st_size))
    return stored


def remove_stored(packs: Iterable[StoredPack]) -> None:
    """Remove packs that got no row."""
    for pack in packs:
        remove_objects(pack.object_name)


def remove_objects(object_name: str) -> None:
    """Remove the objects of a pack."""
    for suffix in reversed(SUFFIXES):
        storage().delete(object_name + suffix)


def remove_all(project_id: int) -> None:
    """Remove all packs of a project without a repository."""
    for name in storage().names(folder_of_packs(project_id)):
        storage().delete(name)


def add_rows(repository: Repository, packs: Iterable[StoredPack]) -> None:
    """Add the rows of stored packs."""
    for pack in packs:
        db.session.add(RepositoryPack(repository_id=repository.id, object_name=pack.object_name, size=pack.size))
        repository.size += pack.size


def provide(object_name: str, folder: Path) -> None:
    """Make a pack available in a folder of this machine, unless it is there already."""
    name = object_name.rpartition("/")[2]
    for suffix in SUFFIXES:
        path = folder / (name + suffix)
        if not path.exists():
            incomplete = folder / f".{path.name}.{secrets.token_hex(4)}"
            try:
                storage().provide_file(object_name + suffix, incomplete)
                incomplete.replace(path)
            finally:
                incomplete.unlink(missing_ok=True)


def remove_orphans() -> int:
    """Remove old objects that no row names, and return how many."""
    oldest = clock.now() - ORPHAN_AGE
    removed = 0
    for name in storage().names(FOLDER):
        stem = name.rpartition(".")[0]
        try:
            is_old = storage().modified(name) < oldest
        except FileNotFoundError:
            continue
        if is_old and not _is_known(stem):
            storage().delete(name)
            removed += 1
    return removed


def _is_known(object_name: str) -> bool:
    count = db.session.scalar(select(func.count()).where(RepositoryPack.object_name == object_name))
    db.session.commit()
    return bool(count)


def _is_empty(pack: Path) -> bool:
    with pack.open("rb") as file:
        return not any(file.read(PACK_HEADER_BYTES)[8:])


def _pack_loose_objects(folder: Path) -> None:
    loose = [f"{path.parent.name}{path.name}\n" for path in folder.glob("objects/[0-9a-f][0-9a-f]/*")]
    if loose:
        done = git.run(
            "pack-objects",
            "--quiet",
            str(folder / "objects/pack/pack"),
            folder=folder,
            data="".join(sorted(loose)).encode(),
        )
        if done.returncode:
            raise OSError(f"objects cannot be packed: {done.stderr.decode(errors='replace')[:500]}")
