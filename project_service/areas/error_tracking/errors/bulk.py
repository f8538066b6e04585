"""Changes of several errors that were selected in a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from project_service.areas.error_tracking.errors import merging, service
from project_service.areas.error_tracking.errors.models import ErrorStatus, TrackedError
from project_service.domain.accounts.users import User
from project_service.kit.http.errors import Invalid

MERGE = "merge"
DONE = {"resolved": "Resolved", "ignored": "Ignored", "unresolved": "Opened again"}


@dataclass(frozen=True, slots=True)
class BulkResult:
    """What was done, as people read it; ``target`` is the error that others were merged into."""

    text: str
    target: TrackedError | None = None


def change(author: User, errors: Sequence[TrackedError], wanted: str) -> BulkResult:
    """Change the status of errors, or merge them into the one that was seen first.

    Raises:
        Invalid: nothing is selected, or the change is unknown or not possible.

    """
    if wanted != MERGE and wanted not in DONE:
        raise Invalid(base="Choose what to do with the selected errors.")
    if not errors:
        raise Invalid(base="Select the errors to change.")
    number = f"{len(errors)} error{'' if len(errors) == 1 else 's'}"
    if wanted != MERGE:
        for error in errors:
            service.change_status(author, error, ErrorStatus.of(wanted))
        return BulkResult(f"{DONE[wanted]}: {number}.")
    if len(errors) == 1:
        raise Invalid(base="Select at least two errors to merge.")
    target = min(errors, key=lambda error: (error.first_seen, error.id))
    merging.merge_chosen(author, target, errors)
    return BulkResult(f"Merged {number} into this one, which was seen first. It can be undone below.", target)
