"""Locks of files and folders between processes (``flock``): the kernel releases those of a process that dies.

A lock is a file descriptor and is released when that is closed.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FILE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


def lock(path: Path | str) -> int:
    """Wait for the lock of a file, which is created and stays."""
    return _acquired(os.open(path, FILE_FLAGS, 0o600), fcntl.LOCK_EX)


def try_lock(path: Path | str) -> int | None:
    """Lock a file, which is created and stays; ``None`` if another process has locked it."""
    with suppress(BlockingIOError):
        return _acquired(os.open(path, FILE_FLAGS, 0o600), fcntl.LOCK_EX | fcntl.LOCK_NB)
    return None


@contextmanager
def locked(path: Path | str) -> Iterator[int]:
    """Wait for the lock of a file, and hold it during the block."""
    descriptor = lock(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def share_folder(folder: Path) -> int | None:
    """Lock a folder together with others who share it; ``None`` if it is not there."""
    return _lock_folder(folder, fcntl.LOCK_SH)


def lock_folder(folder: Path) -> int | None:
    """Lock a folder; ``None`` if it is not there.

    Raises:
        BlockingIOError: another process has locked or shares it.

    """
    return _lock_folder(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_at(path: Path, descriptor: int) -> bool:
    """Whether a descriptor is that of the file or folder at a path: another process may have replaced it."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    return False


def _lock_folder(folder: Path, operation: int) -> int | None:
    with suppress(FileNotFoundError):
        descriptor = _acquired(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), operation)
        if is_at(folder, descriptor):
            return descriptor
        os.close(descriptor)
    return None


def _acquired(descriptor: int, operation: int) -> int:
    """Acquire a lock and return its descriptor, which is closed if that fails."""
    try:
        fcntl.flock(descriptor, operation)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
