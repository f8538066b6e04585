"""The standard output of a command, where it cannot be written: on a full disk, say."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from contextlib import suppress

import click


def lost(error: OSError) -> str | None:
    """What is said of an error that was met while a command told something; nothing of others."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    if frame.f_code is not click.echo.__code__ or error.errno == errno.EPIPE:
        return None
    return f"the output cannot be written ({error.strerror})"


def let_go() -> None:
    """Give up what could not be written: Python tries again at its end, and fails with a status of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):  # there may be no file behind it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
