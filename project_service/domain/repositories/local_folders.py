"""Folders on the disk of this machine that several processes use: locked while in use, else removable."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def in_use(folder: Path) -> Iterator[bool]:
    """Keep others from removing a folder during the block; false if there is no such folder."""
    descriptor = _locked(folder, fcntl.LOCK_SH)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def locked_file(path: Path) -> Iterator[None]:
    """Wait for the exclusive lock of a file, which is created and stays."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    while True:
        with path.open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(path, file.fileno()):  # its folder may have been removed
                yield
                return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)


def remove_unless_in_use(folder: Path, min_age_seconds: float = 0) -> bool:
    """Remove a folder unless it is in use or was changed recently; return whether it is gone."""
    try:
        descriptor = _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    if descriptor is None:
        return True
    try:
        if time.time() - os.fstat(descriptor).st_mtime < min_age_seconds:
            return False
        removed = folder.with_name(f".removed.{secrets.token_hex(8)}")
        folder.rename(removed)
        shutil.rmtree(removed, ignore_errors=True)
        return True
    finally:
        os.close(descriptor)


def _locked(folder: Path, operation: int) -> int | None:
    """Lock a folder and return its descriptor; ``None`` if it is not there."""
    with suppress(FileNotFoundError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, operation)
            if _is_at(folder, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    return None


def _is_at(path: Path, descriptor: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    return False
