"""Projects: the tables and finders."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ForeignKey, Index, Select, bindparam, false, func, select
from sqlalchemy.orm import Mapped, contains_eager, mapped_column, relationship

from project_service.domain.access_levels import Visibility
from project_service.domain.accounts.users import User
from project_service.domain.namespaces import Namespace, NamespaceAncestor
from project_service.kit import clock
from project_service.kit.db import text_search
from project_service.kit.db.base import Base, Key, Model, Timestamps, table_of, unique_unless_deleting
from project_service.kit.db.session import db
from project_service.kit.db.text_search import TextIndex
from project_service.kit.http.errors import NotFound
from project_service.kit.http.fields import whole_number

DISABLED = "disabled"
PRIVATE = "private"
ENABLED = "enabled"
PUBLIC = "public"  # as only pages may be
PAGES = "pages"
NO_PROJECT = 0
FEATURES = (
    "issues",
    "repository",
    "merge_requests",
    "forking",
    "wiki",
    "builds",
    "snippets",
    PAGES,
    "operations",
    "analytics",
    "security_and_compliance",
    "releases",
    "monitor",
    "environments",
)


class Project(Timestamps, Model):
    """A project. While it is being deleted it is hidden and its path is free."""

    __tablename__ = "projects"

    name: Mapped[str]
    path: Mapped[str]
    full_path: Mapped[str]
    description: Mapped[str | None]
    visibility: Mapped[int] = mapped_column(default=Visibility.PRIVATE)
    archived: Mapped[bool] = mapped_column(default=False)
    default_branch: Mapped[str | None]
    tag_list: Mapped[list[str]] = mapped_column(default=list)
    avatar_url: Mapped[str | None]
    issues_access_level: Mapped[str] = mapped_column(default=ENABLED)
    repository_access_level: Mapped[str] = mapped_column(default=ENABLED)
    merge_requests_access_level: Mapped[str] = mapped_column(default=ENABLED)
    forking_access_level: Mapped[str] = mapped_column(default=ENABLED)
    wiki_access_level: Mapped[str] = mapped_column(default=ENABLED)
    builds_access_level: Mapped[str] = mapped_column(default=ENABLED)
    snippets_access_level: Mapped[str] = mapped_column(default=ENABLED)
    pages_access_level: Mapped[str] = mapped_column(default=PRIVATE)
    operations_access_level: Mapped[str] = mapped_column(default=ENABLED)
    analytics_access_level: Mapped[str] = mapped_column(default=ENABLED)
    security_and_compliance_access_level: Mapped[str] = mapped_column(default=PRIVATE)
    releases_access_level: Mapped[str] = mapped_column(default=ENABLED, server_default=ENABLED)
    monitor_access_level: Mapped[str] = mapped_column(default=ENABLED, server_default=ENABLED)
    environments_access_level: Mapped[str] = mapped_column(default=ENABLED, server_default=ENABLED)
    attributes: Mapped[dict[str, Any]] = mapped_column(default=dict)
    import_status: Mapped[str] = mapped_column(default="none")
    import_error: Mapped[str | None]
    loading: Mapped[bool] = mapped_column(default=False, server_default=false())
    last_activity_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    deleting_since: Mapped[dt.datetime | None]
    namespace_id: Mapped[int] = mapped_column(ForeignKey("namespaces.id", ondelete="CASCADE"))
    namespace: Mapped[Namespace] = relationship(lazy="joined", innerjoin=True)
    creator_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"), index=True)
    creator: Mapped[User | None] = relationship()

    __table_args__ = (
        unique_unless_deleting("uq_projects_full_path", "lower(full_path)"),
        unique_unless_deleting("uq_projects_name", "namespace_id", "name"),
        Index("ix_projects_namespace_id_created_at", "namespace_id", "created_at", "id"),
        Index("ix_projects_created_at", "created_at", "id"),
        Index("ix_projects_last_activity_at", "last_activity_at", "id"),
        Index("ix_projects_updated_at", "updated_at", "id"),
        Index("ix_projects_listed_name", "name", "id"),
        Index("ix_projects_listed_path", "path", "id"),
        Index("ix_projects_visibility_created_at", "visibility", "created_at", "id"),
    )
    # not columns; set by queries for a response
    permissions: Any
    shares: list[Any]
    open_issues_count: int | None
    record: Any
    failures: Sequence[Any]
    export_status: str

    @property
    def name_with_namespace(self) -> str:
        """``Group / Subgroup / Project``."""
        return full_name(self)

    @property
    def content_id(self) -> int:
        """The id for lists of the content of the project: an id without content while an archive is being imported."""
        return NO_PROJECT if self.loading else self.id


TEXTS = text_search.add(TextIndex(table_of(Project), ("name", "path", "description")))


class Route(Base):
    """A full path, in lower case, of a namespace or project; paths are unique across both."""

    __tablename__ = "routes"

    path: Mapped[str] = mapped_column(primary_key=True)
    namespace_id: Mapped[int | None] = mapped_column(Key, ForeignKey("namespaces.id", ondelete="CASCADE"), unique=True)
    project_id: Mapped[int | None] = mapped_column(Key, ForeignKey("projects.id", ondelete="CASCADE"), unique=True)


class RedirectRoute(Base):
    """A former full path, in lower case, of a project, until another project gets it: git still finds it there."""

    __tablename__ = "redirect_routes"

    path: Mapped[str] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(Key, ForeignKey("projects.id", ondelete="CASCADE"), index=True)


def full_name(project: Any) -> str:
    """The names of the groups above a project, or of its owner, and its own: ``Group / Subgroup / Project``."""
    return f"{project.namespace.full_name} / {project.name}"


def folder_of(project_id: int) -> str:
    """The folder of a project in the storage."""
    return f"projects/{project_id}"


def projects() -> Select[Project]:
    """Every project that is not being deleted, joined with its namespace; without an order."""
    return select(Project).join(Project.namespace).where(Project.deleting_since.is_(None))


def project_by(id_or_path: str | int) -> Project | None:
    """One project: digits are always an id, everything else a full path in any case."""
    text = str(id_or_path)
    number = whole_number(text)
    id_or_full_path = text.lower() if number is None else number
    return db.session.scalar(one_project(by_id=number is not None), {"wanted": id_or_full_path})


def project_by_former_path(full_path: str) -> Project | None:
    """The project that had a full path, in any case, before it was moved."""
    former = select(RedirectRoute.project_id).where(RedirectRoute.path == full_path.lower())
    return db.session.scalar(projects().where(Project.id.in_(former)))


@functools.cache
def one_project(*, by_id: bool) -> Select[Project]:
    """The project whose id, or whose full path in lower case, is ``wanted``, with its namespace."""
    condition = Project.id == bindparam("wanted") if by_id else func.lower(Project.full_path) == bindparam("wanted")
    return projects().where(condition).options(contains_eager(Project.namespace))


def find_project(id_or_path: str | int) -> Project:
    """The same, or ``NotFound``."""
    project = project_by(id_or_path)
    if project is None:
        raise NotFound("Project")
    return project


def projects_below(namespace: Namespace) -> Select[int]:
    """The ids of the projects of a namespace and of all below it."""
    return (
        select(Project.id)
        .join(NamespaceAncestor, NamespaceAncestor.namespace_id == Project.namespace_id)
        .where(NamespaceAncestor.ancestor_id == namespace.id)
    )
