"""Suggest a free path in place of one that is in use (namespaces reference, section 5)."""

from __future__ import annotations

import itertools
import re

from project_service.areas.namespaces import queries

DROPPED = re.compile(r"[^A-Za-z0-9_.-]")
CANDIDATES_PER_QUERY = 100
# .atom, .git and dots, matched backwards: forwards, a long run of dots would take quadratic time
ENDINGS_BACKWARDS = re.compile(r"(mota\.|tig\.|\.)+")


def clean(text: str) -> str:
    """Return a valid path made from any text: ``ada+x@example.org`` → ``adax``."""
    legal = DROPPED.sub("", text.partition("@")[0])
    ending = ENDINGS_BACKWARDS.match(legal[::-1])
    return legal[: len(legal) - (ending.end() if ending else 0)].lstrip("-") or "blank"


def suggest(text: str) -> str:
    """Return the first of ``path``, ``path1``, ``path2``, … that no namespace has as its path or name, at any level."""
    stem = clean(text)
    for first in itertools.count(0, CANDIDATES_PER_QUERY):
        candidates = [f"{stem}{number or ''}" for number in range(first, first + CANDIDATES_PER_QUERY)]
        used = queries.names_in_use(candidates)
        for candidate in candidates:
            if candidate.lower() not in used:
                return candidate
    raise AssertionError("unreachable: the loop has no end")
