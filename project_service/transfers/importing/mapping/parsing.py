"""Parsing of lines of an archive into rows."""

from __future__ import annotations

from typing import Any

from project_service.transfers.archive import reader
from project_service.transfers.archive.extraction import BadArchive, TooLarge
from project_service.transfers.archive.reader import DEEPEST
from project_service.transfers.importing.mapping.values import NESTED
from project_service.transfers.importing.refusals import RowRefused, too_deep, unreadable


def parse_row(raw: bytes | TooLarge) -> Any:
    """Parse a line; return the row, or why it is refused."""
    if isinstance(raw, TooLarge):
        return unreadable(raw.text)
    try:
        row = reader.loads(raw)
    except BadArchive:
        if reader.is_nested_too_deeply(raw):
            return too_deep()
        raise
    if raw.count(b"[") + raw.count(b"{") > DEEPEST and reader.too_deep(row):
        return too_deep()
    if b"\\" in raw and b"\\u0000" in raw:  # the first search is much faster
        try:
            refuse_unstorable(row)
        except RowRefused as refused:
            return refused
    return row


def refuse_unstorable(row: Any, left: int = DEEPEST) -> None:
    """Raise ``RowRefused`` for text with a NUL, which PostgreSQL does not store."""
    if isinstance(row, str):
        if "\0" in row:
            raise unreadable("string contains null byte")
    elif isinstance(row, NESTED):
        if left == 0:
            raise too_deep()
        for value in (*row, *row.values()) if isinstance(row, dict) else row:
            refuse_unstorable(value, left - 1)
