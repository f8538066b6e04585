"""Writing an archive: a gzip-compressed tar (archive format reference, section 1)."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from zlib_ng import gzip_ng_threaded

COMPRESSION_LEVEL = 4  # a tenth larger than the default of gzip, in a quarter of the time
COMPRESSION_THREADS = 2
BUFFER_BYTES = 1 << 20
FILE_MODE, DIRECTORY_MODE = 0o644, 0o755


@contextmanager
def open_archive(path: Path) -> Iterator[ArchiveWriter]:
    """Write an archive to a new file, which is complete when the block ends without an exception."""
    stream = gzip_ng_threaded.open(path, "wb", COMPRESSION_LEVEL, threads=COMPRESSION_THREADS)
    with stream, tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT, bufsize=BUFFER_BYTES) as tar:
        yield ArchiveWriter(tar)


class ArchiveWriter:
    """Writes the members of an archive one after the other."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._modified_at = int(time.time())

    def add_bytes(self, name: str, content: bytes) -> None:
        """Add a small file."""
        self.add_stream(name, io.BytesIO(content), len(content))

    def add_stream(self, name: str, file: IO[bytes], size: int) -> None:
        """Add a file with the next ``size`` bytes of a stream; ``OSError`` if there are fewer."""
        self._add(name, file, size=size, mode=FILE_MODE)

    def add_directory(self, name: str) -> None:
        """Add an empty directory."""
        self._add(name, type=tarfile.DIRTYPE, mode=DIRECTORY_MODE)

    def _add(self, name: str, file: IO[bytes] | None = None, **fields: Any) -> None:
        member = tarfile.TarInfo(f"./{name}")
        member.mtime = self._modified_at
        for field, value in fields.items():
            setattr(member, field, value)
        self._tar.addfile(member, file)
        self._tar.members.clear()  # type: ignore[attr-defined]  # typeshed lacks it; there may be a million
