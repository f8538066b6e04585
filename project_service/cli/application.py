"""The commands that need the whole application; ``main`` imports this module only when one of them is run."""

from __future__ import annotations

import click
from sqlalchemy.exc import OperationalError

from project_service.cli import (
    accounts,
    alerts,
    archives,
    database,
    instance,
    processes,
    transfer_progress,
    variables,
)
from project_service.kit.http.errors import Invalid, ServiceError
from project_service.kit.security import key_ring
from project_service.runtime.backups.archive import BackupError

EXPECTED_ERRORS = (ServiceError, key_ring.SecretKeyMissing, BackupError, transfer_progress.TransferFailed)


@click.group()
def commands() -> None:
    """All commands but ``serve``."""


for module in (accounts, alerts, archives, database, instance, processes, variables):
    for command in module.COMMANDS:
        commands.add_command(command)


def error_text(error: Exception) -> str | None:
    """One line for an error that the operator can act on; ``None`` for a programming error."""
    if isinstance(error, OperationalError):
        return f"PROJECT_SERVICE_DATABASE_URL: {str(error.orig).splitlines()[0]}"
    if isinstance(error, Invalid):
        return "; ".join(f"{name} {text}" for name, texts in error.message.items() for text in texts)
    if isinstance(error, ServiceError) and isinstance(error.message, dict):
        return "; ".join(map(str, error.message.values()))
    return str(error) if isinstance(error, EXPECTED_ERRORS) else None
