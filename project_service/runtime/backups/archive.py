"""The file: a compressed tar that is written and read from front to end, with a checksum over everything in it.

The last member is the manifest. Only it is read as a whole; everything else passes through in pieces.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import secrets
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import orjson

MANIFEST = "manifest.json"
PIECE = 1 << 20
QUICK = 1  # the level of compression: most of what is large has been compressed already


class BackupError(Exception):
    """A back-up that cannot be made or restored; the text says why, and what to do."""


class _Counted:
    """A file whose bytes are added to a checksum as they are read."""

    def __init__(self, file: IO[bytes], update: Callable[[bytes], None]) -> None:
        self.file = file
        self.update = update

    def read(self, size: int) -> bytes:
        """The next bytes."""
        found = self.file.read(size)
        self.update(found)
        return found


class Writer:
    """Adds members to an archive."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._sum = hashlib.sha256()

    def add(self, name: str, file: IO[bytes], size: int) -> None:
        """Add ``size`` bytes of an open file."""
        self._sum.update(_head(name, size))
        try:
            self._tar.addfile(_member(name, size), _Counted(file, self._sum.update))  # type: ignore[arg-type]  # all that is asked of it is to be read
        except (OSError, EOFError) as error:
            raise BackupError(f"{name} could not be read to its end ({error}): try again") from error

    def add_bytes(self, name: str, content: bytes) -> None:
        """Add what is in memory."""
        self.add(name, io.BytesIO(content), len(content))

    def end(self, manifest: dict[str, Any]) -> None:
        """Add the manifest, and with it the checksum of all that came before."""
        content = orjson.dumps(manifest | {"sha256": self._sum.hexdigest()}, option=orjson.OPT_INDENT_2)
        self._tar.addfile(_member(MANIFEST, len(content)), io.BytesIO(content))


@contextmanager
def writing(path: Path) -> Iterator[Writer]:
    """Write an archive for our eyes only: it takes its name, in place of one before, when the block has ended well."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            with (
                gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=QUICK) as packed,
                tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
            ):
                yield Writer(tar)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def members(path: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Name, size and content of each member, the manifest last; each content has to be read before the next one."""
    with gzip.open(path) as packed:
        with tarfile.open(fileobj=packed, mode="r|") as tar:
            for member in tar:
                content = tar.extractfile(member)
                if content is None:
                    raise tarfile.ReadError(f"{member.name} is no file")
                yield member.name, member.size, content
        while packed.read(PIECE):
            pass  # the checksum of the compression comes after everything else


def verified(path: Path) -> dict[str, Any]:
    """Read an archive to its end and return its manifest; ``BackupError`` when a byte of it is not as it was."""
    summed, manifest = hashlib.sha256(), b""
    try:
        for name, size, content in members(path):
            if manifest:
                raise tarfile.ReadError("it goes on behind its end")
            if name == MANIFEST:
                manifest = content.read()
                continue
            summed.update(_head(name, size))
            while piece := content.read(PIECE):
                summed.update(piece)
        found: dict[str, Any] = orjson.loads(manifest)  # without one it is not whole
        if found["sha256"] != summed.hexdigest():
            raise tarfile.ReadError("its checksum is another")
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, LookupError, OverflowError) as error:
        raise BackupError(f"{path} is no back-up, or damaged ({error})") from error
    return found


def _head(name: str, size: int) -> bytes:
    return f"{name}\0{size}\0".encode()


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member
