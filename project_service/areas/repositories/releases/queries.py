"""Reads of releases (repositories reference, section 4.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import joinedload, raiseload, selectinload

from project_service.areas.repositories.code_reading import CommitRow, optional_code
from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import TAGS
from project_service.domain.repositories.reading import refs
from project_service.domain.repositories.releases import Release, ReleaseLink
from project_service.domain.tracker.milestones import WITH_OWNER
from project_service.kit import clock
from project_service.kit.db.session import db, one
from project_service.kit.http.errors import NotFound
from project_service.kit.http.pagination import SelectedRows


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    """A release with the commit of its tag; without one if the repository has no such tag."""

    project: Project
    release: Release
    commit: CommitRow | None


@dataclass(frozen=True, slots=True)
class ReleaseRows:
    """A list of releases whose commits are read page by page."""

    project: Project
    statement: Select[Any]

    @property
    def total(self) -> int:
        """The number of releases."""
        return SelectedRows(self.statement).total

    def rows(self, offset: int, limit: int) -> list[ReleaseRow]:
        """Return some of the releases."""
        return release_rows(self.project, SelectedRows(self.statement).rows(offset, limit))


def releases_of(project: Project, *, order_by: str = "released_at", sort: str = "desc") -> ReleaseRows:
    """Return the releases of a project."""
    columns = getattr(Release, order_by), Release.id
    order = [column.desc() if sort == "desc" else column.asc() for column in columns]
    return ReleaseRows(project, _selected(project).order_by(*order))


def release_of(project: Project, tag: str) -> Release | None:
    """Return the release of a tag, if it has one."""
    release: Release | None = db.session.scalar(_selected(project).where(Release.tag == tag))
    return release


def find_release(project: Project, tag: str) -> Release:
    """Return the release of a tag.

    Raises:
        NotFound: the tag has none.

    """
    release = release_of(project, tag)
    if release is None:
        raise NotFound
    return release


def find_latest_release(project: Project) -> Release:
    """Return the newest release whose time has come."""
    released = _selected(project).where(Release.released_at <= clock.now())
    newest = released.order_by(Release.released_at.desc(), Release.id.desc()).limit(1)
    release: Release = one(newest, NotFound())
    return release


def find_link(release: Release, link_id: int) -> ReleaseLink:
    """Return a link of a release."""
    of_release = ReleaseLink.release_id == release.id, ReleaseLink.id == link_id
    return one(select(ReleaseLink).where(*of_release), NotFound())


def links_of(release: Release) -> Select[ReleaseLink]:
    """Return the links of a release, the newest first."""
    return select(ReleaseLink).where(ReleaseLink.release_id == release.id).order_by(ReleaseLink.id.desc())


def releases_by_tag(project: Project, tags: Sequence[str]) -> dict[str, Release]:
    """Return the releases of some tags."""
    if not tags:
        return {}
    releases = select(Release).where(Release.project_id == project.id, Release.tag.in_(tags)).options(raiseload("*"))
    return {release.tag: release for release in db.session.scalars(releases)}


def release_rows(project: Project, releases: Sequence[Release]) -> list[ReleaseRow]:
    """Return releases as schemas serialize them."""
    if not releases:
        return []
    with optional_code(project) as code:
        rows = []
        for release in releases:
            ref = None if code is None else refs.find_ref(code, TAGS, release.tag)
            commit = None if code is None or ref is None else code.commit_of(ref.commit_id)
            rows.append(ReleaseRow(project, release, None if commit is None else CommitRow(project, commit)))
    return rows


def _selected(project: Project) -> Select[Any]:
    milestones = selectinload(Release.milestones).options(*WITH_OWNER)
    options = joinedload(Release.author), selectinload(Release.links), milestones
    return select(Release).where(Release.project_id == project.id).options(*options)
