"""How far a transfer is, in words and numbers, for people who watch it."""

from __future__ import annotations

from dataclasses import dataclass

from project_service.transfers.models import FAILED, FAILING, FINISHED, QUEUED, SCHEDULED, ProjectExport, ProjectImport


@dataclass(frozen=True, slots=True)
class Stage:
    """What a transfer does now; ``moving`` while it is not over. Without totals nobody knows how far it is."""

    text: str
    moving: bool
    rows_done: int = 0
    rows_total: int | None = None
    relations_done: int = 0
    relations_total: int | None = None


def of_import(found: ProjectImport, status: str) -> Stage:
    """The stage of an import; ``status`` is that of the project as whoever shows the stage has read it."""
    if status == FINISHED:
        return Stage("The import is finished.", moving=False)
    if status == FAILED:
        return Stage("The import has failed.", moving=False)
    if found.phase == FAILING:
        return Stage("The import has failed. What it brought is being removed.", moving=True)
    if status == SCHEDULED:
        return Stage("The import waits for its turn.", moving=True)
    return _counted(found, "The archive is being read.", "Rows are being imported.", "Repository and files are stored.")


def of_export(export: ProjectExport) -> Stage:
    """The stage of an export that is not over."""
    if export.state == QUEUED:
        return Stage("The export waits for its turn.", moving=True)
    return _counted(export, "The project is being read.", "Rows are being written.", "Repository and files are added.")


def _counted(transfer: ProjectImport | ProjectExport, before: str, during: str, after: str) -> Stage:
    total = transfer.rows_total
    if not total:
        return Stage(before, moving=True)
    text = during if transfer.rows_done < total else after
    return Stage(text, True, transfer.rows_done, total, transfer.relations_done, transfer.relations_total)
