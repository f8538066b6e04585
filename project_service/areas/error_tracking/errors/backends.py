"""The backends of a project's errors: this server, or a server of Sentry. Routes and pages use both in the same way."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any, Protocol

from project_service.access.api import WithSchema
from project_service.areas.error_tracking.effects import issues
from project_service.areas.error_tracking.errors import queries as error_queries
from project_service.areas.error_tracking.errors import service
from project_service.areas.error_tracking.errors.models import ErrorStatus
from project_service.areas.error_tracking.errors.schemas import TrackedErrorSchema
from project_service.areas.error_tracking.errors.views import (
    LAST_DAY,
    ErrorDetails,
    ErrorPage,
    ErrorView,
    Frequency,
    Period,
)
from project_service.areas.error_tracking.events import event_views
from project_service.areas.error_tracking.sentry.errors import SentryErrors
from project_service.areas.error_tracking.settings import queries
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.kit.http.errors import BadRequest
from project_service.kit.http.pagination import Paging, read_page


class ErrorBackend(Protocol):
    """Where the errors of a project are."""

    def matching(self, fields: dict[str, Any], paging: Paging) -> WithSchema:
        """Return the list of the API for validated filters."""

    def show(self, error_id: str) -> ErrorView:
        """One error; raises ``NotFound``."""

    def page(self, filters: dict[str, Any], position: str) -> ErrorPage:
        """Return a page of the list for people; ``position`` is its number or cursor."""

    def details(self, error_id: str, event_id: str) -> ErrorDetails:
        """One error with one of its events; an unknown event is the newest."""

    def frequency(self, error: ErrorView, period: Period) -> Frequency | None:
        """The occurrences of an error in a period; ``None`` if they are not known."""

    def environments(self) -> list[str] | None:
        """The environments to choose from; ``None`` if they are not known."""

    def change_status(
        self, author: User, error_id: str, status: ErrorStatus, *, in_next_release: bool = False
    ) -> ErrorView:
        """Change the status of an error, and close its issue when it is resolved."""

    def exceptions(self, error_id: str) -> list[dict[str, Any]]:
        """The exceptions of the newest event, oldest first."""

    def link_issue(self, error_id: str, issue: Issue) -> None:
        """Link an issue to an error that has none; raises ``Conflict``."""

    def unlink_issue(self, error_id: str) -> None:
        """Remove the link of an error to its issue; raises ``NotFound`` if there is none."""


class IntegratedErrors:
    """Errors that this server stores."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def matching(self, fields: dict[str, Any], paging: Paging) -> WithSchema:
        """Return the statement that selects them; the rows of a page become views."""
        statement = error_queries.errors_matching(self.project, **fields)
        return WithSchema(TrackedErrorSchema, statement, prepare=error_queries.views_of)

    def show(self, error_id: str) -> ErrorView:
        """One error; raises ``NotFound``."""
        return error_queries.views_of([error_queries.find_error(self.project, error_id)])[0]

    def page(self, filters: dict[str, Any], position: str) -> ErrorPage:
        """Return a page of the list for people; ``position`` is its number."""
        period: Period | None = filters.get("period")
        since = None if period is None else dt.datetime.fromtimestamp(period.starts[0], dt.UTC)
        statement = error_queries.errors_matching(self.project, **filters, since=since)
        page = read_page(statement, position)
        return ErrorPage(
            error_queries.views_of(page.rows, period or LAST_DAY),
            previous={"page": page.before} if page.before else None,
            following={"page": page.following} if page.following else None,
            range_text=page.range_text,
        )

    def details(self, error_id: str, event_id: str) -> ErrorDetails:
        """One error with one of its events; an unknown event is the newest."""
        error = error_queries.find_error(self.project, error_id)
        [view] = error_queries.views_of([error])
        event = error_queries.event_or_newest(error, event_id)
        if event is None:
            return ErrorDetails(view, None)
        older, newer = error_queries.neighbours_of(event)
        return ErrorDetails(view, event_views.view_of(event), older, newer)

    def frequency(self, error: ErrorView, period: Period) -> Frequency | None:
        """The occurrences of an error in a period."""
        return error.frequency if period is LAST_DAY else error_queries.frequency_of(int(error.id), period)

    def environments(self) -> list[str] | None:
        """The environments in which errors occurred."""
        return error_queries.environments_in(self.project)

    def change_status(
        self, author: User, error_id: str, status: ErrorStatus, *, in_next_release: bool = False
    ) -> ErrorView:
        """Change the status of an error, and close its issue when it is resolved."""
        error = error_queries.find_error(self.project, error_id)
        closed = service.change_status(author, error, status, in_next_release=in_next_release)
        return dataclasses.replace(self.show(error_id), closed_issue_iid=None if closed is None else closed.iid)

    def exceptions(self, error_id: str) -> list[dict[str, Any]]:
        """The exceptions of the newest event, oldest first."""
        event = error_queries.event_or_newest(error_queries.find_error(self.project, error_id), "")
        return [] if event is None else event_views.exceptions_of(event)

    def link_issue(self, error_id: str, issue: Issue) -> None:
        """Link an issue to an error that has none; raises ``Conflict``."""
        issues.link_issue(error_queries.find_error(self.project, error_id), issue)

    def unlink_issue(self, error_id: str) -> None:
        """Remove the link of an error to its issue; raises ``NotFound`` if there is none."""
        issues.unlink_issue(error_queries.find_error(self.project, error_id))


def backend_of(project: Project) -> ErrorBackend:
    """Return the backend of a project; raises ``NotFound`` if nothing is configured, or Sentry and switched off."""
    setting = queries.find_setting(project)
    if not (setting.integrated or setting.enabled):
        raise queries.no_setting()
    return IntegratedErrors(project) if setting.integrated else SentryErrors(project, setting)


def integrated_only(project: Project) -> None:
    """Raise ``BadRequest`` unless this server stores the errors of a project."""
    if not queries.find_setting(project).integrated:
        raise BadRequest("400 Bad request - not available for this backend")


def open_issue(author: User, backend: ErrorBackend, error_id: str) -> Issue:
    """Create an issue about an error that has none, and link it."""
    error = backend.show(error_id)
    if error.issue is not None:
        raise issues.linked()
    issue = issues.create_issue(author, error, backend.exceptions(error_id))
    backend.link_issue(error_id, issue)
    return issue
