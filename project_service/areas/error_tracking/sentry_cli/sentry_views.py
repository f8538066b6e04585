"""What clients of Sentry get for organisations, projects and releases (source maps reference, sections 6 and 19)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select

from project_service.areas.error_tracking.errors.models import Facet, TrackedError, TrackedErrorFacet
from project_service.areas.error_tracking.releases import release_history
from project_service.areas.error_tracking.releases.models import ErrorRelease, ReleaseDeploy
from project_service.domain.namespaces import Namespace
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http import urls

Answer = dict[str, Any]


def moment(value: dt.datetime | None) -> str | None:
    """Return a time as Sentry writes it."""
    return None if value is None else value.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def organization(namespace: Namespace) -> Answer:
    """Return a top-level namespace as an organisation."""
    return {
        "id": str(namespace.id),
        "slug": namespace.path,
        "name": namespace.name,
        "dateCreated": moment(namespace.created_at),
        "status": {"id": "active", "name": "active"},
        "isEarlyAdopter": False,
        "require2FA": False,
        "requireEmailVerification": False,
        "features": [],
        "links": {"organizationUrl": urls.base_url(), "regionUrl": urls.base_url()},
    }


def project(one: Project, slugs: Sequence[str]) -> Answer:
    """Return a project; its slug is the last part of its path, or the id where several have the same (``slugs``)."""
    return {
        "id": str(one.id),
        "slug": one.path if list(slugs).count(one.path.lower()) == 1 else str(one.id),
        "name": one.name,
        "platform": None,
        "dateCreated": moment(one.created_at),
        "isMember": True,
        "team": None,
        "teams": [],
    }


def repository(one: Project) -> Answer:
    """Return the repository of a project."""
    return {
        "id": str(one.id),
        "name": one.full_path,
        "url": urls.absolute(f"/{one.full_path}"),
        "provider": {"id": "integrations:gitlab", "name": "GitLab"},
        "status": "active",
        "dateCreated": moment(one.created_at),
        "integrationId": None,
        "externalSlug": one.full_path,
        "externalId": str(one.id),
    }


def commit(row: Answer) -> Answer:
    """Return a commit of a release."""
    repository_name = row.get("repository")
    return {
        "id": row["id"],
        "message": row.get("message"),
        "dateCreated": row.get("date"),
        "author": row.get("author"),
        "repository": None if repository_name is None else {"id": repository_name, "name": repository_name},
    }


def deploy(one: ReleaseDeploy) -> Answer:
    """Return a deployment."""
    return {
        "id": str(one.id),
        "environment": one.environment,
        "name": one.name,
        "url": one.url,
        "dateStarted": moment(one.started_at),
        "dateFinished": moment(one.finished_at),
    }


def release(rows: Sequence[ErrorRelease], projects: dict[int, Project]) -> Answer:
    """Return a release of one or more projects."""
    first = rows[0]
    new = {row.project_id: _new_errors(row) for row in rows}
    first_and_last_event = _seen([row.project_id for row in rows], first.version)
    ids = [row.id for row in rows]
    last_deploy = db.session.scalar(release_history.deploys_of(ids).limit(1))
    with_commits = next((row for row in rows if row.last_commit), first)
    return {
        "id": first.id,
        "version": first.version,
        "shortVersion": re.sub(r"\+.*$", "", first.version.rpartition("@")[2]),
        "status": first.status,
        "ref": first.ref,
        "url": first.url,
        "dateReleased": moment(first.released_at),
        "dateCreated": moment(min(row.created_at for row in rows)),
        "dateStarted": moment(first.started_at),
        "data": {},
        "newGroups": sum(new.values()),
        "owner": None,
        "commitCount": with_commits.commit_count,
        "lastCommit": commit(with_commits.last_commit) if with_commits.last_commit else None,
        "deployCount": 0 if last_deploy is None else release_history.count_deploys(ids),
        "lastDeploy": None if last_deploy is None else deploy(last_deploy),
        "authors": [],
        "projects": [
            {
                "id": row.project_id,
                "slug": projects[row.project_id].path,
                "name": projects[row.project_id].name,
                "newGroups": new[row.project_id],
                "platform": None,
                "platforms": [],
            }
            for row in rows
        ],
        "firstEvent": moment(first_and_last_event[0]),
        "lastEvent": moment(first_and_last_event[1]),
    }


def _new_errors(row: ErrorRelease) -> int:
    count = select(func.count()).where(
        TrackedError.project_id == row.project_id, TrackedError.first_release == row.version
    )
    return db.session.scalar(count) or 0


def _seen(project_ids: Sequence[int], version: str) -> tuple[dt.datetime | None, dt.datetime | None]:
    """Return when errors of a release were seen first and last."""
    facet = TrackedErrorFacet
    ids = select(facet.error_id).where(
        facet.project_id.in_(project_ids), facet.kind == int(Facet.RELEASE), facet.value == version
    )
    times = select(func.min(TrackedError.first_seen), func.max(TrackedError.last_seen)).where(TrackedError.id.in_(ids))
    first, last = db.session.execute(times).one()
    return first, last
