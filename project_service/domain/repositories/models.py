"""The tables of repositories: refs are rows, packs are immutable objects in the storage.

``docs/decisions/repositories.md`` has the reasons.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from flask import current_app
from sqlalchemy import ForeignKey, LargeBinary, String, UniqueConstraint, select
from sqlalchemy.orm import Mapped, mapped_column

from project_service.domain.projects import Project
from project_service.domain.repositories import bundles
from project_service.kit import clock
from project_service.kit.db.base import Base, Model, Timestamps
from project_service.kit.db.session import db

CODE, WIKI, DESIGN = "project", "project.wiki", "project.design"
KINDS = (CODE, WIKI, DESIGN)
# names in the order of their bytes, as git sorts them
RefName = String().with_variant(String(collation="C"), "postgresql")


class Repository(Timestamps, Model):
    """One repository of a project. ``version`` is a random text that changes with its refs.

    ``head`` is the branch of HEAD, for the code unless the project has a default branch. ``bundle_header`` is set as
    long as the repository is exactly what was imported: header and pack are the bundle then.
    """

    __tablename__ = "repositories"
    __table_args__ = (UniqueConstraint("project_id", "kind"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    kind: Mapped[str]
    version: Mapped[str]
    size: Mapped[int]
    head: Mapped[str | None]
    bundle_header: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)


class RepositoryRef(Base):
    r"""A ref of a repository. Bytes of its name that are no UTF-8 are written as ``\xff``: names have no backslash.

    ``peeled`` is the object that an annotated tag leads to.
    """

    __tablename__ = "repository_refs"

    repository_id: Mapped[int] = mapped_column(ForeignKey("repositories.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(RefName, primary_key=True)
    target: Mapped[str]
    peeled: Mapped[str | None]


class RepositoryPack(Model):
    """A pack of a repository: two objects in the storage, ``object_name`` with ``.pack`` and with ``.idx``.

    A replaced pack stays for a day, for readers that began before.
    """

    __tablename__ = "repository_packs"

    repository_id: Mapped[int] = mapped_column(ForeignKey("repositories.id", ondelete="CASCADE"), index=True)
    object_name: Mapped[str] = mapped_column(unique=True)
    size: Mapped[int]
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    replaced_at: Mapped[dt.datetime | None]


def repository_of(project: Project, kind: str = CODE) -> Repository | None:
    """The repository of a project, if it has one."""
    return db.session.scalar(
        select(Repository).where(Repository.project_id == project.content_id, Repository.kind == kind)
    )


def ids_of(project_id: int) -> list[int]:
    """The ids of all repositories of a project."""
    return list(db.session.scalars(select(Repository.id).where(Repository.project_id == project_id)))


def may_be_default(project: Project, branch: str) -> bool:
    """Whether a project has a branch, or no repository yet."""
    of_code = Repository.project_id == project.id, Repository.kind == CODE
    repository_id = db.session.scalar(select(Repository.id).where(*of_code))
    if repository_id is None:
        return True
    if branch == "HEAD":  # git could not tell it from HEAD itself
        return False
    of_branch = RepositoryRef.repository_id == repository_id, RepositoryRef.name == bundles.BRANCHES + branch
    return db.session.scalar(select(RepositoryRef.target).where(*of_branch)) is not None


def root() -> Path:
    """The directory of this machine for repositories; everything in it can be deleted at any time."""
    data_dir: Path = current_app.config["SETTINGS"].data_dir
    return data_dir / "repositories"
