"""Reads of releases and uploads."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Select, func, select
from sqlalchemy.orm import joinedload

from project_service.areas.error_tracking.errors.models import Facet, TrackedError, TrackedErrorFacet
from project_service.areas.error_tracking.releases.models import OK, ErrorRelease, SourceMapBundle
from project_service.domain.projects import Project
from project_service.kit.db.session import db

PAGE_SIZE = 100


@dataclass(frozen=True, slots=True)
class ReleaseSummary:
    """A release with what is known of it: uploads, errors that were new in it, and when errors of it were seen."""

    release: ErrorRelease
    bundles: int
    new_errors: int
    first_seen: dt.datetime | None
    last_seen: dt.datetime | None


def newest_releases(project_ids: Sequence[int], search: str, status: str) -> list[ErrorRelease]:
    """Return the newest releases of projects whose version contains a text."""
    newest = func.coalesce(ErrorRelease.released_at, ErrorRelease.created_at)
    statement = select(ErrorRelease).where(ErrorRelease.project_id.in_(project_ids), ErrorRelease.status == status)
    if search:
        statement = statement.where(ErrorRelease.version.contains(search[:250], autoescape=True))
    return list(db.session.scalars(statement.order_by(newest.desc(), ErrorRelease.id.desc()).limit(PAGE_SIZE)))


def is_named_by_errors(project_ids: Sequence[int], version: str) -> bool:
    """Whether errors of projects occurred in a release."""
    facet = TrackedErrorFacet
    some = select(facet.error_id).where(
        facet.project_id.in_(project_ids), facet.kind == int(Facet.RELEASE), facet.value == version
    )
    return db.session.scalar(some.limit(1)) is not None


def summaries_of(project: Project, search: str) -> list[ReleaseSummary]:
    """Return the newest releases of a project with their numbers."""
    releases = newest_releases([project.id], search, "open")
    versions = [one.version for one in releases]
    bundles = _numbers(
        select(SourceMapBundle.release, func.count())
        .where(
            SourceMapBundle.project_id == project.id,
            SourceMapBundle.release.in_(versions),
            SourceMapBundle.state == OK,
        )
        .group_by(SourceMapBundle.release)
    )
    new = _numbers(
        select(TrackedError.first_release, func.count())
        .where(TrackedError.project_id == project.id, TrackedError.first_release.in_(versions))
        .group_by(TrackedError.first_release)
    )
    facet = TrackedErrorFacet
    seen_rows = db.session.execute(
        select(facet.value, func.min(TrackedError.first_seen), func.max(TrackedError.last_seen))
        .join(TrackedError, TrackedError.id == facet.error_id)
        .where(facet.project_id == project.id, facet.kind == int(Facet.RELEASE), facet.value.in_(versions))
        .group_by(facet.value)
    )
    seen = {version: (first, last) for version, first, last in seen_rows}
    return [
        ReleaseSummary(one, bundles.get(one.version, 0), new.get(one.version, 0), *seen.get(one.version, (None, None)))
        for one in releases
    ]


def bundles_of(project: Project) -> Select[SourceMapBundle]:
    """The uploads of a project, newest first, the failed ones included."""
    bundle = SourceMapBundle
    mine = select(bundle).where(bundle.project_id == project.id).order_by(bundle.id.desc())
    return mine.options(joinedload(bundle.uploader))


def _numbers(statement: Select[str | None, int]) -> dict[str | None, int]:
    return {row[0]: row[1] for row in db.session.execute(statement)}
