"""A free path for one that is taken (namespaces reference, section 5)."""

from __future__ import annotations

import re

from project_service.namespaces import queries

DROPPED = re.compile(r"[^A-Za-z0-9_.-]")
ENDINGS = re.compile(r"(\.atom|\.git|\.)+\Z")


def clean(text: str) -> str:
    """A legal path made from any text: ``ada+x@example.org`` → ``adax``."""
    legal = DROPPED.sub("", text.partition("@")[0])
    return ENDINGS.sub("", legal).lstrip("-") or "blank"


def suggest(text: str) -> str:
    """The first of ``path``, ``path1``, ``path2``, … that no namespace has as its path or name, at any level."""
    stem = clean(text)
    used = queries.names_like(stem)
    candidate, number = stem, 0
    while candidate.lower() in used:
        number += 1
        candidate = f"{stem}{number}"
    return candidate
