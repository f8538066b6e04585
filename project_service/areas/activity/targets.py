"""What events are about, fetched for a whole page: a few statements, none per row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from project_service.domain.events.models import Event
from project_service.domain.projects import Project
from project_service.domain.repositories import commit_titles
from project_service.domain.tracker import issues, milestones, others
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import COMMIT, FINDERS, NOTE_TYPES, TARGET, Note, add_resolutions
from project_service.kit.db.reading import Path, by_id

MODELS: dict[str, type[Any]] = {
    issues.TARGET: Issue,
    milestones.TARGET: Milestone,
    others.MERGE_REQUEST: others.MergeRequest,
    others.SNIPPET: others.Snippet,
    others.DESIGN: others.Design,
    others.WIKI_PAGE: others.WikiPage,
}


@dataclass(frozen=True, slots=True)
class Target:
    """What an event shows of what it is about."""

    title: str | None = None
    iid: int | None = None
    note: Note | None = None
    wiki_page: others.WikiPage | None = None
    noteable: Any = None


def events_with_targets(ids: Sequence[int], *also: Path) -> list[Event]:
    """The events of a page, in its order, with ``target`` on each; without those that were removed meanwhile.

    ``also`` says what else to read along.
    """
    if not ids:
        return []
    there = by_id(Event, ids, Event.author, *also)
    events = [there[number] for number in ids if number in there]
    wanted: dict[str, set[int]] = {}
    for event in events:
        if event.target_id is not None and event.target_type:
            kind = TARGET if event.target_type in NOTE_TYPES else event.target_type
            wanted.setdefault(kind, set()).add(event.target_id)
    notes = by_id(Note, wanted.pop(TARGET, set()), Note.author, Note.project)
    add_resolutions(notes.values())
    for note in notes.values():
        if note.noteable_id is not None:
            wanted.setdefault(note.noteable_type, set()).add(note.noteable_id)
    found: dict[str, dict[int, Any]] = {
        **{name: by_id(MODELS[name], ids) for name, ids in wanted.items() if name in MODELS},
        **{name: FINDERS[name](ids) for name, ids in wanted.items() if name in FINDERS},
    }
    titles = _titles_of_commits(notes.values())
    for event in events:
        event.target = _target(event, notes, found, titles)  # shown beside the columns
    return events


def _target(
    event: Event, notes: dict[int, Note], found: dict[str, dict[int, Any]], titles: dict[tuple[int, str], str]
) -> Target:
    if event.target_id is None or not event.target_type:
        return Target()
    if event.target_type not in NOTE_TYPES:
        row = found.get(event.target_type, {}).get(event.target_id)
        if getattr(row, "project_id", None) != event.project_id:  # it is gone, or nothing that events are about
            return Target(iid=event.target_id)
        page = row if isinstance(row, others.WikiPage) else None
        return Target(
            title=title_of(row), iid=getattr(row, "iid", None) or event.target_id, wiki_page=page, noteable=row
        )
    note = notes.get(event.target_id)
    if note is None or note.project_id != event.project_id:
        return Target(iid=event.target_id)
    noteable = found.get(note.noteable_type, {}).get(note.noteable_id or 0)
    note.noteable_iid = noteable.iid if isinstance(noteable, Issue | others.MergeRequest) else None  # type: ignore[attr-defined]  # shown beside the columns
    title = title_of(noteable) or titles.get((note.project_id, note.commit_id or ""))
    return Target(title=title, iid=event.target_id, note=note, noteable=noteable)


def _titles_of_commits(notes: Iterable[Note]) -> dict[tuple[int, str], str]:
    """The titles of the commits that were commented on, by project and id; each repository is opened once."""
    wanted: dict[Project, set[str]] = {}
    for note in notes:
        if note.noteable_type == COMMIT and note.commit_id:
            wanted.setdefault(note.project, set()).add(note.commit_id)
    return {
        (project.id, number): title
        for project, numbers in wanted.items()
        for number, title in commit_titles(project, numbers).items()
    }


def title_of(row: Any) -> str | None:
    """What people call something."""
    return getattr(row, "title", None) or getattr(row, "filename", None)
