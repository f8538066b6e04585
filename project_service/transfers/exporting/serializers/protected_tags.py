"""Serialization of protected tags."""

from __future__ import annotations

from collections.abc import Iterator

from project_service.domain.repositories.protected_tags import ProtectedTag
from project_service.transfers.archive import layout
from project_service.transfers.exporting.context import ExportContext
from project_service.transfers.exporting.templates import Line
from project_service.transfers.importing.protected_tags import levels_of


def serialize_protected_tags(context: ExportContext) -> Iterator[Line]:
    """Generate the protected tags; what was imported with a tag, until the tag is protected anew."""
    # the ids only: the rows may be large
    imported = {line.get("name"): number for number, line in context.archived_rows(layout.PROTECTED_TAGS)}
    columns = (ProtectedTag.id, ProtectedTag.name, ProtectedTag.create_access_levels)
    for number, name, levels, created_at, updated_at in context.all_rows(ProtectedTag, *columns):
        moments = {"created_at": created_at, "updated_at": updated_at}
        line = {
            "create_access_levels": [
                {"access_level": level, **moments, "user_id": None, "group_id": None} for level in levels
            ]
        }
        extra = context.archived_data(imported[name]) if name in imported else {}
        if levels_of(extra) == levels and extra.get("created_at") in (None, created_at):
            line |= extra
        yield {"id": number, "project_id": context.project.id, "name": name, **moments} | line
