"""Commits and deploys that clients of Sentry send and read (source maps reference, section 20)."""

from __future__ import annotations

from typing import Any

from flask import Response
from sqlalchemy.orm import undefer

from project_service.access.abilities import Ability, allowed, judge
from project_service.access.api import json_response
from project_service.access.identity import caller
from project_service.areas.error_tracking.collection.event_parsing import read_time
from project_service.areas.error_tracking.releases import jobs, release_history
from project_service.areas.error_tracking.releases.models import ErrorRelease
from project_service.areas.error_tracking.sentry_cli import sentry_views
from project_service.areas.error_tracking.sentry_cli.sentry_requests import (
    ClientRefused,
    SentryBlueprint,
    existing_releases,
    find_organization,
    json_object,
    readable_in,
    readable_projects,
)
from project_service.domain.namespaces import Namespace
from project_service.kit.db.session import db

ONE_RELEASE = (
    "/organizations/<organization>/releases/<version>/",
    "/projects/<organization>/<project>/releases/<version>/",
)
DEPLOYS = tuple(f"{rule}deploys/" for rule in ONE_RELEASE)
COMMITS = tuple(f"{rule}commits/" for rule in ONE_RELEASE)
PREVIOUS = tuple(f"{rule}previous-with-commits/" for rule in ONE_RELEASE)
MAX_REFS = 20
MAX_NAME_LENGTH = 64
MAX_URL_LENGTH = 2048
MAX_LISTED = 100

Ref = tuple[int, str, str | None]
"""The id of the project of a repository, the newest commit, and the last one of the previous release."""


def register(api: SentryBlueprint) -> None:
    """Add the routes to the API of clients."""
    api.at("GET", *PREVIOUS)(show_previous_release)
    api.at("GET", *COMMITS)(list_release_commits)
    api.at("GET", *DEPLOYS)(list_deploys)
    api.at("POST", *DEPLOYS)(create_deploy)


def commits_of(body: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the commits of a request; ``None`` if it has none."""
    if body.get("commits") is None:
        return None
    raw = body["commits"]
    commits = release_history.commits_of_client(raw) if isinstance(raw, list) else None
    if commits is None:
        raise ClientRefused(400, "commits is invalid")
    return commits


def refs_of(namespace: Namespace, body: dict[str, Any]) -> list[Ref] | None:
    """Return the commits of repositories below a namespace that a request names; ``None`` if it has none."""
    raw = body.get("refs")
    if raw is None and isinstance(body.get("headCommits"), list):
        raw = [
            {
                "repository": head_commit.get("repository"),
                "commit": head_commit.get("currentId"),
                "previousCommit": head_commit.get("previousId"),
            }
            for head_commit in body["headCommits"]
            if isinstance(head_commit, dict)
        ]
    if raw is None:
        return None
    if not isinstance(raw, list) or len(raw) > MAX_REFS or not all(isinstance(ref, dict) for ref in raw):
        raise ClientRefused(400, "refs is invalid")
    named = {readable.full_path.lower(): readable for readable in readable_projects(namespace)}
    refs: list[Ref] = []
    for ref in raw:
        repository, commit, previous = (ref.get(name) for name in ("repository", "commit", "previousCommit"))
        project = named.get(repository.lower()) if isinstance(repository, str) else None
        if project is None or not allowed(caller(), Ability.READ_CODE, project):
            raise ClientRefused(400, f"Unable to find repository {str(repository)[:100]}")
        if not isinstance(commit, str) or not isinstance(previous, str | None):
            raise ClientRefused(400, "refs is invalid")
        if ".." in commit:
            previous, _, commit = commit.partition("..")
        if not 0 < len(commit) <= MAX_NAME_LENGTH or len(previous or "") > MAX_NAME_LENGTH:
            raise ClientRefused(400, "refs is invalid")
        refs.append((project.id, commit, previous or None))
    return refs


def set_commits(release: ErrorRelease, commits: list[dict[str, Any]] | None, refs: list[Ref] | None) -> None:
    """Replace the commits of a release by those that were sent, or by those that a job reads from repositories."""
    if refs:
        earlier = release_history.previous_with_commits(release)
        last = (earlier.last_commit or {}).get("id") if earlier is not None else None
        release_history.set_commits(release, [], refs[0][1])
        db.session.flush()
        jobs.load_commits.defer(release.id, [[number, commit, previous or last] for number, commit, previous in refs])
    elif commits is not None or refs is not None:
        release_history.set_commits(release, commits or [])


def show_previous_release(organization: str, version: str, project: str | None = None) -> dict[str, Any]:
    """Show the newest older release with commits; an empty object if there is none."""
    projects = {readable.id: readable for readable in readable_in(find_organization(organization), project)}
    earlier = [release_history.previous_with_commits(row) for row in existing_releases(list(projects), version)]
    row = next((release for release in earlier if release is not None), None)
    return {} if row is None else sentry_views.release([row], projects)


def list_release_commits(organization: str, version: str, project: str | None = None) -> list[dict[str, Any]]:
    """List the commits of a release, newest first."""
    project_ids = [readable.id for readable in readable_in(find_organization(organization), project)]
    rows = existing_releases(project_ids, version)
    loaded = [db.session.get(ErrorRelease, row.id, options=[undefer(ErrorRelease.commits)]) for row in rows]
    commits = next((row.commits for row in loaded if row is not None and row.commits), [])
    return [sentry_views.commit(commit) for commit in commits[:MAX_LISTED]]


def list_deploys(organization: str, version: str, project: str | None = None) -> list[dict[str, Any]]:
    """List the deployments of a release, the latest first."""
    project_ids = [readable.id for readable in readable_in(find_organization(organization), project)]
    ids = [row.id for row in existing_releases(project_ids, version)]
    return [
        sentry_views.deploy(deploy) for deploy in db.session.scalars(release_history.deploys_of(ids).limit(MAX_LISTED))
    ]


def create_deploy(organization: str, version: str, project: str | None = None) -> Response:
    """Add a deployment of a release to its projects."""
    projects = {readable.id: readable for readable in readable_in(find_organization(organization), project)}
    rows = existing_releases(list(projects), version)
    body = json_object()
    environment = body.get("environment")
    if not isinstance(environment, str) or not environment.strip():
        raise ClientRefused(400, "This field is required.", "environment")
    if len(environment) > MAX_NAME_LENGTH or set(environment) & set("/\r\n"):
        raise ClientRefused(400, "environment is invalid")
    fields: dict[str, Any] = {}
    for name, most in (("name", MAX_NAME_LENGTH), ("url", MAX_URL_LENGTH)):
        value = fields[name] = body.get(name)
        if value is not None and (not isinstance(value, str) or len(value) > most):
            raise ClientRefused(400, f"{name} is invalid")
    if fields["url"] and not fields["url"].startswith(("http://", "https://")):
        raise ClientRefused(400, "url is invalid")
    for name, key in (("started_at", "dateStarted"), ("finished_at", "dateFinished")):
        fields[name] = read_time(body.get(key))
        if body.get(key) is not None and fields[name] is None:
            raise ClientRefused(400, f"{key} is invalid")
    for row in rows:
        judge(caller(), Ability.UPDATE_ERRORS, projects[row.project_id])
    deploys = [release_history.add_deploy(row, environment, fields) for row in rows]
    return json_response(sentry_views.deploy(deploys[0]), 201)
