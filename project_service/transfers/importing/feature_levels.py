"""Access levels of the features of a project."""

from __future__ import annotations

from typing import Any

from project_service.domain.projects import DISABLED, ENABLED, FEATURES, PAGES, PRIVATE, PUBLIC, Project

OPERATIONS = "operations_access_level"
OPERATIONS_PARTS = ("monitor", "environments")  # what later releases divided it into
LEVELS = {0: DISABLED, 10: PRIVATE, 20: ENABLED, 30: PUBLIC}


def set_features(project: Project, row: dict[str, Any]) -> None:
    """Set the access levels that an archive has; older ones have one level for all of operations."""
    for feature in FEATURES:
        level = row.get(f"{feature}_access_level")
        if level is None and feature in OPERATIONS_PARTS:
            level = row.get(OPERATIONS)
        if level is not None:
            setattr(project, f"{feature}_access_level", access_of(feature, level))


def access_of(feature: str, level: Any) -> str:
    """Return the access level of a feature for the number in an archive; private if the number is unknown.

    Only pages can be public.
    """
    access = LEVELS.get(level, PRIVATE) if type(level) is int else PRIVATE
    return ENABLED if access == PUBLIC and feature != PAGES else access
