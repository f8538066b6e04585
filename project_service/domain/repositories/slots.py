"""Slots for git processes that serve clients: at most so many at a time on this machine, and for one user.

Anonymous clients share half of the slots, and one address has as many as a user: who reads slowly delays no others.

A slot is a locked file, so that all web processes share the limit and the kernel frees the slots of a killed one.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from project_service.kit import file_locks

MAX_PROCESSES = 2 * (os.cpu_count() or 1) + 8
MAX_PROCESSES_PER_USER = 4  # or address of anonymous clients
MAX_ANONYMOUS_PROCESSES = MAX_PROCESSES // 2
ADDRESS_GROUPS = 256  # addresses share a limit if their digests end alike: the number of files is bounded
MAX_WAIT_SECONDS = 10.0
MAX_WAITING, MAX_ANONYMOUS_WAITING = 24, 16  # threads of a process that wait: each of them could answer others
MIN_POLL_SECONDS, MAX_POLL_SECONDS = 0.01, 0.2

user_waiters = threading.BoundedSemaphore(MAX_WAITING)
anonymous_waiters = threading.BoundedSemaphore(MAX_ANONYMOUS_WAITING)


class NoSlot(Exception):
    """No slot became free in time."""


@contextmanager
def git_slot(
    folder: Path, user_id: int | None, address: str | None = None, *, max_wait_seconds: float = MAX_WAIT_SECONDS
) -> Iterator[None]:
    """Wait for a slot, and hold it during the block.

    Args:
        folder: The directory with the files of this machine.
        user_id: The user; without one ``address`` is that of the client.
        address: ``None`` if the client's address says nothing, as that of a proxy on this machine.
        max_wait_seconds: How long to wait.

    Raises:
        NoSlot: the machine or the user has too many processes.

    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    until = time.monotonic() + max_wait_seconds
    waiters = anonymous_waiters if user_id is None else user_waiters
    with ExitStack() as stack:
        for name, count in (*_shares(user_id, address), ("machine", MAX_PROCESSES)):
            descriptor = _lock([folder / f"{name}-{number}.lock" for number in range(count)], until, waiters)
            stack.callback(os.close, descriptor)
        yield


def _shares(user_id: int | None, address: str | None) -> list[tuple[str, int]]:
    """Return the names and sizes of the limits that hold for a client alone."""
    if user_id is not None:
        return [(f"user-{user_id}", MAX_PROCESSES_PER_USER)]
    shares = [("anonymous", MAX_ANONYMOUS_PROCESSES)]
    if address is not None:
        shares.insert(0, (f"address-{zlib.crc32(address.encode()) % ADDRESS_GROUPS}", MAX_PROCESSES_PER_USER))
    return shares


def _lock(paths: list[Path], until: float, waiters: threading.BoundedSemaphore) -> int:
    """Lock one of several files, and return its descriptor; wait for one only if few threads wait."""
    first = secrets.randbelow(len(paths))
    paths = [*paths[first:], *paths[:first]]
    descriptor = _any_lock(paths)
    if descriptor is not None:
        return descriptor
    if not waiters.acquire(blocking=False):
        raise NoSlot
    try:
        pause = MIN_POLL_SECONDS
        while (descriptor := _any_lock(paths)) is None:
            if time.monotonic() >= until:
                raise NoSlot
            time.sleep(pause)
            pause = min(2 * pause, MAX_POLL_SECONDS)
        return descriptor
    finally:
        waiters.release()


def _any_lock(paths: list[Path]) -> int | None:
    for path in paths:
        descriptor = file_locks.try_lock(path)
        if descriptor is not None:
            return descriptor
    return None
