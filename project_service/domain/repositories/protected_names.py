"""What protected tags and protected branches share: their names and the roles that can be chosen."""

from __future__ import annotations

from project_service.domain.access_levels import Role

LEVELS = {Role.NONE: "No one", Role.DEVELOPER: "Developers + Maintainers", Role.MAINTAINER: "Maintainers"}
# clients remove these path segments from URLs, and would then address the project itself
DOT_SEGMENTS = (".", "..")
MAX_NAME_LENGTH = 255  # fits into an index, and is longer than the names of tags and branches


def problem_of(name: str | None) -> str | None:
    """Why a text cannot be the name or wildcard of a protected ref; ``None`` if it can."""
    if not (name or "").strip():
        return "Name can't be blank"
    if name in DOT_SEGMENTS or "\0" in (name or ""):
        return "Name is invalid"
    if len(name or "") > MAX_NAME_LENGTH:
        return f"Name is too long (maximum is {MAX_NAME_LENGTH} characters)"
    return None
