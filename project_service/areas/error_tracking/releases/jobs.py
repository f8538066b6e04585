"""Jobs of source maps: resolution and retention (source maps reference, sections 12 and 16)."""

from __future__ import annotations

import contextlib
import datetime as dt
from typing import Any

from sqlalchemy import delete, exists, select

from project_service.areas.error_tracking.errors.models import TrackedError
from project_service.areas.error_tracking.releases import release_history
from project_service.areas.error_tracking.releases.models import (
    FAILED,
    OK,
    RESOLVED,
    WAITING,
    ErrorRelease,
    ResolvedStack,
    SourceMapArtifact,
    SourceMapBundle,
)
from project_service.areas.error_tracking.releases.storage_names import CHUNKS, content_folder
from project_service.areas.error_tracking.source_maps import resolution
from project_service.domain.projects import Project
from project_service.kit import clock, jobs
from project_service.kit.db.session import db
from project_service.kit.storage import storage

RETENTION = dt.timedelta(days=90)
FAILURE_RETENTION = dt.timedelta(days=7)
CHUNK_AGE = dt.timedelta(hours=24)
CONTENT_AGE = dt.timedelta(hours=1)
MAX_STACKS = 2000
BATCH_SIZE = 500


@jobs.job("error_tracking.releases.resolve_stack")
def resolve_stack(project_id: int, digest: str) -> None:
    """Resolve the frames of one stack."""
    resolution.resolve(project_id, digest)


@jobs.job("error_tracking.releases.resolve_missing")
def resolve_missing(project_id: int, bundle_id: int) -> None:
    """Resolve the stacks that waited for the files of a new bundle, newest first."""
    with jobs.step():
        bundle = db.session.get(SourceMapBundle, bundle_id)
        if bundle is None:
            return
        ids = select(SourceMapArtifact.debug_id).where(SourceMapArtifact.bundle_id == bundle_id)
        debug_ids = set(db.session.scalars(ids.where(SourceMapArtifact.debug_id.is_not(None))))
        stacks = db.session.execute(
            select(ResolvedStack.digest, ResolvedStack.debug_ids, ResolvedStack.release)
            .where(ResolvedStack.project_id == project_id, ResolvedStack.state != RESOLVED)
            .order_by(ResolvedStack.created_at.desc())
            .limit(MAX_STACKS)
        ).all()
        release = bundle.release
    waiting = [
        stack.digest
        for stack in stacks
        if not debug_ids.isdisjoint(stack.debug_ids) or (release is not None and stack.release == release)
    ]
    jobs.for_each(waiting, lambda digest: resolution.resolve(project_id, digest))


@jobs.job("error_tracking.releases.load_commits")
def load_commits(release_id: int, refs: list[list[Any]]) -> None:
    """Read the commits of a release; ``refs`` are ids of projects, each with the newest commit and the previous one."""
    commits: list[dict[str, Any]] = []
    for project_id, newest, previous in refs:
        project = db.session.get(Project, project_id)
        if project is not None:
            commits += release_history.read_commits(project, newest, previous)
    with jobs.step():
        release = db.session.get(ErrorRelease, release_id)
        if release is not None and refs:
            release_history.set_commits(release, commits[: release_history.MAX_COMMITS], refs[0][1])


@jobs.periodic(every=dt.timedelta(days=1))
@jobs.job("error_tracking.releases.prune")
def prune() -> None:
    """Remove files that no event has needed for long, failed uploads, old stacks, and chunks left over."""
    while _prune_artifacts(clock.now() - RETENTION):
        pass
    bundle, stack = SourceMapBundle, ResolvedStack
    with jobs.step():
        projects = list(db.session.scalars(select(bundle.project_id).distinct()))
    jobs.for_each(projects, _remove_unused_contents)
    with jobs.step():  # last: the bundles say which projects have contents
        has_files = exists().where(SourceMapArtifact.bundle_id == bundle.id)
        db.session.execute(delete(bundle).where(bundle.state == OK, ~has_files))
        is_old = bundle.uploaded_at < clock.now() - FAILURE_RETENTION
        db.session.execute(delete(bundle).where(bundle.state.in_((FAILED, WAITING)), is_old))
        db.session.execute(delete(stack).where(stack.created_at < clock.now() - RETENTION))
    _remove_old(storage().names(CHUNKS), CHUNK_AGE)


def _prune_artifacts(limit: dt.datetime) -> bool:
    """Remove a batch of files neither uploaded nor used since ``limit``, unless their release had events since."""
    artifact, bundle = SourceMapArtifact, SourceMapBundle
    is_alive = exists().where(
        TrackedError.project_id == bundle.project_id,
        TrackedError.last_release == bundle.release,
        TrackedError.last_seen >= limit,
    )
    with jobs.step():
        unused = select(artifact.id).join(bundle, bundle.id == artifact.bundle_id)
        unused = unused.where(artifact.last_used_at < limit, bundle.uploaded_at < limit, ~is_alive)
        ids = list(db.session.scalars(unused.limit(BATCH_SIZE)))
        db.session.execute(delete(artifact).where(artifact.id.in_(ids)).execution_options(synchronize_session=False))
    return len(ids) == BATCH_SIZE


def _remove_unused_contents(project_id: int) -> None:
    """Remove the contents that no file of a project has any more."""
    with jobs.step():
        artifact = SourceMapArtifact
        used = set(db.session.scalars(select(artifact.sha256).where(artifact.project_id == project_id).distinct()))
    names = storage().names(content_folder(project_id))
    _remove_old([name for name in names if name.rpartition("/")[2] not in used], CONTENT_AGE)


def _remove_old(names: list[str], age: dt.timedelta) -> None:
    for name in names:
        with contextlib.suppress(FileNotFoundError):  # removed in the meantime
            if storage().modified(name) < clock.now() - age:
                storage().delete(name)
