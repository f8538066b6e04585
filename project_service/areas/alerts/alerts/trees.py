"""The payload of an alert as a tree of nodes, for its page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from project_service.kit import exact_json

MAX_NODES = 2000


@dataclass(frozen=True, slots=True)
class Node:
    """A key and its value: objects and arrays have ``children``, other values a ``text``."""

    key: str
    text: str | None
    children: list[Node] | None = None


def tree_of(payload: dict[str, Any], limit: int = MAX_NODES) -> tuple[list[Node], int]:
    """Return the nodes of a payload and the number of values left out beyond the limit."""
    values = count_values(payload)
    budget = iter(range(limit))
    return _nodes(payload, budget), max(0, values - limit)


def count_values(value: Any) -> int:
    """Count the values of a payload on all levels."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(1 + count_values(element) for element in inner)


def _nodes(value: dict[str, Any] | list[Any], budget: Iterator[int]) -> list[Node]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    nodes = []
    for key, inner in pairs:
        if not list(islice(budget, 1)):
            break
        if isinstance(inner, dict | list):
            nodes.append(Node(str(key), None, _nodes(inner, budget)))
        else:
            nodes.append(Node(str(key), inner if isinstance(inner, str) else exact_json.dumps(inner).decode()))
    return nodes
