"""Errors of a command's standard output, as on a full disk."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from contextlib import suppress

import click


def write_error(error: OSError) -> str | None:
    """The text for an error raised while ``click.echo`` wrote; ``None`` for any other error."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    if frame.f_code is not click.echo.__code__ or error.errno == errno.EPIPE:
        return None
    return f"the output cannot be written ({error.strerror})"


def discard() -> None:
    """Discard unwritten output: else Python writes it again at exit, and fails with another exit status."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):  # standard output may have no file descriptor
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
