"""The backup file: a gzip-compressed tar, written and read as a stream, with a checksum of all members.

The last member is the manifest, the only one that is read as a whole.
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
CHUNK_BYTES = 1 << 20
COMPRESSION_LEVEL = 1  # most large files are compressed already


class BackupError(Exception):
    """A backup cannot be written or restored; the message says why and what to do."""


class _ChecksumReader:
    """A file whose bytes are added to a checksum as they are read."""

    def __init__(self, file: IO[bytes], update: Callable[[bytes], None]) -> None:
        self.file = file
        self.update = update

    def read(self, size: int) -> bytes:
        """Read up to ``size`` bytes."""
        chunk = self.file.read(size)
        self.update(chunk)
        return chunk


class BackupWriter:
    """Adds members to a backup."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._sum = hashlib.sha256()

    def add(self, name: str, file: IO[bytes], size: int) -> None:
        """Add ``size`` bytes of an open file."""
        self._sum.update(_head(name, size))
        try:
            self._tar.addfile(_member(name, size), _ChecksumReader(file, self._sum.update))  # type: ignore[arg-type]  # only read() is used
        except (OSError, EOFError) as error:
            raise BackupError(f"{name} could not be read to its end ({error}): try again") from error

    def add_bytes(self, name: str, content: bytes) -> None:
        """Add bytes."""
        self.add(name, io.BytesIO(content), len(content))

    def end(self, manifest: dict[str, Any]) -> None:
        """Add the manifest with the checksum of all other members."""
        content = orjson.dumps(manifest | {"sha256": self._sum.hexdigest()}, option=orjson.OPT_INDENT_2)
        self._tar.addfile(_member(MANIFEST, len(content)), io.BytesIO(content))


@contextmanager
def writing(path: Path) -> Iterator[BackupWriter]:
    """Write a backup with mode 0600; it appears, or replaces a former one, when the block ends without an error."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            with (
                gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=COMPRESSION_LEVEL) as packed,
                tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
            ):
                yield BackupWriter(tar)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def members(path: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Iterate over name, size and content of each member, the manifest last; read each content before the next."""
    with gzip.open(path) as packed:
        with tarfile.open(fileobj=packed, mode="r|") as tar:
            for member in tar:
                content = tar.extractfile(member)
                if content is None:
                    raise tarfile.ReadError(f"{member.name} is no file")
                yield member.name, member.size, content
        while packed.read(CHUNK_BYTES):
            pass  # gzip verifies its own checksum at the end


def verified(path: Path) -> dict[str, Any]:
    """Read a backup to its end and return its manifest; ``BackupError`` if it is damaged."""
    checksum, manifest = hashlib.sha256(), b""
    try:
        for name, size, content in members(path):
            if manifest:
                raise tarfile.ReadError("there is data after the manifest")
            if name == MANIFEST:
                manifest = content.read()
                continue
            checksum.update(_head(name, size))
            while chunk := content.read(CHUNK_BYTES):
                checksum.update(chunk)
        contents: dict[str, Any] = orjson.loads(manifest)  # fails without a manifest
        if contents["sha256"] != checksum.hexdigest():
            raise tarfile.ReadError("the checksum does not match")
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, LookupError, OverflowError) as error:
        raise BackupError(f"{path} is not a backup, or damaged ({error})") from error
    return contents


def _head(name: str, size: int) -> bytes:
    return f"{name}\0{size}\0".encode()


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member
