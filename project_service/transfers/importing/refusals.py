"""Why a row of an archive is left out, in the words that clients of the real product know."""

from __future__ import annotations

INVALID = "ActiveRecord::RecordInvalid"
UNREADABLE = "ArgumentError"
SAVING = "RelationTreeRestorer#save_relation_object"
PROCESSING = "process_relation_item!"
NESTED_TOO_DEEPLY = "nested too deeply"


class RowRefused(Exception):
    """A row that cannot be made into what it stands for."""

    def __init__(self, message: str, kind: str = INVALID, source: str = SAVING) -> None:
        super().__init__(message)
        self.kind = kind
        self.source = source


def invalid(text: str) -> RowRefused:
    """What a rule of the record says."""
    return RowRefused(f"Validation failed: {text}")


def unreadable(text: str) -> RowRefused:
    """A row that is no record at all."""
    return RowRefused(text, UNREADABLE, PROCESSING)


def too_deep() -> RowRefused:
    """Data nested more deeply than anything an archive needs."""
    return unreadable(NESTED_TOO_DEEPLY)
