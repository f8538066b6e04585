"""The refs of a local repository: a sorted file, in which one of many is found without reading the others."""

from __future__ import annotations

import mmap
from pathlib import Path

ID_LENGTH = 40
NAME_START = ID_LENGTH + 1


class PackedRefs:
    """``packed-refs`` of a bare repository (git, ``gitrepository-layout``), sorted, as git and views write it.

    A line is an id and a name. After that of an annotated tag there is one of ``^`` and the id to which it leads. The
    first line begins with ``#``.
    """

    def __init__(self, path: Path) -> None:
        content: mmap.mmap | bytes = b""
        with path.open("rb") as file:
            if file.seek(0, 2):
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._content = content

    def target(self, name: bytes) -> str | None:
        """The id to which a ref points; ``None`` if there is no such ref."""
        start = self._position(name)
        line = self._content[start : self._end(start)]
        return line[:ID_LENGTH].decode() if line[NAME_START:] == name else None

    def count(self, prefix: bytes) -> int:
        """The number of refs below a prefix, which ends with a slash."""
        section = self._section(prefix)
        return section.count(b"\n") - section.count(b"\n^")

    def names(self, prefix: bytes) -> list[bytes]:
        """The names of the refs below a prefix, which ends with a slash, in the order of their bytes."""
        lines = self._section(prefix).split(b"\n")
        return [line[NAME_START:] for line in lines if line and not line.startswith(b"^")]

    def _section(self, prefix: bytes) -> bytes:
        # "0" follows "/"
        return self._content[self._position(prefix) : self._position(prefix[:-1] + b"0")]

    def _position(self, name: bytes) -> int:
        """Where the first line begins whose ref is not before a name."""
        low, high = 0, len(self._content)
        while low < high:
            start = self._start(low, (low + high) // 2)
            if self._content[start : start + 1] == b"^":
                start = self._start(low, start - 1)
            end = self._end(start)
            line = self._content[start:end]
            if line.startswith((b"#", b"^")) or line[NAME_START:] < name:
                low = end + 1
            else:
                high = start
        return low

    def _start(self, low: int, position: int) -> int:
        """Where the line with a position begins, not before ``low``."""
        return max(self._content.rfind(b"\n", low, position) + 1, low)

    def _end(self, start: int) -> int:
        end = self._content.find(b"\n", start)
        return len(self._content) if end < 0 else end
