"""The folders that a push brings: those with very many entries are refused, because reading them takes long."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from project_service.domain.repositories import git

MAX_SECONDS = 600
ID_BYTES = 20
MIN_ENTRY_BYTES = 28  # a mode, a space, a name of one byte, a NUL and an id
CHUNK_IDS = 50_000
CHUNK_BYTES = 1 << 20
FANOUT_END = 8 + 256 * 4  # in an index of a pack; its last four bytes are the number of ids, which follow


def has_wide_tree(folder: Path, max_entries: int) -> bool:
    """Whether a pack of a repository, borrowed ones aside, has a tree with more than some entries."""
    large = _trees_above(folder, max_entries * MIN_ENTRY_BYTES)
    return any(_entry_count(folder, object_id) > max_entries for object_id in large)


def _trees_above(folder: Path, min_bytes: int) -> Iterator[str]:
    with tempfile.TemporaryFile() as ids:
        for index in folder.glob("objects/pack/*.idx"):
            _copy_ids(index, ids)
        ids.seek(0)
        with git.started(
            *("cat-file", "--buffer", "--batch-check=%(objecttype) %(objectsize) %(objectname)"),
            folder=folder,
            size=git.size_on_disk(folder),
            stdin=ids,
            max_seconds=MAX_SECONDS,
        ) as process:
            for line in process.stdout or ():
                if line.startswith(b"tree "):
                    _, size, object_id = line.split()
                    if int(size) > min_bytes:
                        yield object_id.decode()


def _copy_ids(index: Path, target: IO[bytes]) -> None:
    """Write the ids of the objects of a pack, one in a line (git, ``gitformat-pack``, version 2)."""
    with index.open("rb") as file:
        left = int.from_bytes(file.read(FANOUT_END)[-4:], "big")
        while left > 0:
            some = file.read(min(left, CHUNK_IDS) * ID_BYTES)
            target.write(some.hex("\n", ID_BYTES).encode() + b"\n")
            left -= CHUNK_IDS


def _entry_count(folder: Path, tree: str) -> int:
    arguments = ("ls-tree", "-z", "--name-only", tree)
    size = git.size_on_disk(folder)
    with git.started(*arguments, folder=folder, size=size, max_seconds=MAX_SECONDS) as process:
        count = 0
        while process.stdout is not None and (names := process.stdout.read(CHUNK_BYTES)):
            count += names.count(b"\0")
        return count
