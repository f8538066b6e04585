"""Bare repositories that a machine restores from bundles, for repositories that have not been converted to packs.

The bare repository below the data directory is restored under a lock, has the version of the bundle in its name,
appears atomically, and may be deleted at any time.
"""

from __future__ import annotations

import fcntl
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import select

from project_service.domain.projects import Project
from project_service.domain.repositories import bundles
from project_service.domain.repositories.models import Repository, root
from project_service.kit.db.session import db
from project_service.kit.storage import storage

ABANDONED_SECONDS = 2 * 86400  # no import takes longer than a day


def bare(repository: Repository) -> Path:
    """A bare repository with the content of the bundle; restored if this machine has none yet."""
    wanted = root() / f"{repository.project_id}-{repository.kind}-{repository.version}.git"
    if wanted.exists():
        return wanted
    with _locked(f"{repository.project_id}-{repository.kind}"):
        if not wanted.exists():
            bundle = root() / f".{wanted.name}.{secrets.token_hex(4)}.bundle"
            try:
                storage().provide_file(repository.storage_name or "", bundle)
                bundles.unbundle(bundle, wanted)
            finally:
                bundle.unlink(missing_ok=True)
    return wanted


def remove_unused() -> int:
    """Remove the bare repositories of this machine whose bundle is gone, and return how many.

    An import creates them before their rows: those of a project that is being imported are left alone. Incomplete ones
    are removed when no process can be working on them any more.
    """
    # listed first: an import that begins later has none of them
    found = list(root().glob("[0-9]*.git"))
    loading = {str(number) for number in db.session.scalars(select(Project.id).where(Project.loading))}
    known = {
        f"{project_id}-{kind}-{version}.git"
        for project_id, kind, version in db.session.execute(
            select(Repository.project_id, Repository.kind, Repository.version)
        )
    }
    db.session.commit()
    old = [path for path in found if path.name not in known and path.name.partition("-")[0] not in loading]
    old += [path for path in root().glob(".[0-9]*.git.*") if _is_abandoned(path)]
    for path in old:
        bundles.remove(path)
    return len(old)


def remove_bare(project_id: int) -> None:
    """Remove the bare repositories of a project, whose rows are gone, from this machine."""
    for path in (*root().glob(f"{project_id}-*.git"), *root().glob(f".{project_id}-*.git.*")):
        bundles.remove(path)


def _is_abandoned(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > ABANDONED_SECONDS
    except FileNotFoundError:  # completed meanwhile
        return False


@contextmanager
def _locked(name: str) -> Iterator[None]:
    root().mkdir(parents=True, exist_ok=True, mode=0o700)
    with (root() / f".{name}.lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
