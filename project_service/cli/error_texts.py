"""Texts of the errors that an operator can act on."""

from __future__ import annotations

from pathlib import Path

from project_service.cli import output
from project_service.runtime import serving
from project_service.runtime.embedded_redis import EmbeddedRedisError
from project_service.runtime.supervisor import SupervisorError
from project_service.settings import Settings, SettingsError

REFUSALS = (SettingsError, serving.ServeError, EmbeddedRedisError, SupervisorError)


def text_of(error: Exception) -> str | None:
    """Return one line for an expected error; ``None`` for a programming error."""
    if isinstance(error, REFUSALS):
        return str(error)
    if isinstance(error, OSError):
        return _os_error_text(error)
    from project_service.cli import application  # noqa: PLC0415  # as in main

    return application.error_text(error)


def _os_error_text(error: OSError) -> str:
    """Return the text for a file or an output that cannot be read or written."""
    text = output.write_error(error)
    if text is not None:
        return text
    if not isinstance(error.filename, str):
        return f"a file cannot be read or written ({error})"
    file, data_dir = Path(error.filename).absolute(), Settings.from_environment().data_dir
    if file.is_relative_to(data_dir) or data_dir.is_relative_to(file):  # or its future place
        return f"PROJECT_SERVICE_DATA_DIR: cannot be used ({error})"
    return f"{file} cannot be used ({error.strerror})"
