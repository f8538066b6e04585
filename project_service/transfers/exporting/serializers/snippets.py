"""Serialization of snippets."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import select

from project_service.domain.tracker.documents import snippets
from project_service.domain.tracker.documents.snippets import Snippet
from project_service.transfers.exporting.context import ExportContext
from project_service.transfers.exporting.serializers.notes import notes_of
from project_service.transfers.exporting.templates import SNIPPET, Line, filled


def serialize_snippets(context: ExportContext) -> Iterator[Line]:
    """Generate the snippets with their notes."""
    statement = select(
        Snippet.id,
        Snippet.title,
        Snippet.file_name,
        Snippet.content,
        Snippet.visibility,
        Snippet.author_id,
        Snippet.extra,
        context.iso(Snippet.created_at),
        context.iso(Snippet.updated_at),
    ).where(Snippet.project_id == context.project.id)
    for rows in context.portions(statement, Snippet.id, context.rows_at_once(Snippet, Snippet.content, Snippet.extra)):
        notes = notes_of(context, snippets.TARGET, [row[0] for row in rows])
        for number, title, file_name, content, visibility, author_id, extra, created_at, updated_at in rows:
            yield filled(SNIPPET, extra) | {
                "id": number,
                "title": title,
                "content": content,
                "author_id": author_id,
                "project_id": context.project.id,
                "created_at": created_at,
                "updated_at": updated_at,
                "file_name": file_name,
                "type": "ProjectSnippet",
                "visibility_level": int(visibility),
                "notes": notes[number],
            }
