"""Folders on the disk of this machine that several processes use: locked while in use, else removable."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from project_service.kit import file_locks


@contextmanager
def in_use(folder: Path) -> Iterator[bool]:
    """Keep others from removing a folder during the block; false if there is no such folder."""
    descriptor = file_locks.share_folder(folder)
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
        with file_locks.locked(path) as lock:
            if file_locks.is_at(path, lock):  # its folder may have been removed
                yield
                return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)


def remove_unless_in_use(folder: Path, min_age_seconds: float = 0) -> bool:
    """Remove a folder unless it is in use or was changed recently; return whether it is gone."""
    try:
        descriptor = file_locks.lock_folder(folder)
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
