"""Releases as web hooks are notified of them (webhooks reference, section 18)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from sqlalchemy import select

from project_service.areas.repositories.code_reading import TooSlow
from project_service.areas.repositories.releases.queries import release_rows
from project_service.areas.repositories.releases.schemas import LinkedAsset, newest_links, release_url, sources_of
from project_service.domain import page_paths
from project_service.domain.hooks import hook_events
from project_service.domain.hooks.hook_payloads import REDACTED, moment, project_of
from project_service.domain.projects import Project
from project_service.domain.repositories.releases import Release
from project_service.domain.schemas import project_url
from project_service.kit.db.session import db
from project_service.kit.http.errors import NotFound

FLAG = "releases_events"


def announce(project: Project, release: Release, action: str) -> None:
    """Announce that a release was created, changed or deleted."""
    hook_events.announce(FLAG, project, lambda: _payload(project, release, action))


def _payload(project: Project, release: Release, action: str) -> dict[str, Any]:
    links = [LinkedAsset.dump_value(link) for link in newest_links(release)]
    sources = [] if release.sha is None else sources_of(project, release.tag)
    return {
        "object_kind": "release",
        "id": release.id,
        "name": release.name,
        "tag": release.tag,
        "description": release.description,
        "created_at": moment(release.created_at),
        "released_at": moment(release.released_at),
        "url": release_url(project, release.tag),
        "action": action,
        "project": project_of(project),
        "assets": {"count": len(links) + len(sources), "links": links, "sources": sources},
        "commit": _commit(project, release),
    }


def _commit(project: Project, release: Release) -> dict[str, Any] | None:
    """Return the commit of a release; its id and its URL alone if the repository no longer has it."""
    if release.sha is None:
        return None
    commit = None
    with suppress(TooSlow, NotFound):  # a change of a release does not depend on its repository
        [row] = release_rows(project, [release])
        if row.commit is not None and row.commit.commit.id == release.sha:
            commit = row.commit.commit
    return {
        "id": release.sha,
        "message": None if commit is None else commit.message,
        "title": None if commit is None else commit.title,
        "timestamp": None if commit is None else commit.committer.time.isoformat(),
        "url": f"{project_url(project)}{page_paths.commit(release.sha)}",
        "author": None if commit is None else {"name": commit.author.name, "email": REDACTED},
    }


def _sample(project: Project) -> dict[str, Any] | None:
    newest = select(Release).where(Release.project_id == project.id).order_by(Release.id.desc()).limit(1)
    release = db.session.scalar(newest)
    return None if release is None else _payload(project, release, "create")


hook_events.add_sample(FLAG, _sample)
