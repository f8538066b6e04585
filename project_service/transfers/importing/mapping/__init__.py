"""Mapping of archive rows to table rows, one module per relation (archive format reference, sections 4 to 6).

A relation without an entry in ``MAPPERS`` has no table: its rows are stored as they are (``archived_rows``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from project_service.transfers.archive import layout
from project_service.transfers.importing.mapping.archived_rows import (
    map_board,
    map_commit_note,
    map_pipeline,
    map_trigger,
    store_row,
)
from project_service.transfers.importing.mapping.context import ImportContext
from project_service.transfers.importing.mapping.issues import map_issue
from project_service.transfers.importing.mapping.labels import map_label
from project_service.transfers.importing.mapping.merge_requests import map_merge_request
from project_service.transfers.importing.mapping.milestones import map_milestone
from project_service.transfers.importing.mapping.releases import map_release
from project_service.transfers.importing.mapping.snippets import map_snippet
from project_service.transfers.importing.refusals import RowRefused, invalid, unreadable

MAPPERS: dict[str, Callable[[ImportContext, dict[str, Any]], Any]] = {
    "labels": map_label,
    "milestones": map_milestone,
    "issues": map_issue,
    "merge_requests": map_merge_request,
    "snippets": map_snippet,
    "releases": map_release,
    "triggers": map_trigger,
    "boards": map_board,
    "ci_pipelines": map_pipeline,
    "commit_notes": map_commit_note,
}


def map_row(context: ImportContext, relation: str, line: int, row: Any) -> None:
    """Add what a row is mapped to; a refused row leaves nothing but a recorded failure.

    A text that is longer, or a list that has more, than the API accepts is cut, which is recorded as well.
    """
    context.cuts.clear()
    batch_savepoint, state_savepoint = context.batch.savepoint(), context.state.savepoint()
    try:
        if not isinstance(row, dict) and relation in layout.RELATIONS:
            raise unreadable("no implicit conversion into Hash")
        mapper = MAPPERS.get(relation)
        if mapper is None:
            store_row(context, relation, row)
        else:
            mapper(context, row)
    except RowRefused as refused:
        context.state.rollback(state_savepoint)
        context.batch.rollback(batch_savepoint)
        context.record_failure(relation, line, refused)
    else:
        for cut in dict.fromkeys(context.cuts):
            context.record_failure(relation, line, invalid(cut))
