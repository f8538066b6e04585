"""Changes of errors by users: status, assignee, linked issues, removal (error collection reference, section 14)."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import func, or_, select

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.areas.error_tracking.effects import hooks
from project_service.areas.error_tracking.errors import comments
from project_service.areas.error_tracking.errors.models import (
    TARGET,
    ErrorStatus,
    Facet,
    TrackedError,
    TrackedErrorFacet,
)
from project_service.areas.error_tracking.releases.models import ErrorRelease
from project_service.domain import page_paths, todos
from project_service.domain.accounts.users import ACTIVE, User, users
from project_service.domain.notifications import levels
from project_service.domain.todos import TodoAction
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.issues import CLOSED, Issue
from project_service.kit import clock
from project_service.kit.db.locking import delete_locked, lock_row
from project_service.kit.db.session import db
from project_service.kit.http import urls
from project_service.kit.http.errors import Invalid

RESOLVED_NOTE = "resolved the corresponding error and closed the issue"


def change_status(
    author: User, error: TrackedError, status: ErrorStatus, *, in_next_release: bool = False
) -> Issue | None:
    """Change the status of an error; return the linked issue if it was closed with it.

    The status that it has already changes nothing. ``in_next_release``: only events of releases that are newer than
    those in which it has occurred reopen it.

    Raises:
        Invalid: it is to be resolved in the next release, but no event of it names a release.

    """
    lock_row(error, "status", "issue_id", "resolved_after")
    resolved_after = None
    if in_next_release:
        if status != ErrorStatus.RESOLVED:
            raise Invalid(in_next_release="is only valid with the status resolved")
        resolved_after = _newest_release_at(error)
        if resolved_after is None:
            raise Invalid(in_next_release="is not possible: no event of this error names a release")
    if error.status == status:
        error.resolved_after = resolved_after or error.resolved_after
        return None
    error.status, error.resolved_after = status, resolved_after
    error.resolved_at = clock.now() if status == ErrorStatus.RESOLVED else None
    if status != ErrorStatus.UNRESOLVED:
        error.regressed_at = None
    db.session.flush()
    hooks.announce(error, hooks.ACTIONS[status], author)
    if status == ErrorStatus.RESOLVED:
        todos.finish(author.id, TARGET, [error.id])
    if status != ErrorStatus.RESOLVED or error.issue_id is None:
        return None
    return close_linked_issue(author, db.session.get(Issue, error.issue_id))


def close_linked_issue(author: User, issue: Issue | None) -> Issue | None:
    """Close the issue of a resolved error; return it if it was open."""
    if issue is None or issue.state == CLOSED:
        return None
    # a list of errors loads issues without the relationships that web hooks send
    issue = db.session.get_one(Issue, issue.id, populate_existing=True)
    issue_rules.close_issue(author, issue, note=RESOLVED_NOTE)
    return issue


def assign_to_id(author: User, error: TrackedError, user_id: int | None) -> None:
    """Assign an error to the user with an id, who must be able to see it and gets a to-do item; 0 means nobody."""
    user = db.session.scalar(users().where(User.id == user_id)) if user_id else None
    if user_id:
        is_active = user is not None and user.state == ACTIVE
        if user is None or not is_active or not allowed(Caller.of(user), Ability.READ_ERRORS, error.project):
            raise Invalid(assignee_id="is not a user who may see errors of this project")
    lock_row(error, "assignee_id")
    is_new = user is not None and error.assignee_id != user.id
    error.assignee_id = None if user is None else user.id
    error.assignee = user
    db.session.flush()
    if user is not None and is_new and user.id != author.id:
        todos.add([user.id], TodoAction.ASSIGNED, error.project_id, TARGET, [error.id], author=author)
        address = urls.absolute(f"/{error.project.full_path}{page_paths.error(error.id)}")
        levels.mail_assignees([user.id], author, error.project, error.title, address)


def delete_error(error: TrackedError) -> None:
    """Remove an error with its events and comments; the next event makes a new error."""
    comments.forget([error.id])
    delete_locked(error)
    db.session.flush()


def _newest_release_at(error: TrackedError) -> dt.datetime | None:
    """Return when the newest release in which an error has occurred was first seen on this server."""
    facet, release = TrackedErrorFacet, ErrorRelease
    versions = select(facet.value).where(facet.error_id == error.id, facet.kind == int(Facet.RELEASE))
    named = or_(release.version.in_(versions), release.version == error.last_release)
    return db.session.scalar(select(func.max(release.created_at)).where(release.project_id == error.project_id, named))
