"""Parsing of lines of an archive into rows."""

from __future__ import annotations

from typing import Any

from project_service.transfers.archive import parsing
from project_service.transfers.archive.contents import BadArchive, UnreadRow
from project_service.transfers.archive.parsing import MAX_DEPTH
from project_service.transfers.importing.mapping.values import NESTED
from project_service.transfers.importing.refusals import RowRefused, too_deep, unreadable


def parse_row(raw: bytes | UnreadRow) -> Any:
    """Parse a line; return the row, or why it is refused."""
    if isinstance(raw, UnreadRow):
        return unreadable(raw.text)
    try:
        row = parsing.loads(raw)
    except BadArchive:
        if parsing.is_text_too_deep(raw):
            return too_deep()
        raise
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and parsing.is_too_deep(row):
        return too_deep()
    if b"\\" in raw and b"\\u0000" in raw:  # the first search is much faster
        try:
            refuse_unstorable(row)
        except RowRefused as refused:
            return refused
    return row


def refuse_unstorable(row: Any, levels_left: int = MAX_DEPTH) -> None:
    """Raise ``RowRefused`` for text with a NUL, which PostgreSQL does not store."""
    if isinstance(row, str):
        if "\0" in row:
            raise unreadable("string contains null byte")
    elif isinstance(row, NESTED):
        if levels_left == 0:
            raise too_deep()
        for value in (*row, *row.values()) if isinstance(row, dict) else row:
            refuse_unstorable(value, levels_left - 1)
