"""CSV files that are sent while their rows are read."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from flask import Response, stream_with_context

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
CHUNK_BYTES = 1 << 16


def csv_response(file_name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Response:
    """Return a CSV file (RFC 4180, UTF-8) as a download; ``rows`` are read while it is sent."""
    body = stream_with_context(_chunks(header, rows))
    disposition = f'attachment; filename="{file_name}"'
    return Response(body, mimetype="text/csv", headers={"Content-Disposition": disposition})


def _chunks(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(header)
    for row in rows:
        writer.writerow(map(safe_cell, row))
        if text.tell() >= CHUNK_BYTES:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def csv_line(row: Iterable[Any]) -> bytes:
    """Return one line of a CSV file."""
    text = io.StringIO(newline="")
    csv.writer(text).writerow(map(safe_cell, row))
    return text.getvalue().encode()


def safe_cell(value: Any) -> Any:
    """Return a value that spreadsheets do not run as a formula: such texts get an apostrophe in front."""
    return f"'{value}" if isinstance(value, str) and value.lstrip(" ").startswith(FORMULA_STARTS) else value
