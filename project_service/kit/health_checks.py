"""Checks of ``project-service doctor`` that areas register; each returns what it found, or raises ``CheckFailed``."""

from __future__ import annotations

from collections.abc import Callable

CHECKS: dict[str, Callable[[], str]] = {}


class CheckFailed(Exception):
    """A check has failed; the text is advice for the operator."""


def add_check(part: str, check: Callable[[], str]) -> None:
    """Register a check by the name of what it examines; it runs in a transaction that reads."""
    CHECKS[part] = check
