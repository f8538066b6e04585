"""Load a page of events with their targets: a few statements, none per row.

Events and targets are read as columns: a feed shows a title and a number of what an event is about.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Select, bindparam, select
from sqlalchemy.orm import joinedload, raiseload
from sqlalchemy.orm.interfaces import ORMOption

from project_service.domain.accounts.users import User
from project_service.domain.events.models import Event
from project_service.domain.projects import Project
from project_service.domain.repositories.contents import commit_titles
from project_service.domain.tracker import issues, merge_requests, milestones
from project_service.domain.tracker.documents import designs, snippets, wiki_pages
from project_service.domain.tracker.documents.designs import Design
from project_service.domain.tracker.documents.snippets import Snippet
from project_service.domain.tracker.documents.wiki_pages import WikiPage
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import COMMIT, FINDERS, NOTE_TYPES, TARGET, Note, add_resolutions
from project_service.kit.db import large_texts
from project_service.kit.db.base import Base, table_of
from project_service.kit.db.session import db

SHOWN_COLUMNS = ("id", "project_id", "iid", "title", "filename", "slug", "issue_type")
EVENT_COLUMNS = ("id", "action", "project_id", "target_type", "target_id", "author_id", "data", "created_at")
USER_COLUMNS = ("id", "name", "username", "state", "avatar_url", "email")

_events, _users, _projects = table_of(Event).c, table_of(User).c, table_of(Project).c
_ids: Any = bindparam("ids", expanding=True)
_select_events = (
    select(
        *(_events[name] for name in EVENT_COLUMNS),
        _projects.full_path,
        *(_users[name].label(f"author_{name}") for name in USER_COLUMNS),
    )
    .join(_users.id.table, _users.id == _events.author_id)
    .join(_projects.id.table, _projects.id == _events.project_id)
    .where(_events.id.in_(_ids))
)


def _select_targets(model: type[Base]) -> Select[Any]:
    columns = table_of(model).columns
    return select(*(columns[name] for name in SHOWN_COLUMNS if name in columns)).where(columns["id"].in_(_ids))


_select_targets_by_type = {
    issues.TARGET: _select_targets(Issue),
    milestones.TARGET: _select_targets(Milestone),
    merge_requests.TARGET: _select_targets(MergeRequest),
    snippets.TARGET: _select_targets(Snippet),
    designs.TARGET: _select_targets(Design),
    wiki_pages.TARGET: _select_targets(WikiPage),
}


@dataclass(frozen=True, slots=True)
class EventTarget:
    """The target of an event as the feed shows it; ``noteable`` is the row itself, or what a comment is on."""

    title: str | None = None
    iid: int | None = None
    note: Note | None = None
    wiki_page: Any = None
    noteable: Any = None


def events_with_targets(ids: Sequence[int], *, shorten: bool = False) -> list[SimpleNamespace]:
    """Load the events of a page in its order, with ``target`` set; events deleted meanwhile are left out.

    With ``shorten`` long comments are cut.
    """
    loaded = {row.id: row for row in _rows(_select_events, ids)}
    events = [_event(loaded[event_id]) for event_id in ids if event_id in loaded]
    ids_by_type: dict[str, set[int]] = {}
    for event in events:
        if event.target_id is not None and event.target_type:
            target_type = TARGET if event.target_type in NOTE_TYPES else event.target_type
            ids_by_type.setdefault(target_type, set()).add(event.target_id)
    notes = _load(Note, ids_by_type.pop(TARGET, ()), joinedload(Note.author), shorten=shorten)
    add_resolutions(notes.values())
    for note in notes.values():
        if note.noteable_id is not None:
            ids_by_type.setdefault(note.noteable_type, set()).add(note.noteable_id)
    rows: dict[str, dict[int, Any]] = {
        **{name: _targets(name, ids) for name, ids in ids_by_type.items() if name in _select_targets_by_type},
        **{name: FINDERS[name](ids) for name, ids in ids_by_type.items() if name in FINDERS},
    }
    titles = _titles_of_commits(notes.values())
    for event in events:
        event.target = _target(event, notes, rows, titles)
    return events


def _rows(statement: Select[Any], ids: Collection[int]) -> Iterable[Any]:
    return db.session.execute(statement, {"ids": list(ids)}) if ids else ()


def _event(row: Any) -> SimpleNamespace:
    in_author = len(EVENT_COLUMNS) + 1
    event = SimpleNamespace(**dict(zip(EVENT_COLUMNS, row, strict=False)))
    event.project = SimpleNamespace(full_path=row.full_path)
    event.author = SimpleNamespace(**dict(zip(USER_COLUMNS, row[in_author:], strict=True)))
    return event


def _targets(target_type: str, ids: Collection[int]) -> dict[int, SimpleNamespace]:
    """Load targets of a type, with the type as ``target_type``."""
    rows = _rows(_select_targets_by_type[target_type], ids)
    return {row.id: SimpleNamespace(target_type=target_type, **row._mapping) for row in rows}


def _load(model: type[Any], ids: Collection[int], *options: ORMOption, shorten: bool = False) -> dict[int, Any]:
    if not ids:
        return {}
    statement = select(model).where(model.id.in_(ids)).options(*options, raiseload("*"))
    return {row.id: row for row in large_texts.load(statement, shorten=shorten)}


def _target(
    event: Any, notes: dict[int, Note], rows: dict[str, dict[int, Any]], titles: dict[tuple[int, str], str]
) -> EventTarget:
    if event.target_id is None or not event.target_type:
        return EventTarget()
    if event.target_type not in NOTE_TYPES:
        row = rows.get(event.target_type, {}).get(event.target_id)
        if getattr(row, "project_id", None) != event.project_id:  # deleted, or of a type without a model
            return EventTarget(iid=event.target_id)
        page = row if event.target_type == wiki_pages.TARGET else None
        return EventTarget(
            title=title_of(row), iid=getattr(row, "iid", None) or event.target_id, wiki_page=page, noteable=row
        )
    note = notes.get(event.target_id)
    if note is None or note.project_id != event.project_id:
        return EventTarget(iid=event.target_id)
    noteable = rows.get(note.noteable_type, {}).get(note.noteable_id or 0)
    has_iid = note.noteable_type in (issues.TARGET, merge_requests.TARGET)
    note.noteable_iid = getattr(noteable, "iid", None) if has_iid else None
    title = title_of(noteable) or titles.get((note.project_id, note.commit_id or ""))
    return EventTarget(title=title, iid=event.target_id, note=note, noteable=noteable)


def _titles_of_commits(notes: Iterable[Note]) -> dict[tuple[int, str], str]:
    """Return the titles of the commits with comments, by project id and commit id; each repository is opened once."""
    commits: dict[int, set[str]] = {}
    for note in notes:
        if note.noteable_type == COMMIT and note.commit_id:
            commits.setdefault(note.project_id, set()).add(note.commit_id)
    return {
        (project.id, commit_id): title
        for project in _load(Project, commits).values()
        for commit_id, title in commit_titles(project, commits[project.id]).items()
    }


def title_of(row: Any) -> str | None:
    """Return the title or file name of a row, if it has one."""
    return getattr(row, "title", None) or getattr(row, "filename", None)
