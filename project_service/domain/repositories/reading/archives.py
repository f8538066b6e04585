"""Archives of a commit: equal requests have equal bytes."""

from __future__ import annotations

import bz2
import struct
import zlib
from collections.abc import Iterator
from typing import Protocol

from project_service.domain.repositories.reading import processes
from project_service.domain.repositories.reading.objects import Commit
from project_service.domain.repositories.reading.repository import CodeRepository

ARCHIVE_SECONDS = 3600.0
# formats by the endings of file names that clients use
FORMATS = {
    "tar.gz": "tar.gz",
    "tgz": "tar.gz",
    "gz": "tar.gz",
    "tar.bz2": "tar.bz2",
    "tbz": "tar.bz2",
    "tbz2": "tar.bz2",
    "tb2": "tar.bz2",
    "bz2": "tar.bz2",
    "tar": "tar",
    "zip": "zip",
}
GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # without time and name


class Compressor(Protocol):
    """What compresses a stream."""

    def compress(self, data: bytes, /) -> bytes:
        """Compress a piece."""

    def flush(self) -> bytes:
        """Return the rest."""


class Gzip:
    """Gzip without the time at which it runs."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
        self._checksum, self._size = 0, 0
        self._start = GZIP_HEADER

    def compress(self, data: bytes, /) -> bytes:
        """Compress a piece."""
        self._checksum, self._size = zlib.crc32(data, self._checksum), self._size + len(data)
        start, self._start = self._start, b""
        return start + self._deflate.compress(data)

    def flush(self) -> bytes:
        """Return the rest and the checksum."""
        return self._start + self._deflate.flush() + struct.pack("<LL", self._checksum, self._size & 0xFFFFFFFF)


class Plain:
    """No compression."""

    def compress(self, data: bytes, /) -> bytes:
        """Return the piece."""
        return data

    def flush(self) -> bytes:
        """Return nothing."""
        return b""


def archive(
    repository: CodeRepository, commit: Commit, kind: str, folder: str, path: str = "", *, slots: processes.CallerSlots
) -> Iterator[bytes]:
    """The pieces of an archive of one of ``FORMATS``, whose files are in a folder; ``path`` limits it to a part.

    Raises ``ReadingFailed`` in the middle of it when git fails, so that the client sees that it is not complete.
    """
    container = "zip" if kind == "zip" else "tar"
    compressor: Compressor = {"tar.gz": Gzip, "tar.bz2": bz2.BZ2Compressor}.get(kind, Plain)()
    arguments = ["archive", f"--format={container}", f"--prefix={folder}/", commit.id, "--"]
    paths = [f":(literal){path}"] if path else []
    for chunk in processes.stream(repository.folder, *arguments, *paths, seconds=ARCHIVE_SECONDS, slots=slots):
        if compressed := compressor.compress(chunk):
            yield compressed
    yield compressor.flush()
