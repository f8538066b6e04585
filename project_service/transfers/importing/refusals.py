"""Why a row of an archive is left out, in the texts of GitLab."""

from __future__ import annotations

INVALID = "ActiveRecord::RecordInvalid"
UNREADABLE = "ArgumentError"
SAVING = "RelationTreeRestorer#save_relation_object"
PROCESSING = "process_relation_item!"
NESTED_TOO_DEEPLY = "nested too deeply"


class RowRefused(Exception):
    """A row that cannot be imported."""

    def __init__(self, message: str, kind: str = INVALID, source: str = SAVING) -> None:
        super().__init__(message)
        self.kind = kind
        self.source = source


def invalid(text: str) -> RowRefused:
    """A row violates a validation."""
    return RowRefused(f"Validation failed: {text}")


def unreadable(text: str) -> RowRefused:
    """A row cannot be read."""
    return RowRefused(text, UNREADABLE, PROCESSING)


def too_deep() -> RowRefused:
    """A row is nested too deeply."""
    return unreadable(NESTED_TOO_DEEPLY)
