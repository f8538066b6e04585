"""Create, change and delete issues and their notes."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Collection
from typing import Any, TypedDict, Unpack

from sqlalchemy import delete, update

from project_service.domain import page_paths, todos
from project_service.domain.accounts.users import User
from project_service.domain.events import recording
from project_service.domain.events.models import Action
from project_service.domain.hooks import hook_events
from project_service.domain.hooks.hook_payloads import IssueSnapshot, issue_payload, labels_of
from project_service.domain.hooks.note_payloads import is_confidential, note_payload
from project_service.domain.notifications import levels
from project_service.domain.projects import Project
from project_service.domain.todos import TodoAction
from project_service.domain.tracker import incident_events, issues, label_events, label_rules, labels
from project_service.domain.tracker.counters import next_iid
from project_service.domain.tracker.issues import CLOSED, OPENED, Issue
from project_service.domain.tracker.notes import DISCUSSION_NOTE, Note
from project_service.domain.tracker.signals import issue_closed
from project_service.kit import clock
from project_service.kit.db.locking import delete_locked, lock_row
from project_service.kit.db.session import db
from project_service.kit.http import urls
from project_service.kit.http.errors import BadRequest, Invalid

LONGEST_TITLE = 255
BLANK = "can't be blank"
LONGEST_TEXT = 1_000_000
MAX_LABELS = 500  # of one issue
COUNTER = "issues"


class IssueFields(TypedDict, total=False):
    """What is set when an issue is created or changed; ``state_event`` is for changes."""

    title: str
    description: str | None
    issue_type: str
    severity: str
    confidential: bool
    discussion_locked: bool | None
    due_date: dt.date | None
    weight: int | None
    milestone_id: int | None
    labels: list[str]
    assignees: list[User]
    state_event: str | None


def create_issue(
    author: User, project: Project, *, alert_id: int | None = None, **fields: Unpack[IssueFields]
) -> Issue:
    """Open an issue; ``assignees`` are users, ``labels`` their titles; ``alert_id`` is of the alert that opens it."""
    assignees = fields.pop("assignees", [])
    issue = Issue(project_id=project.id, project=project, author_id=author.id, author=author, extra=None, **fields)
    issue.alert_id = alert_id
    with db.session.no_autoflush:
        check_issue(issue)
        label_rules.ensure_labels(project, issue.labels)
        issue.iid = next_iid(project.id, COUNTER)
        issue.assignees = list(assignees)
    db.session.add(issue)
    db.session.flush()
    label_events.record(author, issue, ())
    recording.record(author, Action.CREATED, project, issue)
    _add_todos(author, issue, {user.id for user in issue.assignees})
    _announce(author, issue, "open", {})
    return issue


def update_issue(author: User, issue: Issue, **fields: Unpack[IssueFields]) -> Issue:
    """Change an issue; ``state_event`` closes and reopens it."""
    state_event = fields.pop("state_event", None)
    was_confidential, was_open = issue.confidential, issue.state != CLOSED
    before = IssueSnapshot(issue)
    with db.session.no_autoflush:
        assigned, labelled = {user.id for user in issue.assignees}, frozenset(issue.labels)
        if "assignees" in fields:
            issue.assignees = list(fields.pop("assignees"))
        for name, value in fields.items():
            setattr(issue, name, value)
        check_issue(issue, labelled)
        if labelled != set(issue.labels):
            label_rules.ensure_labels(issue.project, set(issue.labels) - labelled)
        has_others = labelled != set(issue.labels) or assigned != {user.id for user in issue.assignees}
        if has_others:
            issue.updated_at = clock.now()  # both are rows of other tables
        if has_others or db.session.is_modified(issue, include_collections=False):
            issue.updated_by_id = author.id
    db.session.flush()
    label_events.record(author, issue, labelled)
    _add_todos(author, issue, {user.id for user in issue.assignees} - assigned)
    if issue.confidential != was_confidential:
        recording.change_confidentiality(issue)
    if state_event == "close":
        _close(author, issue, "closed")
    elif state_event == "reopen":
        _reopen(author, issue)
    db.session.flush()
    changes = before.changes_to(issue)
    if changes:
        is_open = issue.state != CLOSED
        _announce(author, issue, "update" if is_open == was_open else "reopen" if is_open else "close", changes)
    return issue


def close_issue(author: User, issue: Issue, *, note: str = "closed") -> None:
    """Close an issue and add a system note with the reason; a closed one is not changed."""
    before = IssueSnapshot(issue)
    if _close(author, issue, note):
        _announce(author, issue, "close", before.changes_to(issue))


def _close(author: User, issue: Issue, note: str) -> bool:
    if _held_state(issue) == CLOSED:
        return False
    issue.state, issue.closed_at, issue.closed_by_id = CLOSED, clock.now(), author.id
    issue.updated_by_id = author.id
    add_system_note(author, issue, note)
    todos.finish(author.id, issues.TARGET, [issue.id])
    recording.record(author, Action.CLOSED, issue.project, issue)
    db.session.flush()
    issue_closed.send(issue, by=author)
    return True


def reopen_issue(author: User, issue: Issue) -> None:
    """Open a closed issue again."""
    before = IssueSnapshot(issue)
    if _reopen(author, issue):
        _announce(author, issue, "reopen", before.changes_to(issue))


def _reopen(author: User, issue: Issue) -> bool:
    if _held_state(issue) == OPENED:
        return False
    issue.state, issue.closed_at, issue.closed_by_id = OPENED, None, None
    issue.updated_by_id = author.id
    add_system_note(author, issue, "reopened")
    recording.record(author, Action.REOPENED, issue.project, issue)
    db.session.flush()
    return True


def delete_issue(issue: Issue) -> None:
    """Remove an issue with its notes and events."""
    db.session.execute(delete(Note).where(Note.noteable_type == issues.TARGET, Note.noteable_id == issue.id))
    recording.forget(issue)
    todos.forget(issues.TARGET, issue.id)
    delete_locked(issue)


def create_note(
    author: User,
    issue: Issue,
    *,
    body: str | None,
    confidential: bool = False,
    discussion_id: str | None = None,
    created_at: dt.datetime | None = None,
) -> Note:
    """Comment on an issue; with ``discussion_id`` in a discussion that others reply to."""
    check_note(Note(body=body))
    note = _note(author, issue, body=body or "", confidential=confidential)
    if discussion_id is not None:
        note.type, note.discussion_id = DISCUSSION_NOTE, discussion_id
    if created_at is not None:
        note.created_at = note.updated_at = created_at
    issue.notes_count = Issue.notes_count + 1
    issue.updated_at = clock.now()
    db.session.flush()
    db.session.refresh(issue, ["confidential"])  # counting has locked the row until the end of the transaction
    recording.record(author, Action.COMMENTED, issue.project, note)
    announce_note(note, "create")
    return note


def reply(author: User, issue: Issue, first: Note, *, body: str | None, created_at: dt.datetime | None = None) -> Note:
    """Reply to a comment, which begins a discussion from then on. A reply to an internal comment is internal.

    Raises:
        BadRequest: the comment is a system note.

    """
    if first.system:
        raise BadRequest("400 Bad request - Discussion can not be replied to.")
    check_note(Note(body=body))
    lock_row(first, "type", "discussion_id", "confidential")
    if first.type is None:
        recording.rename_target(first, DISCUSSION_NOTE)
        values = {"type": DISCUSSION_NOTE, "discussion_id": first.discussion, "updated_at": Note.updated_at}
        db.session.execute(update(Note).where(Note.id == first.id).values(values))
        db.session.refresh(first, ["type", "discussion_id"])
    return create_note(
        author,
        issue,
        body=body,
        confidential=first.confidential,
        discussion_id=first.discussion,
        created_at=created_at,
    )


def update_note(author: User, note: Note, *, body: str | None) -> Note:
    """Change the text of a note."""
    former = note.body
    with db.session.no_autoflush:
        note.body = body or ""
        check_note(note)
        if note.body != former:
            note.updated_by_id = author.id
    db.session.flush()
    if note.body != former:
        announce_note(note, "update")
    return note


def delete_note(note: Note) -> None:
    """Remove a note of an issue with its event."""
    recording.forget(note)
    if not note.system:
        issue = db.session.get_one(Issue, note.noteable_id)
        issue.notes_count = Issue.notes_count - 1
    delete_locked(note)


def announce_note(note: Note, action: str) -> None:
    """Announce a comment to web hooks; internal ones, and those on confidential issues, only to hooks that ask."""
    flag = "confidential_note_events" if is_confidential(note) else "note_events"
    hook_events.announce(flag, note.project, lambda: note_payload(note, action))


def _announce(author: User, issue: Issue, action: str, changes: dict[str, Any]) -> None:
    labels = functools.cache(lambda: labels_of(issue.project, issue.labels))
    incident_events.record(author, issue, action, labels)
    flag = "confidential_issues_events" if issue.confidential else "issues_events"
    hook_events.announce(flag, issue.project, lambda: issue_payload(issue, author, action, changes, labels()))


def add_system_note(author: User, issue: Issue, text: str) -> Note:
    """Add a system note to an issue; system notes are no events."""
    return _note(author, issue, body=text, system=True)


def _add_todos(author: User, issue: Issue, assignee_ids: Collection[int]) -> None:
    """Give new assignees, except the author, a to-do item."""
    others = [user_id for user_id in assignee_ids if user_id != author.id]
    todos.add(others, TodoAction.ASSIGNED, issue.project_id, issues.TARGET, [issue.id], author=author)
    address = urls.absolute(f"/{issue.project.full_path}{page_paths.issue(issue.iid)}")
    levels.mail_assignees(others, author, issue.project, f"{issue.title} (#{issue.iid})", address)


def check_issue(issue: Issue, labelled: Collection[str] = ()) -> None:
    """Raise ``Invalid`` with the problems of an issue; ``labelled`` are its former labels, which are not checked."""
    problems: dict[str, list[str]] = {}
    if not (issue.title or "").strip():
        problems["title"] = [BLANK]
    elif len(issue.title) > LONGEST_TITLE:
        problems["title"] = [f"is too long (maximum is {LONGEST_TITLE} characters)"]
    if len(issue.description or "") > LONGEST_TEXT:
        problems["description"] = [f"is too long (maximum is {LONGEST_TEXT} characters)"]
    if (issue.weight or 0) < 0:
        problems["weight"] = ["must be greater than or equal to 0"]
    if len(issue.labels) > max(MAX_LABELS, len(labelled)):
        problems["labels"] = [f"are too many (maximum is {MAX_LABELS})"]
    elif any(len(title) > labels.LONGEST_TITLE for title in issue.labels if title not in labelled):
        problems["labels"] = [f"title is too long (maximum is {labels.LONGEST_TITLE} characters)"]
    if problems:
        raise Invalid(**problems)


def check_note(note: Note) -> None:
    """Raise ``Invalid`` with the problems of a note."""
    if not (note.body or "").strip():
        raise Invalid(note=BLANK)
    if len(note.body) > LONGEST_TEXT:
        raise Invalid(note=f"is too long (maximum is {LONGEST_TEXT} characters)")


def _held_state(issue: Issue) -> str:
    """The state of an issue, with the row locked until the end of the unit of work."""
    lock_row(issue, "state", "confidential")
    return issue.state


def _note(author: User, issue: Issue, *, body: str, confidential: bool = False, system: bool = False) -> Note:
    note = Note(
        project_id=issue.project_id,
        noteable_type=issues.TARGET,
        noteable_id=issue.id,
        author_id=author.id,
        author=author,
        body=body,
        confidential=confidential,
        system=system,
        extra=None,
    )
    note.noteable_iid = issue.iid
    db.session.add(note)
    return note
