"""Commits and deploys of releases (source maps reference, section 20)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, func, select

from project_service.areas.error_tracking.collection.event_parsing import read_time
from project_service.areas.error_tracking.releases.models import ErrorRelease, ReleaseDeploy
from project_service.domain.projects import Project
from project_service.domain.repositories.reading import history
from project_service.domain.repositories.reading.budget import ReadingFailed
from project_service.domain.repositories.reading.history import HistoryFilter
from project_service.domain.repositories.reading.repository import code_of
from project_service.kit import clock
from project_service.kit.db.session import db

MAX_COMMITS = 1000
MAX_COMMITS_WITHOUT_PREVIOUS = 20
MAX_TEXT_LENGTH = 255
MAX_ID_LENGTH = 64

Row = dict[str, Any]


def commits_of_client(raw: Sequence[Any]) -> list[Row] | None:
    """Return commits that a client sent, newest first, as they are stored; ``None`` if they are malformed."""
    commits = []
    for raw_commit in raw[:MAX_COMMITS]:
        commit_id = raw_commit.get("id") if isinstance(raw_commit, dict) else None
        if not isinstance(commit_id, str) or not 0 < len(commit_id) <= MAX_ID_LENGTH:
            return None
        author = {"name": _text(raw_commit.get("author_name")), "email": _text(raw_commit.get("author_email"))}
        moment = read_time(raw_commit.get("timestamp"))
        commits.append(_row(commit_id, raw_commit.get("message"), moment, author, _text(raw_commit.get("repository"))))
    return commits


def set_commits(release: ErrorRelease, commits: list[Row], last_id: str | None = None) -> None:
    """Replace the commits of a release; ``last_id`` names the newest while they are not known."""
    release.commits, release.commit_count = commits, len(commits)
    placeholder = None if last_id is None else _row(last_id, None, None, {"name": None, "email": None}, None)
    release.last_commit = commits[0] if commits else placeholder


def read_commits(project: Project, newest: str, previous: str | None) -> list[Row]:
    """Return the commits of a repository that are reachable from one commit and not from another, newest first.

    Without the other one they are the newest few. An unknown commit has none.
    """
    with code_of(project) as code:
        try:
            last = None if code is None else code.resolve(newest)
            if code is None or last is None:
                return []
            first = code.resolve(previous) if previous else None
            count = MAX_COMMITS_WITHOUT_PREVIOUS if first is None else MAX_COMMITS
            revisions = [last.id, *([] if first is None else [f"^{first.id}"])]
            read = history.commits(code, HistoryFilter(revisions=revisions), 0, count)
        except ReadingFailed:
            return []
    return [
        _row(
            commit.id,
            commit.message,
            commit.author.time,
            {"name": commit.author.name, "email": commit.author.email},
            project.full_path,
        )
        for commit in read
    ]


def previous_with_commits(release: ErrorRelease) -> ErrorRelease | None:
    """Return the newest older release of the same project that has commits."""
    older = select(ErrorRelease).where(
        ErrorRelease.project_id == release.project_id,
        ErrorRelease.id != release.id,
        ErrorRelease.created_at <= release.created_at,
        ErrorRelease.commit_count > 0,
    )
    return db.session.scalar(older.order_by(ErrorRelease.created_at.desc(), ErrorRelease.id.desc()).limit(1))


def deploys_of(release_ids: Sequence[int]) -> Select[ReleaseDeploy]:
    """The deploys of releases, the latest first."""
    mine = select(ReleaseDeploy).where(ReleaseDeploy.release_id.in_(release_ids))
    return mine.order_by(ReleaseDeploy.finished_at.desc(), ReleaseDeploy.id.desc())


def count_deploys(release_ids: Sequence[int]) -> int:
    """Return how many deploys releases have."""
    return db.session.scalar(select(func.count()).where(ReleaseDeploy.release_id.in_(release_ids))) or 0


def add_deploy(release: ErrorRelease, environment: str, fields: Row) -> ReleaseDeploy:
    """Add a deploy of a release; without an end it is finished now."""
    finished: dt.datetime | None = fields.get("finished_at")
    deploy = ReleaseDeploy(
        release_id=release.id,
        environment=environment,
        name=fields.get("name"),
        url=fields.get("url"),
        started_at=fields.get("started_at"),
        finished_at=finished or clock.now(),
    )
    db.session.add(deploy)
    db.session.flush()
    return deploy


def _row(commit_id: str, message: Any, moment: dt.datetime | None, author: Row, repository: str | None) -> Row:
    title = message.strip().partition("\n")[0].rstrip()[:MAX_TEXT_LENGTH] if isinstance(message, str) else None
    date = None if moment is None else clock.isoformat(moment)
    return {"id": commit_id, "message": title, "date": date, "author": author, "repository": repository}


def _text(value: Any) -> str | None:
    return value[:MAX_TEXT_LENGTH] if isinstance(value, str) else None
