"""Mapping of notes (comments) of issues, merge requests, snippets, designs and commits."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from project_service.domain.events.models import Restriction
from project_service.domain.tracker import notes
from project_service.domain.tracker.notes import NOTE_TYPES, Note
from project_service.kit import exact_json
from project_service.transfers.archive import layout, parsing
from project_service.transfers.archive.parsing import MAX_DEPTH
from project_service.transfers.importing.mapping.context import (
    MAPPED_BY_ALL,
    ImportContext,
    MappedKeys,
    VisibilityRule,
)
from project_service.transfers.importing.mapping.events import map_events
from project_service.transfers.importing.mapping.parsing import refuse_unstorable
from project_service.transfers.importing.mapping.tables import ImportedNote
from project_service.transfers.importing.mapping.values import (
    MAX_NAME_LENGTH,
    is_set,
    moment_of,
    name_of,
    objects_in,
    text_of,
)
from project_service.transfers.importing.refusals import invalid

MAX_POSITION_LENGTH = 64 << 10  # characters
LEVELS_ABOVE_POSITION = 6  # of nesting in the deepest row that has notes
BLANK_NOTE = "*Blank note*"
REMOTE_URL = re.compile(r"[a-z][a-z0-9+.-]+:|//", re.IGNORECASE)
IGNORED_IN_URLS = re.compile(r"\A[\x00-\x20]+|[\t\r\n]")  # by browsers
NOTE_KEYS = MappedKeys(
    MAPPED_BY_ALL
    | {
        "note",
        "noteable_type",
        "noteable_id",
        "commit_id",
        "type",
        "attachment",
        "system",
        "confidential",
        "position",
        "author_id",
        "author",
        "events",
    },
    frozenset(layout.NOTE + layout.NOTE_NESTED),
    layout.FREE_FORM_COLUMNS["notes"],
)


def map_notes(
    context: ImportContext, rows: Any, noteable_type: str, noteable_id: int | None, visibility: VisibilityRule
) -> int:
    """Add the notes of an object; return how many of them are not system notes."""
    if not rows:
        return 0
    user_notes = 0
    number_of, added = context.ids[Note], context.batch.rows[Note]
    extra_of, author_of = context.extra_of, context.users.author
    for row in objects_in(rows):
        read = row.get
        kind, position = name_of(read("type"), "Type"), read("position")
        if kind == notes.DIFF_NOTE and not isinstance(position, dict | str):
            raise invalid("Position can't be blank")
        number = next(number_of)
        system = read("system") is True
        confidential = read("confidential")
        # releases since 15 call it "internal"
        internal = is_set(confidential) or is_set(read("internal"))
        author_id, created_at = read("author_id"), moment_of(read("created_at")) or context.now
        commit_id, attachment = read("commit_id"), read("attachment")
        if isinstance(attachment, dict):
            attachment = attachment.get("url")
        if isinstance(attachment, str) and (len(attachment) > MAX_NAME_LENGTH or _is_remote_or_script(attachment)):
            attachment = None
        extra = extra_of(row, NOTE_KEYS)
        diff_position = None if position is None else position_of(position)
        if position is not None and diff_position is None:  # written by the next export as it is
            extra = {**(extra or {}), "position": position}
        if confidential is False:  # not the same as null
            extra = {**(extra or {}), "confidential": False}
        added.append(
            ImportedNote(
                id=number,
                project_id=context.project_id,
                noteable_type=noteable_type,
                noteable_id=noteable_id,
                commit_id=name_of(commit_id, "Commit"),
                type=kind,
                discussion_id=_discussion_of(read("discussion_id")),
                body=context.text_of(body_of(context, row, author_id), "Note"),
                attachment=name_of(attachment, "Attachment"),
                system=system,
                confidential=internal,
                position=diff_position,
                author_id=author_of(author_id),
                extra=extra,
                created_at=created_at,
                updated_at=moment_of(read("updated_at")) or created_at,
            )
        )
        user_notes += not system
        if read("events"):
            event_visibility = (
                VisibilityRule(visibility.kind, Restriction.INTERNAL, visibility.issue_id) if internal else visibility
            )
            # an event of a note is about a note; the archived type is ignored
            map_events(context, row["events"], kind if kind in NOTE_TYPES else notes.TARGET, number, event_visibility)
    return user_notes


def body_of(context: ImportContext, row: dict[str, Any], author_id: Any) -> str:
    """Return the text of a note; if its author has no account here, the text names the author.

    Archive format reference, section 6.2.
    """
    body = text_of(row.get("note")) or ""
    if context.users.knows(author_id):
        return body
    author = row.get("author")
    name = text_of(author.get("name")) if isinstance(author, dict) else None
    moment = (text_of(row.get("updated_at")) or "").partition(".")[0]
    return f"{body or BLANK_NOTE}\n\n *By {name or ''} on {moment} (imported from GitLab)*"


def _discussion_of(value: Any) -> str | None:
    """Return the id of a discussion, which replies share; one that is made of the id of a note is replaced."""
    if not isinstance(value, str) or not notes.DISCUSSION_ID.fullmatch(value):
        return None
    if notes.DERIVED_ID.fullmatch(value):
        return hashlib.sha1(value.encode(), usedforsecurity=False).hexdigest()
    return value


def _is_remote_or_script(url: str) -> bool:
    """Whether a browser would load a URL from another server or run it as a script.

    Archive format reference, section 7.
    """
    return REMOTE_URL.match(IGNORED_IN_URLS.sub("", url).replace("\\", "/")) is not None


def position_of(value: Any) -> dict[str, Any] | None:
    """Return the position of a note in a diff, which older archives have as text; nothing if it is not valid."""
    if isinstance(value, str):
        if len(value) > MAX_POSITION_LENGTH:
            return None
        try:
            value = exact_json.loads(value)
        except ValueError:
            return None
        if parsing.is_too_deep(value, MAX_DEPTH - LEVELS_ABOVE_POSITION):
            return None  # a row with it as nested data would be refused
        refuse_unstorable(value)
    if not isinstance(value, dict) or parsing.is_too_deep(value):
        return None
    return value if len(exact_json.dumps(value)) <= MAX_POSITION_LENGTH else None
