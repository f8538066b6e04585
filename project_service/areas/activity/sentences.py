"""Describe events as sentences for the pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from project_service.areas.activity.schemas import action_name
from project_service.areas.activity.targets import title_of
from project_service.domain.events.models import Action
from project_service.domain.tracker import issues, merge_requests, milestones
from project_service.domain.tracker.documents import designs, wiki_pages
from project_service.domain.tracker.issues import INCIDENT
from project_service.domain.tracker.notes import Note, Subject
from project_service.kit.http import urls

NOUNS = {
    "Issue": "issue",
    "MergeRequest": "merge request",
    "Milestone": "milestone",
    "Snippet": "snippet",
    designs.TARGET: "design",
    wiki_pages.TARGET: "wiki page",
    "Commit": "commit",
}
FOLDERS = {issues.TARGET: "issues", milestones.TARGET: "milestones", merge_requests.TARGET: "merge_requests"}
SIGNS = {issues.TARGET: "#", merge_requests.TARGET: "!"}
MAX_EXCERPT_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Sentence:
    """``author verb noun link``: “Ada opened issue #1 Broken totals”; ``excerpt`` is the text of a comment."""

    verb: str
    noun: str = ""
    text: str = ""
    address: str | None = None
    excerpt: str = ""


def sentence_of(event: Any, project: Any) -> Sentence:
    """Return the sentence of an event whose target was loaded with the page."""
    if event.action == Action.PUSHED:
        return _push(event, project)
    target = event.target
    verb = action_name(event)
    if target.note is not None:
        return _comment(target.note, target.noteable, project)
    if event.target_type is None:
        return Sentence(
            {"created": "created this project", "imported": "imported this project"}.get(verb, f"{verb} the project")
        )
    if event.action == Action.REOPENED:
        verb = "reopened"
    noun = NOUNS.get(event.target_type, "something")
    if target.noteable is None:
        return Sentence(verb, noun)
    if getattr(target.noteable, "issue_type", None) == INCIDENT:
        noun = "incident"
    return Sentence(verb, noun, _name(target.noteable), address_of(target.noteable, project))


def address_of(row: Any, project: Any) -> str | None:
    """Return the path of the page of a target, if it has one."""
    if isinstance(row, Subject):
        return f"/{project.full_path}{row.page}"
    folder = None if row is None else FOLDERS.get(row.target_type)
    return folder and f"/{project.full_path}/-/{folder}/{row.iid}"


def _comment(note: Note, noteable: Any, project: Any) -> Sentence:
    excerpt = note.body if len(note.body) <= MAX_EXCERPT_LENGTH else f"{note.body[:MAX_EXCERPT_LENGTH]}…"
    address = address_of(noteable, project)
    noun = noteable.noun if isinstance(noteable, Subject) else NOUNS.get(note.noteable_type, "something")
    text = _name(noteable) if noteable is not None else ""
    # notes are paginated: ``note`` selects the page that has this one
    return Sentence("commented on", noun, text, address and f"{address}?note={note.id}#note_{note.id}", excerpt)


def _push(event: Any, project: Any) -> Sentence:
    data = event.data or {}
    kind = data.get("ref_type") or "branch"
    count = data.get("commit_count") or 0
    if data.get("ref") is None:
        return Sentence(action_name(event), f"{data.get('ref_count') or 'several'} {kind}s")
    excerpt = data.get("commit_title") or ""
    if count > 1:
        excerpt = f"{excerpt} and {count - 1} more commits"
    return Sentence(action_name(event), kind, str(data["ref"]), _page_of_push(data, project), excerpt)


def _page_of_push(data: dict[str, Any], project: Any) -> str | None:
    """Return the path of the page of what was pushed: the ref, its one new commit, or a comparison."""
    old, new, action = data.get("commit_from"), data.get("commit_to"), data.get("action")
    if action == "removed" or not new:
        return None
    if action == "created":
        page = f"tree/{data['ref']}"
    elif data.get("commit_count") == 1 or not old:
        page = f"commit/{new}"
    else:
        page = f"compare/{old}...{new}"
    return f"/{project.full_path}/-/{urls.encode_path(page)}"


def _name(row: Any) -> str:
    if isinstance(row, Subject):
        return row.title
    sign = SIGNS.get(row.target_type)
    return f"{sign}{row.iid} {title_of(row)}" if sign else str(title_of(row) or "")
