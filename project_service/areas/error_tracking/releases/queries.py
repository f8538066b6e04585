"""Reads of releases and uploads."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from sqlalchemy import Select, func, select
from sqlalchemy.orm import joinedload, undefer

from project_service.areas.error_tracking.errors.models import Facet, TrackedError, TrackedErrorFacet
from project_service.areas.error_tracking.releases import release_history
from project_service.areas.error_tracking.releases.models import (
    OK,
    ErrorRelease,
    ReleaseDeploy,
    SourceMapArtifact,
    SourceMapBundle,
)
from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import TAGS
from project_service.domain.repositories.models import RepositoryRef, repository_of
from project_service.kit.charts import Chart, stacked
from project_service.kit.db import searching
from project_service.kit.db.session import NO_LAZY_LOADING, db, one
from project_service.kit.http.errors import NotFound

PAGE_SIZE = 100
MAX_CHARTED_RELEASES = 30


class ReleaseErrors(enum.Enum):
    """Errors of a release: those that were first seen in it, and those that had been known."""

    NEW = "New errors"
    KNOWN = "Known errors"

    @property
    def title(self) -> str:
        """The name in legends."""
        return self.value


@dataclass(frozen=True, slots=True)
class ReleaseSummary:
    """A release with what is known of it: uploads, errors of it and those that were new, and when they were seen."""

    release: ErrorRelease
    bundles: int
    files: int
    bytes: int
    new_errors: int
    errors: int
    events: int
    first_seen: dt.datetime | None
    last_seen: dt.datetime | None
    deploys: list[ReleaseDeploy]
    project: Project
    dists: list[str]
    tag_name: str | None

    @property
    def path(self) -> str:
        """The path of its page."""
        return f"/{self.project.full_path}/-/error_tracking/releases/{quote(self.release.version, safe='/')}"


def newest_releases(project_ids: Sequence[int], search: str, status: str) -> list[ErrorRelease]:
    """Return the newest releases of projects whose version contains a text."""
    return list(db.session.scalars(releases_below(project_ids, search, status).limit(PAGE_SIZE)))


def releases_below(project_ids: Sequence[int], search: str, status: str) -> Select[ErrorRelease]:
    """The releases of projects whose version contains a text, newest first."""
    newest = func.coalesce(ErrorRelease.released_at, ErrorRelease.created_at)
    statement = select(ErrorRelease).where(ErrorRelease.project_id.in_(project_ids), ErrorRelease.status == status)
    if search:
        statement = statement.where(searching.has_part(search[:250], ErrorRelease.version))
    return statement.order_by(newest.desc(), ErrorRelease.id.desc())


def is_named_by_errors(project_ids: Sequence[int], version: str) -> bool:
    """Whether errors of projects occurred in a release."""
    facet = TrackedErrorFacet
    some = select(facet.error_id).where(
        facet.project_id.in_(project_ids), facet.kind == int(Facet.RELEASE), facet.value == version
    )
    return db.session.scalar(some.limit(1)) is not None


def releases_of(project: Project, search: str) -> Select[ErrorRelease]:
    """The releases of a project that are not archived, whose version contains a text, newest first."""
    return releases_below([project.id], search, "open")


def summaries_of(
    project: Project, releases: Sequence[ErrorRelease], *, with_tags: bool = False
) -> list[ReleaseSummary]:
    """Return releases of a project with their numbers; ``with_tags``: the caller may see the tags of its code."""
    versions = [release.version for release in releases]
    bundle = SourceMapBundle
    stored_rows = db.session.execute(
        select(bundle.release, func.count(), func.sum(bundle.files), func.sum(bundle.bytes))
        .where(bundle.project_id == project.id, bundle.release.in_(versions), bundle.state == OK)
        .group_by(bundle.release)
    )
    stored = {version: numbers for version, *numbers in stored_rows}
    new = _numbers(
        select(TrackedError.first_release, func.count())
        .where(TrackedError.project_id == project.id, TrackedError.first_release.in_(versions))
        .group_by(TrackedError.first_release)
    )
    facet = TrackedErrorFacet
    seen_rows = db.session.execute(
        select(
            *(facet.value, func.count(), func.sum(facet.count)),
            *(func.min(TrackedError.first_seen), func.max(TrackedError.last_seen)),
        )
        .join(TrackedError, TrackedError.id == facet.error_id)
        .where(facet.project_id == project.id, facet.kind == int(Facet.RELEASE), facet.value.in_(versions))
        .group_by(facet.value)
    )
    seen_by_version = {
        version: (errors, int(events), first, last) for version, errors, events, first, last in seen_rows
    }
    deploys: dict[int, list[ReleaseDeploy]] = {}
    for deploy in db.session.scalars(release_history.deploys_of([release.id for release in releases]).limit(PAGE_SIZE)):
        deploys.setdefault(deploy.release_id, []).append(deploy)
    dists: dict[str | None, list[str]] = {}
    named = select(bundle.release, bundle.dist).where(bundle.project_id == project.id, bundle.release.in_(versions))
    for version, dist in db.session.execute(named.where(bundle.dist.is_not(None), bundle.state == OK).distinct()):
        dists.setdefault(version, []).append(str(dist))
    tags = tag_names(project, versions) if with_tags else {}
    summaries = []
    for release in releases:
        bundles, files, size = stored.get(release.version, (0, 0, 0))
        errors, events, first_seen, last_seen = seen_by_version.get(release.version, (0, 0, None, None))
        summaries.append(
            ReleaseSummary(
                release=release,
                bundles=bundles,
                files=int(files),  # PostgreSQL sums integers as decimals
                bytes=int(size),
                new_errors=new.get(release.version, 0),
                errors=errors,
                events=events,
                first_seen=first_seen,
                last_seen=last_seen,
                deploys=deploys.get(release.id, []),
                project=project,
                dists=sorted(dists.get(release.version, [])),
                tag_name=tags.get(release.version),
            )
        )
    return summaries


def tag_names(project: Project, versions: Sequence[str]) -> dict[str, str]:
    """Return the tags of the repository that releases are made from, by version.

    A tag is called as the version, as its part behind ``@``, or as these with ``v`` before.
    """
    repository = repository_of(project)
    if repository is None or not versions:
        return {}
    names = {version: [f"{v}{name}" for name in _numbers_in(version) for v in ("", "v")] for version in versions}
    wanted = {f"{TAGS}{name}" for some in names.values() for name in some}
    ref = RepositoryRef
    mine = select(ref.name).where(ref.repository_id == repository.id, ref.name.in_(sorted(wanted)))
    present = {name.removeprefix(TAGS) for name in db.session.scalars(mine)}
    return {version: tag for version, some in names.items() for tag in some[::-1] if tag in present}


def find_release(project: Project, version: str) -> ErrorRelease:
    """One release of a project with its commits; raises ``NotFound``."""
    mine = select(ErrorRelease).where(ErrorRelease.project_id == project.id, ErrorRelease.version == version)
    return one(mine.options(undefer(ErrorRelease.commits)), NotFound("Release"))


def new_errors_of(release: ErrorRelease) -> Select[TrackedError]:
    """The errors that were first seen in a release, the most frequent first."""
    error = TrackedError
    mine = select(error).where(error.project_id == release.project_id, error.first_release == release.version)
    return mine.order_by(error.count.desc(), error.id.desc()).options(NO_LAZY_LOADING)


def errors_by_release(summaries: Sequence[ReleaseSummary]) -> Chart:
    """Lay out how many errors the newest releases had, the oldest on the left."""
    columns = [
        (summary.release.version, _errors_of(summary))
        for summary in reversed(summaries[:MAX_CHARTED_RELEASES])
        if summary.errors
    ]
    return stacked(columns, list(ReleaseErrors))


def bundles_of(project: Project) -> Select[SourceMapBundle]:
    """The uploads of a project, newest first, the failed ones included."""
    bundle = SourceMapBundle
    mine = select(bundle).where(bundle.project_id == project.id).order_by(bundle.id.desc())
    return mine.options(joinedload(bundle.uploader))


def bundles_matching(project: Project, **filters: str | None) -> Select[SourceMapBundle]:
    """The uploads of a project, newest first: of a release, with a debug id, or with a part of a file's address."""
    artifact = SourceMapArtifact
    statement = bundles_of(project)
    if filters.get("release"):
        statement = statement.where(SourceMapBundle.release == filters["release"])
    conditions = []
    if debug_id := filters.get("debug_id"):
        conditions.append(artifact.debug_id == debug_id.replace("-", "").lower())
    if search := filters.get("search"):
        conditions.append(searching.has_part(search, artifact.url))
    if conditions:
        ids = select(artifact.bundle_id).where(artifact.project_id == project.id, *conditions)
        statement = statement.where(SourceMapBundle.id.in_(ids))
    return statement


def find_bundle(project: Project, bundle_id: int) -> SourceMapBundle:
    """One upload of a project; raises ``NotFound``."""
    return one(bundles_of(project).where(SourceMapBundle.id == bundle_id), NotFound("Source Map"))


def files_of(bundle: SourceMapBundle) -> Select[SourceMapArtifact]:
    """The files of an upload."""
    artifact = SourceMapArtifact
    mine = select(artifact).where(artifact.bundle_id == bundle.id).order_by(artifact.id)
    return mine.options(NO_LAZY_LOADING)


def _numbers_in(version: str) -> list[str]:
    """Return a version, and what is behind the name of its application: ``2.0`` of ``web@2.0``."""
    number = version.rpartition("@")[2]
    return [version, number] if number and number != version else [version]


def _errors_of(summary: ReleaseSummary) -> dict[ReleaseErrors, int]:
    older_errors = max(summary.errors - summary.new_errors, 0)
    return {ReleaseErrors.NEW: summary.new_errors, ReleaseErrors.KNOWN: older_errors}


def _numbers(statement: Select[str | None, int]) -> dict[str | None, int]:
    return {row[0]: row[1] for row in db.session.execute(statement)}
