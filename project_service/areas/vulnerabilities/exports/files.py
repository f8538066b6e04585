"""Files of exports: the formats with their media types and names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from flask import Response, stream_with_context

from project_service.areas.vulnerabilities.exports import csv_lines, cyclonedx_document, sarif_document
from project_service.areas.vulnerabilities.exports.rows import ExportedBranch, exported_branch
from project_service.domain.projects import Project

CHUNK_BYTES = 1 << 16


class ExportFormat(NamedTuple):
    """A format: its name on pages, media type, the end of the file's name, and what yields the file."""

    title: str
    media_type: str
    suffix: str
    parts_of: Callable[[ExportedBranch], Iterator[bytes]]


FORMATS = {
    "csv": ExportFormat("CSV", "text/csv; charset=utf-8", ".csv", csv_lines.lines_of),
    "sarif": ExportFormat("SARIF", "application/sarif+json", ".sarif", sarif_document.document_of),
    "cyclonedx": ExportFormat(
        "CycloneDX", "application/vnd.cyclonedx+json; version=1.6", ".cdx.json", cyclonedx_document.document_of
    ),
}


def export_chunks(project: Project, export_format: str, branch: str | None, filters: dict[str, Any]) -> Iterator[bytes]:
    """Yield the file of the tracked findings of a branch; they are read while it is sent."""
    return _chunks(FORMATS[export_format].parts_of(exported_branch(project, branch, filters)))


def export_response(project: Project, export_format: str, branch: str | None, filters: dict[str, Any]) -> Response:
    """Return the file as a download."""
    chosen = FORMATS[export_format]
    body = stream_with_context(export_chunks(project, export_format, branch, filters))
    disposition = f'attachment; filename="{project.path}-findings{chosen.suffix}"'
    return Response(body, content_type=chosen.media_type, headers={"Content-Disposition": disposition})


def _chunks(parts: Iterable[bytes]) -> Iterator[bytes]:
    chunk = bytearray()
    for part in parts:
        chunk += part
        if len(chunk) >= CHUNK_BYTES:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk)
