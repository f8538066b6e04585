"""The payload of an alert as a tree that people can read: keys, values, and what lies below."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from project_service.kit import bigint_json

MOST = 2000


@dataclass(frozen=True, slots=True)
class Node:
    """A value at its key. Objects and arrays have ``children``, all else has a ``text``."""

    key: str
    text: str | None
    children: list[Node] | None = None


def tree_of(payload: dict[str, Any], most: int = MOST) -> tuple[list[Node], int]:
    """The nodes of a payload, and how many of its values were left out: a page has room for so many."""
    values = count_values(payload)
    budget = iter(range(most))
    return _nodes(payload, budget), max(0, values - most)


def count_values(value: Any) -> int:
    """How many values a payload has on all levels."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(1 + count_values(one) for one in inner)


def _nodes(value: dict[str, Any] | list[Any], budget: Iterator[int]) -> list[Node]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, inner in pairs:
        if not list(islice(budget, 1)):
            break
        if isinstance(inner, dict | list):
            found.append(Node(str(key), None, _nodes(inner, budget)))
        else:
            found.append(Node(str(key), inner if isinstance(inner, str) else bigint_json.dumps(inner).decode()))
    return found
