"""Values of payloads: paths to them, blanks, and their text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from project_service.kit import exact_json


def value_at(payload: Any, path: list[Any]) -> Any:
    """Return the value at a path of keys and indexes, ``None`` if the path does not exist."""
    here = payload
    for step in path:
        if isinstance(here, dict) and isinstance(step, str):
            here = here.get(step)
        elif isinstance(here, list) and isinstance(step, int) and not isinstance(step, bool) and 0 <= step < len(here):
            here = here[step]
        else:
            return None
    return here if path else None


def label_of(path: Iterable[str | int]) -> str:
    """Return a path as text: ``event/hosts[0]/name``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f"/{step}" if text else step
    return text


def is_blank(value: Any) -> bool:
    """Whether a value counts as missing."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or value is False or value == [] or value == {}


def plain_text(value: Any) -> str | None:
    """Return a value as text to store; ``None`` if it is blank."""
    return None if is_blank(value) else storable(exact_text(value))


def exact_text(value: Any) -> str:
    """Return text as it is and other values as JSON, with sorted keys."""
    if value is None:
        return ""
    return value if isinstance(value, str) else exact_json.dumps(value, sort_keys=True).decode()


def items(value: Any) -> Iterator[Any]:
    """Yield the items of nested lists; any other value is an item itself."""
    if isinstance(value, list):
        for item in value:
            yield from items(item)
    else:
        yield value


def storable(text: str) -> str:
    """Replace NUL, which PostgreSQL does not store in text."""
    return text.replace("\0", "\ufffd")
