"""Changes of errors by users: status, linked issues, removal (error collection reference, section 14)."""

from __future__ import annotations

from project_service.areas.error_tracking.errors.models import ErrorStatus, TrackedError
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.issues import CLOSED, Issue
from project_service.domain.users import User
from project_service.kit import clock
from project_service.kit.db.locking import delete_locked, lock_row
from project_service.kit.db.session import db

RESOLVED_NOTE = "resolved the corresponding error and closed the issue"


def change_status(author: User, error: TrackedError, status: ErrorStatus) -> Issue | None:
    """Change the status of an error; return the linked issue if it was closed with it.

    The status that the error has already changes nothing.
    """
    lock_row(error, "status", "issue_id")
    if error.status == status:
        return None
    error.status = status
    error.resolved_at = clock.now() if status == ErrorStatus.RESOLVED else None
    if status != ErrorStatus.UNRESOLVED:
        error.regressed_at = None
    db.session.flush()
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


def delete_error(error: TrackedError) -> None:
    """Remove an error with its events; the next event makes a new error."""
    delete_locked(error)
    db.session.flush()
