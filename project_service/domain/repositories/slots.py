"""Slots for git processes that serve clients: at most so many at a time on this machine, and for one user.

A slot is a locked file, so that all web processes share the limit and the kernel frees the slots of a killed one.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_PROCESSES = 2 * (os.cpu_count() or 1) + 8
MAX_PROCESSES_PER_USER = 4
MAX_WAIT_SECONDS = 10.0
MIN_POLL_SECONDS, MAX_POLL_SECONDS = 0.01, 0.2


class NoSlot(Exception):
    """No slot became free in time."""


@contextmanager
def git_slot(folder: Path, user_id: int | None, max_wait_seconds: float = MAX_WAIT_SECONDS) -> Iterator[None]:
    """Wait for a slot, and hold it during the block; ``folder`` has the files of this machine.

    Raises:
        NoSlot: the machine or the user has too many processes.

    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    until = time.monotonic() + max_wait_seconds
    most = MAX_PROCESSES_PER_USER if user_id is not None else 0
    with _locked(folder, f"user-{user_id}", most, until), _locked(folder, "machine", MAX_PROCESSES, until):
        yield


@contextmanager
def _locked(folder: Path, name: str, count: int, until: float) -> Iterator[None]:
    """Lock one of ``count`` files; none is needed if the count is 0."""
    if not count:
        yield
        return
    pause, first = MIN_POLL_SECONDS, secrets.randbelow(count)
    while (descriptor := _any_lock([folder / f"{name}-{(first + n) % count}.lock" for n in range(count)])) is None:
        if time.monotonic() >= until:
            raise NoSlot
        time.sleep(pause)
        pause = min(2 * pause, MAX_POLL_SECONDS)
    try:
        yield
    finally:
        os.close(descriptor)


def _any_lock(paths: list[Path]) -> int | None:
    for path in paths:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
        else:
            return descriptor
    return None
