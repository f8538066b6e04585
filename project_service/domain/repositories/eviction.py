"""What a machine has of repositories on its disk, removed by age and by size; all of it can be deleted at any time."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from flask import current_app

from project_service.domain.repositories.local_folders import locked_file, remove_unless_in_use
from project_service.domain.repositories.models import root

MAX_CACHE_AGE_SECONDS = 7 * 86400  # since a repository was last read on this machine
MIN_CACHE_AGE_SECONDS = 60  # a reader may be about to lock it
MAX_INCOMING_AGE_SECONDS = 86400  # of folders that no process holds
CLEAN_UP_SECONDS = 600
BYTES_PER_MIB = 1 << 20


def cache_of(repository_id: int) -> Path:
    """The folder of a repository: its views and downloaded packs. Its time is that of the last reading."""
    return root() / "cache" / str(repository_id)


def incoming_folder() -> Path:
    """The directory of this machine for what is being received or converted."""
    folder = root() / "incoming"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def clean_up() -> None:
    """Remove from this machine what nothing needs any more, unless that was done within ten minutes."""
    mark = root() / "cleaned"
    if mark.exists() and time.time() - mark.stat().st_mtime < CLEAN_UP_SECONDS:
        return
    root().mkdir(parents=True, exist_ok=True, mode=0o700)
    mark.touch()
    remove_unused(MAX_CACHE_AGE_SECONDS)
    max_mib = current_app.config["SETTINGS"].max_repository_cache_mib
    if max_mib:
        remove_above(max_mib * BYTES_PER_MIB)
    for folder in (*incoming_folder().iterdir(), *root().glob(".empty-*")):
        remove_unless_in_use(folder, MAX_INCOMING_AGE_SECONDS)


def remove_unused(max_age_seconds: float) -> None:
    """Remove the caches of repositories that were not read for some time."""
    for base in _caches():
        _remove(base, max_age_seconds)


def remove_above(max_bytes: int, min_age_seconds: float = MIN_CACHE_AGE_SECONDS) -> None:
    """Remove caches, those not read for longest first, until the rest take at most ``max_bytes``.

    A cache that is being read stays. Packs that are hard links to the storage take no space of their own.
    """
    sizes = {base: _own_bytes(base) for base in _caches()}
    total = sum(sizes.values())
    for base in sorted(sizes, key=_last_read):
        if total <= max_bytes:
            return
        if sizes[base] and _remove(base, min_age_seconds):
            total -= sizes[base]


def remove_caches(repository_ids: Iterable[int]) -> None:
    """Remove what this machine has of repositories that are deleted, unless it is being read."""
    for repository_id in repository_ids:
        for view in _views_below(cache_of(repository_id)):
            remove_unless_in_use(view)
        remove_unless_in_use(cache_of(repository_id))


def _caches() -> list[Path]:
    return list((root() / "cache").glob("[0-9]*"))


def _views_below(base: Path) -> list[Path]:
    return list((base / "views").glob("[0-9a-f]*.git"))


def _remove(base: Path, min_age_seconds: float) -> bool:
    with locked_file(base / "lock"):
        removed = [remove_unless_in_use(view, min_age_seconds) for view in _views_below(base)]
        return all(removed) and remove_unless_in_use(base, min_age_seconds)


def _own_bytes(base: Path) -> int:
    size = 0
    for path in base.rglob("*"):
        with suppress(FileNotFoundError):  # removed meanwhile
            state = path.lstat()
            size += state.st_size if state.st_nlink == 1 else 0
    return size


def _last_read(base: Path) -> float:
    try:
        return base.stat().st_mtime
    except FileNotFoundError:
        return 0.0
