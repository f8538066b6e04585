"""Relations that are a single object: the first row counts, others are recorded as failures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.transfers.archive import parsing, reader
from project_service.transfers.archive.contents import Unpacked
from project_service.transfers.importing.mapping.parsing import parse_row
from project_service.transfers.importing.refusals import RowRefused, unreadable
from project_service.transfers.models import ImportFailure


def failure_of(refused: RowRefused, relation: str, line: int) -> dict[str, Any]:
    """Return the columns of a recorded failure."""
    return {
        "exception_class": refused.kind,
        "exception_message": str(refused),
        "source": refused.source,
        "relation_name": relation,
        "line_number": line,
    }


def single_row(project: Project, unpacked: Unpacked, relation: str) -> dict[str, Any]:
    """Return the row that counts; the others are recorded as failures."""
    first: dict[str, Any] = {}
    for line, row in single_rows(unpacked, relation):
        if isinstance(row, RowRefused):
            db.session.add(ImportFailure(project_id=project.id, **failure_of(row, relation, line)))
        else:
            first = row
    return first


def single_rows(unpacked: Unpacked, relation: str) -> Iterator[tuple[int, dict[str, Any] | RowRefused]]:
    """Generate the lines with the row that counts, which is the first, or why a row is left out."""
    for count, (line, raw) in enumerate(reader.rows_of(unpacked, relation)):
        row = unreadable("There can be one row only") if count else parse_row(raw)
        yield line, row if isinstance(row, dict | RowRefused) else unreadable("no implicit conversion into Hash")


def first_row(unpacked: Unpacked, relation: str) -> dict[str, Any]:
    """Return the first valid row; empty if there is none."""
    return next(_objects(unpacked, relation), {})


def _objects(unpacked: Unpacked, relation: str) -> Iterator[dict[str, Any]]:
    rows = (parse_row(raw) for _, raw in reader.rows_of(unpacked, relation))
    return (row for row in rows if isinstance(row, dict) and not parsing.is_too_deep(row))
