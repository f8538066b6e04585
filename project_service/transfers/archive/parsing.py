"""Parsing of JSON, with limits for its size and depth."""

from __future__ import annotations

import re
from typing import Any

from project_service.kit import exact_json
from project_service.transfers.archive.contents import BAD_JSON, BadArchive, UnreadRow
from project_service.transfers.importing.refusals import NESTED_TOO_DEEPLY

MAX_LINE_BYTES = 50 << 20
MAX_DEPTH = 100  # levels of nested arrays and objects
# a JSON string, up to the end if it is not closed, or a bracket outside of strings; without backtracking
TEXT_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[][{}]', re.DOTALL)
TOO_LONG = UnreadRow(f"The line is longer than {MAX_LINE_BYTES >> 20} MB")
TOO_MANY_VALUES = UnreadRow("The line has too many values")
TOO_DEEP = UnreadRow(NESTED_TOO_DEEPLY)


def loads(raw: bytes) -> Any:
    """Parse JSON; raises ``BadArchive`` if it is not valid."""
    try:
        return exact_json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadArchive(BAD_JSON) from error


def is_too_deep(value: Any, levels_left: int = MAX_DEPTH) -> bool:
    """Whether data is nested too deeply."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return False
    return levels_left == 0 or any(
        is_too_deep(inner, levels_left - 1) for inner in value if isinstance(inner, dict | list)
    )


def is_text_too_deep(raw: bytes) -> bool:
    """The same of JSON text that may not be valid."""
    depth = 0
    for token in TEXT_OR_BRACKET.finditer(raw):
        if token[0] in (b"[", b"{"):
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif token[0] in (b"]", b"}"):
            depth -= 1
    return False
