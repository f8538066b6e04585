"""Import of the commands of ``report`` that need the application: it takes a second, and is not always needed."""

from __future__ import annotations

from types import ModuleType


def report_files() -> ModuleType:
    """Return the module, imported when it is used."""
    from project_service.cli.reports import report_files as module  # noqa: PLC0415  # takes a second

    return module
