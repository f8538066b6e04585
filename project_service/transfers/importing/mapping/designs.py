"""Mapping of the designs of issues."""

from __future__ import annotations

from typing import Any

from project_service.domain.tracker.documents import designs
from project_service.domain.tracker.documents.designs import Design
from project_service.transfers.importing.mapping.context import ImportContext, VisibilityRule
from project_service.transfers.importing.mapping.events import map_events
from project_service.transfers.importing.mapping.notes import map_notes
from project_service.transfers.importing.mapping.tables import ImportedDesign
from project_service.transfers.importing.mapping.values import is_number, name_of, objects_in
from project_service.transfers.importing.refusals import invalid


def map_designs(context: ImportContext, rows: Any, issue_id: int, visibility: VisibilityRule) -> None:
    """Add the designs of an issue with their notes and events."""
    for row in objects_in(rows):
        filename = name_of(row.get("filename"), "Filename")
        if not filename:
            raise invalid("Filename can't be blank")
        number = next(context.ids[Design])
        iid = row.get("iid")
        context.batch.add(
            Design,
            ImportedDesign(
                id=number,
                project_id=context.project_id,
                issue_id=issue_id,
                iid=iid if is_number(iid) else None,
                filename=filename,
            ),
        )
        map_events(context, row.get("events"), designs.TARGET, number, visibility)
        map_notes(context, row.get("notes"), designs.TARGET, number, visibility)
