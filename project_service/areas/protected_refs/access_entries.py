"""The arrays ``allowed_to_push``, ``allowed_to_merge``, ``allowed_to_create`` and ``allowed_to_unprotect``.

Each kind of access has one role here. Several levels become the strictest of them, and users, groups and deploy keys
are refused: a protection weaker than the one asked for is never answered with success (protected tags reference,
section 5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from project_service.domain.access_levels import Role
from project_service.kit.http.errors import RecordNotFound, Unprocessable

Entry = Mapping[str, Any]
STRICTEST_FIRST = (Role.NONE, Role.MAINTAINER, Role.DEVELOPER)


def strictest(levels: Iterable[int]) -> int:
    """The level that admits the fewest; 0 is no one."""
    return int(min(levels, key=lambda level: STRICTEST_FIRST.index(Role(level))))


def new_level(name: str, entries: Sequence[Entry] | None, level: int | None) -> int:
    """The level of a new protection, from its entries and the single level that was sent; by default maintainers."""
    levels = [] if level is None else [level]
    for entry in entries or ():
        _refuse_others(name, entry)
        levels.append(entry["access_level"])
    return strictest(levels or [Role.MAINTAINER])


def changed_level(name: str, entries: Sequence[Entry] | None, row_id: int, level: int) -> int:
    """The level after a change; ``id`` of an entry names the present one, which ``_destroy`` removes.

    Raises:
        RecordNotFound: an entry has another id.
        Unprocessable: an entry names something else than a level.

    """
    levels, removed = [], False
    for entry in entries or ():
        if entry.get("id") not in (None, row_id):
            raise RecordNotFound
        if entry.get("_destroy"):
            removed = True
        elif entry.get("id") is None or entry.get("access_level") is not None:
            _refuse_others(name, entry)
            levels.append(entry["access_level"])
        else:
            levels.append(level)
    if levels:
        return strictest(levels)
    return int(Role.NONE) if removed else level


def check_unprotect(entries: Sequence[Entry] | None) -> None:
    """Refuse every level but that of maintainers, who always unprotect."""
    for entry in entries or ():
        _refuse_others("allowed_to_unprotect", entry)
        if entry["access_level"] != Role.MAINTAINER or entry.get("_destroy"):
            raise Unprocessable(["allowed_to_unprotect: only access level 40 is supported"])


def _refuse_others(name: str, entry: Entry) -> None:
    others = any(entry.get(key) is not None for key in ("user_id", "group_id", "deploy_key_id"))
    if others or entry.get("access_level") is None:
        raise Unprocessable([f"{name}: only access levels are supported"])
