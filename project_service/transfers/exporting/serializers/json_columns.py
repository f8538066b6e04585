"""JSON columns that are selected as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from project_service.kit import exact_json

MAX_TEXT_LENGTH = 64 << 10  # characters of JSON that are parsed at once
EXTRA_INDEX = -3  # among the selected columns of issues and notes: before the timestamps


def parse_json(stored: str | None) -> Any:
    """Parse the text of a JSON column, which may be null."""
    return exact_json.loads(stored) if stored else None


def parse_each(stored: Iterable[str | None]) -> Iterator[Any]:
    """Parse the texts of many rows; together, which is four times as fast for small ones."""
    together: list[str] = []
    size = 0
    for text in stored:
        together.append(text or "null")
        size += len(together[-1])
        if size > MAX_TEXT_LENGTH:
            yield from exact_json.loads(f"[{','.join(together)}]")
            together, size = [], 0
    yield from exact_json.loads(f"[{','.join(together)}]")
