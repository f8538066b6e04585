"""Variables of type file, written to a directory as a job finds them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from project_service.areas.variables.effective.precedence import EffectiveVariable
from project_service.areas.variables.models import ENV_VAR

DIRECTORY_MODE, FILE_MODE = 0o700, 0o600


def write_files(variables: Iterable[EffectiveVariable], directory: Path) -> list[EffectiveVariable]:
    """Write each variable of type file to ``directory/KEY``, and return the variables with its path as the value.

    The directory is created, or made private; a file or link in the place of ``KEY`` is replaced.
    """
    directory = directory.absolute()
    directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    directory.chmod(DIRECTORY_MODE)
    return [
        _written(variable, directory) if variable.is_file and variable.value is not None else variable
        for variable in variables
    ]


def _written(variable: EffectiveVariable, directory: Path) -> EffectiveVariable:
    path, partial = directory / variable.key, directory / f".{variable.key[:200]}.partial"
    partial.unlink(missing_ok=True)
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb") as file:
        file.write((variable.value or "").encode())
    partial.replace(path)
    return replace(variable, value=str(path), variable_type=ENV_VAR, raw=True)
