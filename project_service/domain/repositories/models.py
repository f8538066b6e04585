"""The table of repositories, and the bare repositories that a machine restores from their bundles.

The bundle in the storage is authoritative. The bare repository below the data directory is restored from it under a
lock, has the version of the bundle in its name, appears atomically, and may be deleted at any time.
"""

from __future__ import annotations

import fcntl
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from flask import current_app
from sqlalchemy import ForeignKey, UniqueConstraint, select
from sqlalchemy.orm import Mapped, mapped_column

from project_service.domain.projects import Project
from project_service.domain.repositories import bundles
from project_service.kit.db.base import Model, Timestamps
from project_service.kit.db.session import db
from project_service.kit.storage import storage

CODE, WIKI, DESIGN = "project", "project.wiki", "project.design"
KINDS = (CODE, WIKI, DESIGN)
ABANDONED_SECONDS = 2 * 86400  # no import takes longer than a day


class Repository(Timestamps, Model):
    """The bundle of one repository of a project; ``version`` changes with its content."""

    __tablename__ = "repositories"
    __table_args__ = (UniqueConstraint("project_id", "kind"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    kind: Mapped[str]
    version: Mapped[str]
    storage_name: Mapped[str]
    size: Mapped[int]


def repository_of(project: Project, kind: str = CODE) -> Repository | None:
    """The repository of a project, if it has one."""
    return db.session.scalar(
        select(Repository).where(Repository.project_id == project.content_id, Repository.kind == kind)
    )


def repositories_of(project: Project) -> Sequence[Repository]:
    """All repositories of a project."""
    return db.session.scalars(
        select(Repository).where(Repository.project_id == project.content_id).order_by(Repository.kind)
    ).all()


def may_be_default(project: Project, branch: str) -> bool:
    """Whether a project has a branch, or no repository yet."""
    of_code = Repository.project_id == project.id, Repository.kind == CODE
    storage_name = db.session.scalar(select(Repository.storage_name).where(*of_code))
    # git could not tell a branch named HEAD from the HEAD itself
    return storage_name is None or (branch != "HEAD" and bundles.has_branch(storage_name, branch))


def root() -> Path:
    """The directory of this machine for bare repositories."""
    data_dir: Path = current_app.config["SETTINGS"].data_dir
    return data_dir / "repositories"


def bare(repository: Repository) -> Path:
    """A bare repository with the content of the bundle; restored if this machine has none yet."""
    wanted = root() / f"{repository.project_id}-{repository.kind}-{repository.version}.git"
    if wanted.exists():
        return wanted
    with _locked(f"{repository.project_id}-{repository.kind}"):
        if not wanted.exists():
            bundle = root() / f".{wanted.name}.{secrets.token_hex(4)}.bundle"
            try:
                storage().provide_file(repository.storage_name, bundle)
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
