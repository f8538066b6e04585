"""Record events, in the transaction of the change they describe, and keep them up to date."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import delete, update

from project_service.domain.access_levels import Visibility
from project_service.domain.accounts.users import User
from project_service.domain.events.models import Action, Event, Kind, Restriction
from project_service.domain.projects import Project
from project_service.domain.tracker import issues, merge_requests, milestones, notes
from project_service.domain.tracker.documents import designs, snippets, wiki_pages
from project_service.domain.tracker.documents.designs import Design
from project_service.domain.tracker.documents.snippets import Snippet
from project_service.domain.tracker.documents.wiki_pages import WikiPage
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.session import db

ACTIVITY_UPDATE_INTERVAL = dt.timedelta(hours=1)

Target = Issue | Milestone | Note | MergeRequest | Snippet | Design | WikiPage
TYPES: dict[type[Any], str] = {
    Issue: issues.TARGET,
    Milestone: milestones.TARGET,
    Note: notes.TARGET,
    MergeRequest: merge_requests.TARGET,
    Snippet: snippets.TARGET,
    Design: designs.TARGET,
    WikiPage: wiki_pages.TARGET,
}
KINDS: dict[str, Kind] = {
    issues.TARGET: Kind.ISSUE,
    merge_requests.TARGET: Kind.MERGE_REQUEST,
    milestones.TARGET: Kind.MILESTONE,
    snippets.TARGET: Kind.SNIPPET,
    designs.TARGET: Kind.ISSUE,
    wiki_pages.TARGET: Kind.WIKI,
    "Commit": Kind.CODE,
}
SNIPPETS = {
    Visibility.PRIVATE: Restriction.MEMBERS,
    Visibility.INTERNAL: Restriction.SIGNED_IN,
    Visibility.PUBLIC: Restriction.NONE,
}


def record(
    author: User, action: Action, project: Project, target: Target | None = None, data: dict[str, Any] | None = None
) -> Event:
    """Record that ``author`` did ``action`` in ``project``, on ``target`` if there is one.

    ``data`` is the payload of a push. The project counts as active from then on; its row is touched at most once an
    hour (events reference, section 8).
    """
    now = clock.now()
    kind, restriction, issue_id = visibility_columns(action, target)
    event = Event(
        author_id=author.id,
        action=action,
        kind=kind,
        restriction=restriction,
        issue_id=issue_id,
        project_id=project.id,
        target_type=_type_of(target),
        target_id=None if target is None else target.id,
        data=data,
        created_at=now,
    )
    db.session.add(event)
    if project.last_activity_at < now - ACTIVITY_UPDATE_INTERVAL:
        project.last_activity_at = now
    return event


def visibility_columns(action: Action, target: Target | None) -> tuple[Kind, Restriction, int | None]:
    """Return kind, restriction and issue id, which decide the visibility of an event.

    A snippet's events keep the visibility it had: nothing in the service changes that of a snippet.
    """
    if target is None:
        return (Kind.CODE if action is Action.PUSHED else Kind.PROJECT), Restriction.NONE, None
    if isinstance(target, Note):
        return _visibility_of_note(target)
    kind = KINDS[TYPES[type(target)]]
    if isinstance(target, Issue):
        return kind, _restriction_of(target), target.id
    if isinstance(target, Design):
        return kind, _restriction_of(target.issue), target.issue_id
    if isinstance(target, Snippet):
        return kind, SNIPPETS[Visibility(target.visibility)], None
    return kind, Restriction.NONE, None


def change_confidentiality(issue: Issue) -> None:
    """Update the events of an issue to its confidentiality; those of internal notes keep their restriction."""
    statement = update(Event).where(Event.issue_id == issue.id, Event.restriction != Restriction.INTERNAL)
    db.session.execute(statement.values(restriction=_restriction_of(issue)))


def forget(target: Target) -> None:
    """Remove the events of a deleted target."""
    db.session.execute(delete(Event).where(Event.target_type == _type_of(target), Event.target_id == target.id))


def forget_target(target: Target) -> None:
    """Clear the target id of the events of a deleted milestone, which are kept (events reference, section 7)."""
    statement = update(Event).where(Event.target_type == _type_of(target), Event.target_id == target.id)
    db.session.execute(statement.values(target_id=None, kind=Kind.PROJECT))


def rename_target(note: Note, note_type: str) -> None:
    """Change the type that events call a note by."""
    these = Event.target_type == _type_of(note), Event.target_id == note.id
    db.session.execute(update(Event).where(*these).values(target_type=note_type))


def _type_of(target: Target | None) -> str | None:
    if isinstance(target, Note) and target.type:
        return target.type
    return None if target is None else TYPES[type(target)]


def _restriction_of(issue: Issue | None) -> Restriction:
    return Restriction.CONFIDENTIAL if issue is not None and issue.confidential else Restriction.NONE


def _visibility_of_note(note: Note) -> tuple[Kind, Restriction, int | None]:
    kind = KINDS.get(note.noteable_type)
    if kind is None:  # alerts, and types from archives that are unknown here
        return Kind.PROJECT, Restriction.DEVELOPERS, None
    issue = _issue_of(note)
    if note.confidential:
        return kind, Restriction.INTERNAL, issue.id if issue else None
    if issue is not None:
        return kind, _restriction_of(issue), issue.id
    if note.noteable_type == snippets.TARGET:
        snippet = db.session.get(Snippet, note.noteable_id)
        return kind, SNIPPETS[Visibility(snippet.visibility)] if snippet else Restriction.MEMBERS, None
    return kind, Restriction.NONE, None


def _issue_of(note: Note) -> Issue | None:
    if note.noteable_type == issues.TARGET:
        return db.session.get(Issue, note.noteable_id)
    if note.noteable_type == designs.TARGET:
        design = db.session.get(Design, note.noteable_id)
        return design.issue if design else None
    return None
