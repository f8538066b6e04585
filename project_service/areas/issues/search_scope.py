"""Issues and comments as scopes of the search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import contains_eager, joinedload, selectinload

from project_service.access.abilities import Ability, allowed
from project_service.access.across_projects import issues_of_projects
from project_service.access.references import search_scopes
from project_service.access.references.search_scopes import (
    EVERYWHERE,
    NOTHING,
    PROJECT,
    Hit,
    Matches,
    Search,
    SearchScope,
)
from project_service.access.rules import visible_issues, visible_notes
from project_service.areas.issues.schemas import IssueSchema
from project_service.domain import page_paths
from project_service.domain.projects import Project
from project_service.domain.tracker import issues, merge_requests
from project_service.domain.tracker.issues import TEXTS, Issue
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.milestones import WITH_OWNER
from project_service.domain.tracker.notes import Note
from project_service.domain.tracker.schemas import NoteSchema
from project_service.kit.db.base import table_of
from project_service.kit.db.session import NO_LAZY_LOADING, db
from project_service.kit.db.text_search import TextIndex
from project_service.kit.http.pagination import SelectedRows

NOTE_TEXTS = TextIndex(table_of(Note), ("body",))  # not registered: texts are compared, in one project only
MAX_EXCERPT_CHARACTERS = 300


def find_issues(search: Search) -> Matches:
    """The issues whose title or description has the words; ``#12`` is the number of an issue."""
    statement = select(Issue).join(Issue.project).where(search.within(Issue.project_id))
    statement = statement.where(issues_of_projects(search.caller)).options(
        contains_eager(Issue.project).options(joinedload(Project.namespace)),
        *(joinedload(name) for name in (Issue.author, Issue.closed_by)),
        selectinload(Issue.milestone).options(*WITH_OWNER),
        selectinload(Issue.assignees),
        selectinload(Issue.label_rows),
        NO_LAZY_LOADING,
    )
    if search.state in (issues.OPENED, issues.CLOSED):
        statement = statement.where(Issue.state == search.state)
    if search.confidential is not None:
        statement = statement.where(Issue.confidential.is_(search.confidential))
    if search.number is not None:
        # by the index of each project: there is none of numbers alone
        numbered = statement.where(Issue.project_id.in_(select(Project.id)), Issue.iid == search.number)
        return Matches(SelectedRows(search.ordered(numbered, Issue.created_at, Issue.id)))
    return search_scopes.matching(search, TEXTS, statement, Issue.created_at, Issue.id)


def show_issue(issue: Any) -> Hit:
    """An issue on the page."""
    path, state = issue.project.full_path, "closed" if issue.state == issues.CLOSED else "open"
    about = f"{state} {issue.issue_type}" + (", confidential" if issue.confidential else "")
    return Hit(f"#{issue.iid} {issue.title}", f"/{path}{page_paths.issue(issue.iid)}", path, about)


def find_notes(search: Search) -> Matches:
    """The comments of a project that have the words, on issues and merge requests that the caller may read."""
    project = search.project
    if project is None:
        return NOTHING
    readable: list[Any] = []
    if allowed(search.caller, Ability.READ_ISSUES, project):
        readable_issues = select(Issue.id).where(
            Issue.project_id == project.content_id, visible_issues(search.caller, project)
        )
        readable.append((Note.noteable_type == issues.TARGET) & Note.noteable_id.in_(readable_issues))
    if allowed(search.caller, Ability.READ_MERGE_REQUESTS, project):
        readable.append(Note.noteable_type == merge_requests.TARGET)
    if not readable:
        return NOTHING
    either = readable[0] if len(readable) == 1 else readable[0] | readable[1]
    statement = select(Note).where(
        Note.project_id == project.content_id, Note.system.is_(False), visible_notes(search.caller, project)
    )
    statement = statement.where(either).options(joinedload(Note.author), joinedload(Note.project), NO_LAZY_LOADING)
    return search_scopes.matching(search, NOTE_TEXTS, statement, Note.id, Note.id)


def add_numbers(_search: Search, notes: Sequence[Note]) -> None:
    """Set ``noteable_iid`` on each note, with one statement for each kind of noteable."""
    for kind, model in ((issues.TARGET, Issue), (merge_requests.TARGET, MergeRequest)):
        ids = {note.noteable_id for note in notes if note.noteable_type == kind}
        if ids:
            statement: Any = select(model.id, model.iid).where(model.id.in_(ids))
            numbers: dict[int, int] = dict(db.session.execute(statement).all())
            for note in notes:
                if note.noteable_type == kind:
                    note.noteable_iid = numbers.get(note.noteable_id or 0)


def show_note(note: Any) -> Hit:
    """A comment on the page."""
    kind, sign = ("issues", "#") if note.noteable_type == issues.TARGET else ("merge_requests", "!")
    path = note.project.full_path
    address = f"/{path}/-/{kind}/{note.noteable_iid}?note={note.id}#note_{note.id}"
    text = " ".join(note.body.split())
    excerpt = text if len(text) <= MAX_EXCERPT_CHARACTERS else text[:MAX_EXCERPT_CHARACTERS] + "…"
    author = note.author.name if note.author else "Former user"
    return Hit(f"{sign}{note.noteable_iid}: comment of {author}", address, path, excerpt)


search_scopes.add(SearchScope("issues", "Issues", 40, EVERYWHERE, find_issues, show_issue, IssueSchema))
search_scopes.add(SearchScope("notes", "Comments", 45, (PROJECT,), find_notes, show_note, NoteSchema, add_numbers))
