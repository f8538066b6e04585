"""Matching names of tags and branches against protected names (protected tags reference, section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MAX_EXAMPLES = 20


def examples(pattern: str, names: Sequence[str]) -> dict[str, Any]:
    """The number of names that a protected name covers, and the first ``MAX_EXAMPLES`` of them."""
    covered = [name for name in names if matches(pattern, name)]
    return {"count": len(covered), "names": covered[:MAX_EXAMPLES]}


def matches(pattern: str, name: str) -> bool:
    """Return whether a protected name covers a name: ``*`` matches any characters, everything else itself.

    The parts between the stars are searched from left to right, each at its first occurrence, so that the time is
    linear in the length of the name.
    """
    if not pattern.strip() or not name:
        return False
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == name
    *middle, last = rest
    if not name.startswith(first) or len(name) < len(first) + len(last) or not name.endswith(last):
        return False
    position, end = len(first), len(name) - len(last)
    for piece in middle:
        at = name.find(piece, position, end)
        if at < 0:
            return False
        position = at + len(piece)
    return True
