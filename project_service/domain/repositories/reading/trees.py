"""Folders of a commit: their entries in the order of GitLab, also of all folders below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from project_service.domain.repositories.reading import processes
from project_service.domain.repositories.reading.budget import ReadingTooLarge
from project_service.domain.repositories.reading.objects import Commit, Entry, parse_entry
from project_service.domain.repositories.reading.repository import TREE, CodeRepository

MAX_FOLDER_BYTES = 24 << 20
MAX_ENTRIES = 200_000
KINDS = (b"tree", b"blob", b"commit")  # in the order of GitLab


class Folder(Sequence[Entry]):
    """The entries of a folder, of which only those that are used are parsed."""

    def __init__(self, lines: Iterable[bytes], prefix: bytes) -> None:
        by_kind: dict[bytes, list[tuple[bytes, bytes]]] = {kind: [] for kind in KINDS}
        for line in lines:
            head, _, path = line.partition(b"\t")
            by_kind[head.split(b" ", 2)[1]].append((path, head))
        self._rows = [row for kind in KINDS for row in sorted(by_kind[kind])]
        self._prefix = prefix

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...

    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return [self._entry(row) for row in self._rows[index]]
        return self._entry(self._rows[index])

    def files_that_begin(self, start: bytes) -> Iterator[Entry]:
        """Generate the entries whose names begin with a text in lower case, in any case."""
        for row in self._rows:
            if row[0][: len(start)].lower() == start:
                yield self._entry(row)

    def position_after(self, object_id: str) -> int:
        """Where the entries after the first one with an id begin; at the end if there is none."""
        raw = object_id.encode()
        return next((position for position, (_, head) in enumerate(self._rows, 1) if head.endswith(raw)), len(self))

    def _entry(self, row: tuple[bytes, bytes]) -> Entry:
        path, head = row
        return parse_entry(head + b"\t" + self._prefix + path)


def folder(repository: CodeRepository, commit: Commit, path: str, *, recursive: bool = False) -> Folder | None:
    """The entries of a folder, folders first, then files, then submodules; ``None`` if it is no folder.

    Raises:
        ReadingTooLarge: there are more than ``MAX_ENTRIES``.

    """
    entry = repository.entry(commit, path)
    if entry is None or entry.type != TREE:
        return None
    options = ["-r", "-t"] if recursive else []
    # the root folder is named by its commit, whose text may name any tree
    tree = entry.id if path else commit.id
    arguments = ("ls-tree", *options, "-z", "--full-tree", tree)
    output = processes.read(repository.folder, *arguments, max_bytes=MAX_FOLDER_BYTES)
    if output.count(b"\0") > MAX_ENTRIES:
        raise ReadingTooLarge("entries")
    return Folder(output.split(b"\0")[:-1], entry.path + b"/" if entry.path else b"")


def file_names(repository: CodeRepository, commit: Commit) -> frozenset[bytes]:
    """The paths of all files of a commit.

    Raises:
        ReadingTooLarge: there are more than ``MAX_ENTRIES``.

    """
    arguments = ("ls-tree", "-r", "-z", "--full-tree", "--name-only", commit.id)
    output = processes.read(repository.folder, *arguments, max_bytes=MAX_FOLDER_BYTES)
    if output.count(b"\0") > MAX_ENTRIES:
        raise ReadingTooLarge("entries")
    return frozenset(output.split(b"\0")[:-1])
