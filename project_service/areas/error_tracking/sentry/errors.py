"""Errors that a server of Sentry stores: shown, resolved and ignored here (error collection reference, section 19).

A token may reach several projects. Whatever is shown or changed is first checked to be of the configured one.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import joinedload
from sqlalchemy.orm.attributes import set_committed_value

from project_service.access.api import WithSchema
from project_service.areas.error_tracking.effects import issues as error_issues
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
from project_service.areas.error_tracking.sentry import values as sentry_values
from project_service.areas.error_tracking.sentry.client import GONE, SentryClient, SentryFailed, SentryResponse
from project_service.areas.error_tracking.settings.models import API_PATH, ErrorTrackingSetting, SentryIssueLink
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.kit.db.session import db, one, unique, writing
from project_service.kit.http.errors import BadRequest, NotFound
from project_service.kit.http.pagination import DEFAULT_SIZE, Paging, PreparedPage

API_ROOT = "api/0/"
ERROR_ID = re.compile(r"[0-9]{1,30}")
CURSOR = re.compile(r"[0-9:-]{1,100}")
SORTS = {"count": "freq", "first_seen": "new"}
QUOTE = re.compile(r'["\\\s]+')


class SentryErrors:
    """Errors of the project of a Sentry server."""

    def __init__(self, project: Project, setting: ErrorTrackingSetting) -> None:
        self.project = project
        self._setting = setting
        self._client = SentryClient.of(setting)

    def matching(self, fields: dict[str, Any], paging: Paging) -> WithSchema:
        """Return a page of the list of the API; pages are linked by cursors, without totals."""
        answer = self._list(fields, paging.size, fields.get("cursor") or "", stale=False)
        cursors = {"prev": answer.previous, "next": answer.following}
        links = [
            f'<{paging.address({"cursor": cursor, "page": None})}>; rel="{name}"'
            for name, cursor in cursors.items()
            if cursor
        ]
        headers = {"Link": ", ".join(links)} if links else {}
        return WithSchema(TrackedErrorSchema, PreparedPage(self._views(answer.body), headers))

    def page(self, wanted: dict[str, Any], position: str) -> ErrorPage:
        """Return a page of the list for people; ``position`` is a cursor. A failure is stated on the page."""
        try:
            answer = self._list(wanted, DEFAULT_SIZE, position, stale=True)
            errors = self._views(answer.body)
        except SentryFailed as error:
            return ErrorPage([], notice=error.advice)
        return ErrorPage(
            errors,
            previous={"cursor": answer.previous} if answer.previous else None,
            following={"cursor": answer.following} if answer.following else None,
            notice=answer.notice,
        )

    def show(self, error_id: str) -> ErrorView:
        """One error; raises ``NotFound`` and ``SentryFailed``."""
        _, issue = self._issue(error_id)
        return self._views([issue.body])[0]

    def details(self, error_id: str, event_id: str) -> ErrorDetails:
        """One error with its newest event; others are not read from Sentry."""
        url, issue = self._issue(error_id, stale=True)
        notice = issue.notice
        event = None
        try:
            answer = self._client.get(f"{url}events/latest/", stale=True)
            event = sentry_values.event_of(answer.body)
            notice = notice or answer.notice
        except SentryFailed as error:
            if error.code not in GONE:
                notice = notice or error.advice
        return ErrorDetails(self._views([issue.body])[0], event, notice=notice)

    def frequency(self, error: ErrorView, period: Period) -> Frequency | None:
        """The occurrences of the last day; others are not known here."""
        return error.frequency if period is LAST_DAY else None

    def environments(self) -> list[str] | None:
        """Not known here."""
        return None

    def change_status(
        self, author: User, error_id: str, status: ErrorStatus, *, in_next_release: bool = False
    ) -> ErrorView:
        """Change the status of an error in Sentry; when it is resolved, close its issue here."""
        url, issue = self._issue(error_id, cached=False)
        details = {"statusDetails": {"inNextRelease": True}} if in_next_release else {}
        if issue.body.get("status") != status.text or in_next_release:
            self._client.put(url, {"status": status.text, **details})
        view = dataclasses.replace(self._views([issue.body])[0], status=status.text)
        closed = None
        if status == ErrorStatus.RESOLVED and issue.body.get("status") != status.text:
            closed = service.close_linked_issue(author, view.issue)
        return dataclasses.replace(view, closed_issue_iid=None if closed is None else closed.iid)

    def exceptions(self, error_id: str) -> list[dict[str, Any]]:
        """The exceptions of the newest event, oldest first; none if Sentry does not return them."""
        url, _ = self._issue(error_id)
        try:
            return sentry_values.event_of(self._client.get(f"{url}events/latest/").body).exceptions
        except SentryFailed:
            return []

    def link_issue(self, error_id: str, issue: Issue) -> None:
        """Link an issue to an error that has none; raises ``Conflict``."""
        with unique(error_issues.linked()):
            db.session.add(SentryIssueLink(project_id=self.project.id, sentry_id=error_id, issue_id=issue.id))

    def unlink_issue(self, error_id: str) -> None:
        """Remove the link of an error to its issue; raises ``NotFound`` if there is none."""
        link = SentryIssueLink
        mine = select(link).where(link.project_id == self.project.id, link.sentry_id == error_id)
        issue_link = one(mine, NotFound("Issue"))
        db.session.delete(issue_link)
        db.session.flush()

    def _list(self, wanted: dict[str, Any], size: int, cursor: str, *, stale: bool) -> SentryResponse:
        """Read a page of issues; servers that no longer list those of a project list those of its organisation."""
        query = _query_of(wanted, size, cursor)
        try:
            return self._client.get(f"{self._client.api_url}/issues/", query, stale=stale)
        except SentryFailed as error:
            if error.code not in GONE:
                raise
        more = {"project": self._project_id(), "groupStatsPeriod": "24h"}
        return self._client.get(f"{self._organization_url()}issues/", more | query, stale=stale)

    def _issue(self, error_id: str, *, stale: bool = False, cached: bool = True) -> tuple[str, SentryResponse]:
        """Read an issue of the project; return its URL too. Raises ``NotFound`` for those of other projects."""
        if not ERROR_ID.fullmatch(error_id):
            raise NotFound("Error")
        for base in (f"{self._client.host}/{API_ROOT}", self._organization_url()):
            url = f"{base}issues/{error_id}/"
            try:
                answer = self._client.get(url, stale=stale) if cached else self._client.get_uncached(url)
            except SentryFailed as error:
                if error.code not in GONE:
                    raise
                continue
            sentry_values.check_issue(answer.body)
            if not self._is_mine(answer.body):
                break
            return url, answer
        raise NotFound("Error")

    def _views(self, issues: Any) -> list[ErrorView]:
        """Return issues as they are shown, with their issues here; those of other projects are left out."""
        if not isinstance(issues, list):
            raise SentryFailed(sentry_values.UNREADABLE)
        for issue in issues:
            sentry_values.check_issue(issue)
        mine = [issue for issue in issues if self._is_mine(issue)]
        links = self._links([str(issue["id"]) for issue in mine])
        pages = f"{self._client.host}/{self._organization}/{self._slug}/issues/"
        return [sentry_values.error_of(self.project, issue, pages, links.get(str(issue["id"]))) for issue in mine]

    def _links(self, error_ids: list[str]) -> dict[str, Issue]:
        link = SentryIssueLink
        mine = select(link).where(link.project_id == self.project.id, link.sentry_id.in_(error_ids))
        return {row.sentry_id: row.issue for row in db.session.scalars(mine.options(joinedload(link.issue)))}

    def _is_mine(self, issue: dict[str, Any]) -> bool:
        project = issue.get("project")
        project = project if isinstance(project, dict) else {}
        if project.get("id") is not None:
            return str(project["id"]) == self._project_id()
        return project.get("slug") == self._slug

    def _project_id(self) -> str:
        """Return the id of the project in Sentry; it is asked for once, and stored until the address changes."""
        setting = self._setting
        if setting.sentry_project_id is None:
            project_fields = self._client.get(f"{self._client.api_url}/").body
            sentry_values.check_issue(project_fields)
            project_id = str(project_fields["id"])
            with writing():
                table = ErrorTrackingSetting
                stored = update(table).where(table.id == setting.id, table.api_url == setting.api_url)
                values = {"sentry_project_id": project_id, "updated_at": table.updated_at}
                db.session.execute(stored.values(**values).execution_options(synchronize_session=False))
            set_committed_value(setting, "sentry_project_id", project_id)
        return setting.sentry_project_id or ""

    @property
    def _organization(self) -> str:
        return self._path[0]

    @property
    def _slug(self) -> str:
        return self._path[1]

    @property
    def _path(self) -> list[str]:
        return self._client.api_url.partition(API_PATH)[2].split("/")

    def _organization_url(self) -> str:
        return f"{self._client.host}/{API_ROOT}organizations/{self._organization}/"


def _query_of(wanted: dict[str, Any], size: int, cursor: str) -> dict[str, str]:
    """Return the parameters of a list; an empty ``query`` means all statuses, none would mean the unresolved ones."""
    statuses = wanted.get("status") or []
    if len(statuses) > 1:
        raise BadRequest("Bad Request: Invalid issue_status")
    if wanted.get("sort") == "asc":
        raise BadRequest("Invalid value for sort param")
    terms = [f"is:{status}" for status in statuses]
    terms += filter(None, [" ".join((wanted.get("search") or "").split())])
    terms += [_term(name, wanted[name]) for name in ("environment", "release", "level") if wanted.get(name)]
    query = {"query": " ".join(terms), "limit": str(size)}
    if (sentry_order := SORTS.get(wanted.get("order_by") or "")) is not None:
        query["sort"] = sentry_order
    if CURSOR.fullmatch(cursor):
        query["cursor"] = cursor
    return query


def _term(name: str, value: str) -> str:
    plain = QUOTE.sub(" ", value).strip()
    return f'{name}:"{plain}"' if " " in plain else f"{name}:{plain}"
