"""The progress of a transfer as pages show it."""

from __future__ import annotations

from dataclasses import dataclass

from project_service.transfers.models import FAILED, FAILING, FINISHED, QUEUED, SCHEDULED, ProjectExport, ProjectImport


@dataclass(frozen=True, slots=True)
class TransferStage:
    """What a transfer does; ``moving`` while it has not ended. The totals may be unknown."""

    text: str
    moving: bool
    rows_done: int = 0
    rows_total: int | None = None
    relations_done: int = 0
    relations_total: int | None = None


def of_import(project_import: ProjectImport, status: str) -> TransferStage:
    """Return the stage of an import; ``status`` is the import status of the project."""
    if status == FINISHED:
        return TransferStage("The import is finished.", moving=False)
    if status == FAILED:
        return TransferStage("The import has failed.", moving=False)
    if project_import.phase == FAILING:
        return TransferStage("The import has failed. What it brought is being removed.", moving=True)
    if status == SCHEDULED:
        return TransferStage("The import waits for its turn.", moving=True)
    return _counted(
        project_import, "The archive is being read.", "Rows are being imported.", "Repository and files are stored."
    )


def of_export(export: ProjectExport) -> TransferStage:
    """Return the stage of an export that has not ended."""
    if export.state == QUEUED:
        return TransferStage("The export waits for its turn.", moving=True)
    return _counted(export, "The project is being read.", "Rows are being written.", "Repository and files are added.")


def _counted(transfer: ProjectImport | ProjectExport, before: str, during: str, after: str) -> TransferStage:
    total = transfer.rows_total
    if not total:
        return TransferStage(before, moving=True)
    text = during if transfer.rows_done < total else after
    return TransferStage(text, True, transfer.rows_done, total, transfer.relations_done, transfer.relations_total)
