"""Folders of a commit: their entries in the order of GitLab, also of all folders below."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from project_service.domain.repositories.reading import processes
from project_service.domain.repositories.reading.objects import Commit, Entry
from project_service.domain.repositories.reading.repository import BLOB, COMMIT, MAX_ENTRIES, TREE, CodeRepository

MAX_RECURSIVE_BYTES = 24 << 20
_ORDER = {TREE: 0, BLOB: 1, COMMIT: 2}


def folder(repository: CodeRepository, commit: Commit, path: str, *, recursive: bool = False) -> list[Entry] | None:
    """The entries of a folder, folders first, then files, then submodules; ``None`` if it is no folder.

    Raises:
        ReadingTooLarge: there are more than ``MAX_ENTRIES``.

    """
    found = repository.entry(commit, path)
    if found is None or found.type != TREE:
        return None
    entries: Iterable[Entry] = repository.tree(found.id, found.path)
    if recursive:
        entries = _below(repository, found)
    listed = list(itertools.islice(entries, MAX_ENTRIES + 1))
    if len(listed) > MAX_ENTRIES:
        raise processes.ReadingTooLarge("tree")
    return sorted(listed, key=lambda entry: (_ORDER[entry.type], entry.path))


def _below(repository: CodeRepository, top: Entry) -> Iterable[Entry]:
    output = processes.read(
        repository.folder, "ls-tree", "-r", "-t", "-z", "--full-tree", top.id, max_bytes=MAX_RECURSIVE_BYTES
    )
    prefix = top.path + b"/" if top.path else b""
    for line in output.split(b"\0")[:-1]:
        head, _, path = line.partition(b"\t")
        mode, _kind, object_id = head.split(b" ")
        yield Entry(int(mode, 8), prefix + path, object_id.decode())
