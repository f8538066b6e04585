"""Payloads of web hooks about comments (webhooks reference, section 13.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from project_service.domain.hooks import hook_payloads
from project_service.domain.hooks.hook_payloads import moment, project_of, repository_of, user_of, with_absolute_images
from project_service.domain.schemas import project_url
from project_service.domain.tracker.issues import TARGET as ISSUE_TARGET
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.notes import COMMIT, Note
from project_service.kit.db.session import db

# by type of noteable: key of the payload, its attributes, its page; areas add theirs when the application starts
Describe = Callable[[int], tuple[str, dict[str, Any], str] | None]
NOTEABLES: dict[str, Describe] = {}


def add_noteable(noteable_type: str, describe: Describe) -> None:
    """Register how a noteable of an area is described: the key of the payload, its attributes, its URL."""
    NOTEABLES[noteable_type] = describe


def note_payload(note: Note, action: str) -> dict[str, Any]:
    """Return the payload of a comment that was created or changed."""
    key, noteable, url = _noteable(note)
    payload: dict[str, Any] = {
        "object_kind": "note",
        "event_type": "confidential_note" if is_confidential(note) else "note",
        "user": None if note.author is None else user_of(note.author),
        "project_id": note.project_id,
        "project": project_of(note.project),
        "object_attributes": {
            "attachment": note.attachment,
            "author_id": note.author_id,
            "change_position": None,
            "commit_id": note.commit_id,
            "created_at": moment(note.created_at),
            "discussion_id": note.discussion,
            "id": note.id,
            "internal": note.confidential,
            "line_code": None,
            "note": note.body,
            "noteable_id": None if note.noteable_type == COMMIT else note.noteable_id,
            "noteable_type": note.noteable_type,
            "original_position": None,
            "position": note.position,
            "project_id": note.project_id,
            "resolved_at": None,
            "resolved_by_id": None,
            "resolved_by_push": None,
            "st_diff": None,
            "system": note.system,
            "type": note.type,
            "updated_at": moment(note.updated_at),
            "updated_by_id": note.updated_by_id,
            "description": with_absolute_images(note.project, note.body),
            "url": f"{url}#note_{note.id}",
            "action": action,
        },
        "repository": repository_of(note.project),
    }
    if key:
        payload[key] = noteable
    return payload


def is_confidential(note: Note) -> bool:
    """Whether a comment is internal or on a confidential issue."""
    if note.confidential:
        return True
    issue = db.session.get(Issue, note.noteable_id) if note.noteable_type == ISSUE_TARGET else None
    return issue is not None and issue.confidential


def _noteable(note: Note) -> tuple[str, dict[str, Any], str]:
    if note.noteable_type == ISSUE_TARGET and (issue := db.session.get(Issue, note.noteable_id)) is not None:
        labels = hook_payloads.stored_labels_of(issue)
        return "issue", hook_payloads.issue_attributes(issue) | {"labels": labels}, hook_payloads.issue_url(issue)
    describe = NOTEABLES.get(note.noteable_type)
    described = describe(note.noteable_id) if describe is not None and note.noteable_id is not None else None
    return described or ("", {}, project_url(note.project))
