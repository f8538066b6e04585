"""Paths of the pages that other pages, mails, hooks and the API link to, below ``base_of`` their project or group."""

from __future__ import annotations

from typing import Any, Protocol

from project_service.domain.namespaces import Namespace
from project_service.domain.projects import Project


class Named(Protocol):
    """A project or group, or a row with its path."""

    full_path: Any


def base_of(owner: Project | Namespace) -> str:
    """Return the path that the pages of a project or group are below."""
    return of_project(owner) if isinstance(owner, Project) else of_group(owner)


def of_project(project: Named) -> str:
    """Return the path that the pages of a project are below."""
    return f"/{project.full_path}"


def of_group(group: Named) -> str:
    """Return the path that the pages of a group are below."""
    return f"/groups/{group.full_path}"


def alert(iid: int) -> str:
    """Return the path of the page of an alert."""
    return f"/-/alert_management/{iid}/details"


def commit(commit_id: str) -> str:
    """Return the path of the page of a commit."""
    return f"/-/commit/{commit_id}"


def error(error_id: int | str) -> str:
    """Return the path of the page of a tracked error; Sentry's errors have texts as ids."""
    return f"/-/error_tracking/{error_id}/details"


def finding(finding_id: int) -> str:
    """Return the path of the page of a finding of a scanner."""
    return f"/-/security/findings/{finding_id}"


def issue(iid: int | str | None) -> str:
    """Return the path of the page of an issue or incident."""
    return f"/-/issues/{iid}"


def merge_request(iid: int | str | None) -> str:
    """Return the path of the page of a merge request."""
    return f"/-/merge_requests/{iid}"


def milestone(iid: int | str | None) -> str:
    """Return the path of the page of a milestone."""
    return f"/-/milestones/{iid}"
