"""Values of payloads: paths to them, blanks, and their text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from project_service.kit import exact_json

EVERY = "*"  # every item of a list, in a path
MAX_TEXT_BYTES = 64 << 10  # of a text that a path may go on in


def value_at(payload: Any, path: Sequence[str | int], texts: dict[str, Any] | None = None) -> Any:
    """Return the value at a path of keys and indexes, ``None`` if the path does not exist.

    A path may go on once inside a text that is a JSON object, and ``*`` stands for every item of a list. ``texts``
    keeps the objects that were parsed from texts.
    """
    return _value_below(payload, path, {} if texts is None else texts) if path else None


def _value_below(here: Any, path: Sequence[str | int], texts: dict[str, Any], *, in_text: bool = False) -> Any:
    for position, step in enumerate(path):
        if isinstance(here, str) and not in_text:
            here, in_text = _object_in(here, texts), True
        if isinstance(here, dict) and isinstance(step, str):
            here = here.get(step)
        elif isinstance(here, list) and step == EVERY:
            values = (_value_below(item, path[position + 1 :], texts, in_text=in_text) for item in here)
            return [value for value in values if value is not None]
        elif isinstance(here, list) and isinstance(step, int) and not isinstance(step, bool) and 0 <= step < len(here):
            here = here[step]
        else:
            return None
    return here


def object_in_text(text: str) -> dict[str, Any] | None:
    """Return the object that a text holds as JSON, if it is one of at most ``MAX_TEXT_BYTES``."""
    if not text.lstrip().startswith("{") or len(text.encode()) > MAX_TEXT_BYTES:
        return None
    try:
        parsed = exact_json.loads(text, too_long=str, lenient=True)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _object_in(text: str, texts: dict[str, Any]) -> Any:
    if text not in texts:
        texts[text] = object_in_text(text)
    return texts[text]


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
