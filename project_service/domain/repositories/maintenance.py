"""Periodic jobs on repositories: combine packs, remove what no row names."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import delete, func, select, update

from project_service.domain.repositories import git, packs
from project_service.domain.repositories.eviction import incoming_folder
from project_service.domain.repositories.models import Repository, RepositoryPack
from project_service.domain.repositories.restoring import new_version
from project_service.domain.repositories.views import FALLBACK_BRANCH, view_of
from project_service.kit import clock, jobs
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db

HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
MAX_LIVE_PACKS = 50
KEPT_SIZE_RATIO = 2  # a pack that is this many times larger than all smaller ones together is not rewritten
# readers that began before, and views of other machines, still need a pack that was replaced
REPLACED_LIFETIME = DAY


@jobs.periodic(every=HOUR)
@jobs.job("domain.repositories.combine_packs", queue=jobs.TRANSFERS)
def combine_packs() -> None:
    """Combine the packs of repositories that have many."""
    live = select(RepositoryPack.repository_id).where(RepositoryPack.replaced_at.is_(None))
    many = live.group_by(RepositoryPack.repository_id).having(func.count() > MAX_LIVE_PACKS)
    with jobs.step():
        ids = db.session.scalars(many).all()
    jobs.for_each(ids, combine_packs_of)


@jobs.periodic(every=DAY, first=HOUR)
@jobs.job("domain.repositories.remove_unused_packs", queue=jobs.TRANSFERS)
def remove_unused_packs() -> None:
    """Remove packs that were replaced some time ago, and objects of the storage without a row."""
    old = RepositoryPack.replaced_at < clock.now() - REPLACED_LIFETIME
    with jobs.step():
        names = db.session.scalars(select(RepositoryPack.object_name).where(old)).all()
    try:
        jobs.for_each(names, _remove_replaced)
    finally:  # a pack that cannot be removed does not block others
        packs.remove_orphans()


def combine_packs_of(repository_id: int) -> None:
    """Replace small packs of a repository by one with all their objects, unreachable ones included."""
    with jobs.step():
        repository = db.session.get(Repository, repository_id)
        if repository is None:
            return
        db.session.expunge(repository)
    with view_of(repository, FALLBACK_BRANCH) as view:
        with jobs.step():
            combined = packs_to_combine(_live_packs(repository_id))
        if len(combined) < 2:
            return
        with tempfile.TemporaryDirectory(dir=incoming_folder()) as name:
            folder = Path(name)
            _write_pack(view, folder, combined)
            stored = packs.store_packs(repository.project_id, folder)
    is_replaced = False
    try:
        with jobs.step():
            is_replaced = _replace(repository_id, combined, stored)
    finally:
        if not is_replaced:
            packs.remove_stored(stored)


def packs_to_combine(live: Sequence[RepositoryPack]) -> list[RepositoryPack]:
    """The packs that become one: all but those that are much larger than all smaller ones together."""
    ordered = sorted(live, key=lambda pack: -pack.size)
    while ordered and ordered[0].size >= KEPT_SIZE_RATIO * sum(pack.size for pack in ordered[1:]):
        ordered.pop(0)
    return ordered


def _write_pack(view: Path, folder: Path, combined: Sequence[RepositoryPack]) -> None:
    target = folder / "objects" / "pack"
    target.mkdir(parents=True)
    names = "".join(f"{pack.object_name.rpartition('/')[2]}.pack\n" for pack in combined)
    arguments = ("pack-objects", "--stdin-packs", "--delta-base-offset", "--quiet", str(target / "pack"))
    done = git.run(*arguments, folder=view, data=names.encode())
    if done.returncode:
        raise OSError(f"packs cannot be combined: {done.stderr.decode(errors='replace')[:500]}")


def _replace(repository_id: int, combined: Sequence[RepositoryPack], stored: Sequence[packs.StoredPack]) -> bool:
    """Replace the rows of packs; false if the repository is gone or another process was first."""
    repository = db.session.get(Repository, repository_id)
    if repository is None:
        return False
    lock_row(repository, "version", "size")
    ids = {pack.id for pack in combined}
    if not ids <= {pack.id for pack in _live_packs(repository_id)}:
        return False
    db.session.execute(update(RepositoryPack).where(RepositoryPack.id.in_(ids)).values(replaced_at=clock.now()))
    repository.size -= sum(pack.size for pack in combined)
    packs.add_rows(repository, stored)
    repository.version = new_version()  # machines build views without the replaced packs
    return True


def _live_packs(repository_id: int) -> list[RepositoryPack]:
    live = RepositoryPack.repository_id == repository_id, RepositoryPack.replaced_at.is_(None)
    return list(db.session.scalars(select(RepositoryPack).where(*live)))


def _remove_replaced(object_name: str) -> None:
    packs.remove_objects(object_name)
    with jobs.step():
        db.session.execute(delete(RepositoryPack).where(RepositoryPack.object_name == object_name))
