"""Mapping of snippets."""

from __future__ import annotations

from typing import Any

from project_service.domain.access_levels import Visibility
from project_service.domain.events.models import Kind
from project_service.domain.events.recording import SNIPPETS
from project_service.domain.tracker.documents import snippets
from project_service.domain.tracker.documents.snippets import Snippet
from project_service.transfers.archive import layout
from project_service.transfers.importing.mapping.context import (
    MAPPED_BY_ALL,
    ImportContext,
    MappedKeys,
    VisibilityRule,
)
from project_service.transfers.importing.mapping.notes import map_notes
from project_service.transfers.importing.mapping.tables import ImportedSnippet
from project_service.transfers.importing.mapping.values import name_of, title_of

SNIPPET_KEYS = MappedKeys(
    MAPPED_BY_ALL | {"title", "file_name", "content", "visibility_level", "author_id", "notes"},
    frozenset(layout.SNIPPET + layout.SNIPPET_NESTED),
)


def map_snippet(context: ImportContext, row: dict[str, Any]) -> None:
    """Add a snippet with its notes."""
    title = title_of(row)
    number = next(context.ids[Snippet])
    level = row.get("visibility_level")
    visibility = Visibility(level) if level in tuple(Visibility) else Visibility.PRIVATE
    map_notes(context, row.get("notes"), snippets.TARGET, number, VisibilityRule(Kind.SNIPPET, SNIPPETS[visibility]))
    created_at, updated_at = context.timestamps_of(row)
    context.batch.add(
        Snippet,
        ImportedSnippet(
            id=number,
            project_id=context.project_id,
            title=title,
            file_name=name_of(row.get("file_name"), "File name"),
            content=context.text_of(row.get("content"), "Content"),
            visibility=visibility,
            author_id=context.users.author(row.get("author_id")),
            extra=context.extra_of(row, SNIPPET_KEYS),
            created_at=created_at,
            updated_at=updated_at,
        ),
    )
