"""Extraction of archives that may be hostile (archive format reference, section 7).

The archive is read once, as a stream. Only members that the format knows are written, below one directory, under names
that do not come from the archive.
"""

from __future__ import annotations

import shutil
import tarfile
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from zlib_ng import gzip_ng, zlib_ng

from project_service.transfers.archive import layout
from project_service.transfers.archive.contents import (
    BEHIND_A_LINK,
    BROKEN,
    CLIMBS,
    HARD_LINK,
    MAX_LEFT_OUT,
    MAX_NAME_LENGTH,
    MAX_NAME_PARTS,
    MAX_RELATIONS,
    NOT_GZIP,
    TOO_BIG,
    TOO_MANY,
    BadArchive,
    StoredFile,
    Unpacked,
)
from project_service.transfers.archive.tar_reader import LimitedTarFile, LimitedTarInfo

MIB = 1 << 20
CHUNK_BYTES = 128 * 1024  # fits into the cache of a processor; 1 MiB takes three times as long
BUFFER_BYTES = 64 * 1024
GZIP = b"\x1f\x8b"
MAX_LINKS, MAX_LINKS_LENGTH = 100_000, 8 * MIB  # the characters of all their names
# Unicode categories: control characters, surrogates, separators of lines and paragraphs
UNSAFE_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
ZLIB_ERROR: Any = zlib_ng.error  # untyped
# other errors of tarfile: invalid numbers, headers nested without end
TARFILE_ERRORS = (ValueError, OverflowError, IndexError, RecursionError)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an archive: decompressed bytes, their ratio to those of the file, and members."""

    size: int = 10 << 30
    ratio: int = 250
    ratio_from: int = 256 * MIB
    members: int = 1_000_000


def unpack(
    archive: Path, folder: Path, limits: Limits | None = None, check: Callable[[], None] = lambda: None
) -> Unpacked:
    """Extract an archive into a new ``folder``.

    ``check`` is called before each read; it may raise an exception to stop.

    Raises:
        BadArchive: the archive is damaged, hostile or too large.
        OSError: the disk is full.

    """
    limits = limits or Limits()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    unpacked = Unpacked(folder)
    with archive.open("rb") as file:
        if file.read(2) != GZIP:
            raise BadArchive(NOT_GZIP)
    with _convert_errors(), gzip_ng.open(archive, "rb") as stream:
        measured = LimitedStream(stream, archive.stat().st_size, limits, check)
        with LimitedTarFile.open(
            fileobj=cast(IO[bytes], measured), mode="r|", tarinfo=LimitedTarInfo, bufsize=BUFFER_BYTES
        ) as tar:
            for count, member in enumerate(iter(tar.next, None)):
                tar.members.clear()  # it would keep all of them
                if count >= limits.members:
                    raise BadArchive(TOO_MANY)
                if tar.offset > limits.size:  # sizes in headers are not trusted
                    raise BadArchive(TOO_BIG)
                _extract_member(unpacked, tar, member)
        measured.drain()  # the checksum is at the end of the file
    return unpacked


class LimitedStream:
    """A stream that raises ``BadArchive`` when an archive expands beyond the limits."""

    def __init__(self, stream: IO[bytes], compressed_size: int, limits: Limits, check: Callable[[], None]) -> None:
        self.stream = stream
        self.compressed_size = compressed_size
        self.limits = limits
        self.check = check
        self.total = 0

    def read(self, size: int = -1) -> bytes:
        """Read at most ``size`` bytes."""
        self.check()
        data = self.stream.read(size)
        self.total += len(data)
        expands = self.total > self.limits.ratio_from and self.total > self.compressed_size * self.limits.ratio
        if self.total > self.limits.size or expands:
            raise BadArchive(TOO_BIG)
        return data

    def drain(self) -> None:
        """Read to the end."""
        while self.read(CHUNK_BYTES):
            pass


def _extract_member(unpacked: Unpacked, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
    if "/../" in f"/{member.name}/":
        raise BadArchive(CLIMBS)
    if member.islnk():
        raise BadArchive(HARD_LINK)
    parts_of_name = [part for part in member.name.split("/") if part not in ("", ".")]
    parts = "/".join(parts_of_name)[:MAX_NAME_LENGTH].split("/")[:MAX_NAME_PARTS] if parts_of_name else []
    is_too_long = parts != parts_of_name
    if unpacked.links and any("/".join(parts[:count]) in unpacked.links for count in range(1, len(parts))):
        raise BadArchive(BEHIND_A_LINK)
    if member.issym() and not is_too_long:
        _record_link(unpacked, "/".join(parts))
    # links, devices and pipes are skipped
    if not member.isreg() or member.issparse() or not parts or parts[-1].startswith("._"):
        return
    if is_too_long:
        _leave_out(unpacked, parts)
        return
    name = "/".join(parts)
    path = _place(unpacked, name)
    if path is None:
        _leave_out(unpacked, parts)
        return
    source = tar.extractfile(member)
    if source is None:
        return
    with path.open("wb") as target:
        shutil.copyfileobj(source, target, CHUNK_BYTES)
    if path.stat().st_size != member.size:
        raise BadArchive(BROKEN)
    _register(unpacked, name, path)


def _record_link(unpacked: Unpacked, name: str) -> None:
    if name in unpacked.links:
        return
    unpacked.links.add(name)
    unpacked.links_length += len(name)
    if len(unpacked.links) > MAX_LINKS or unpacked.links_length > MAX_LINKS_LENGTH:
        raise BadArchive(TOO_MANY)


def _place(unpacked: Unpacked, name: str) -> Path | None:
    """Return where a member is written; nothing if the format does not have it. The last of a name counts."""
    if name in layout.TEXTS or name in ("project.json", layout.LFS_TYPES) or layout.BUNDLE.fullmatch(name):
        return unpacked.folder / name
    if name == "tree/project.json":
        return unpacked.folder / "tree-project.json"
    if relation := layout.TREE_FILE.fullmatch(name):
        return unpacked.folder / f"relation-{relation[1]}.ndjson"
    if any(pattern.fullmatch(name) for pattern in layout.PASSED_FILES) and _is_storable(name):
        stored = unpacked.carried.get(name)
        return stored.place if stored else unpacked.folder / f"file-{len(unpacked.carried)}"
    return None


def _register(unpacked: Unpacked, name: str, path: Path) -> None:
    if name in layout.TEXTS:
        with path.open(errors="replace") as text:
            unpacked.texts[name] = text.read(1000)
    elif name == "project.json":
        unpacked.legacy = path
    elif name == "tree/project.json":
        unpacked.project = path
    elif name == layout.LFS_TYPES:
        unpacked.lfs_types = path
    elif relation := layout.TREE_FILE.fullmatch(name):
        unpacked.relations[relation[1]] = path
        if len(unpacked.relations) > MAX_RELATIONS:
            raise BadArchive(TOO_MANY)
    elif layout.BUNDLE.fullmatch(name):
        unpacked.bundles[name.removesuffix(".bundle")] = path
    else:
        unpacked.carried[name] = StoredFile(name, path, path.stat().st_size)


def _leave_out(unpacked: Unpacked, parts: list[str]) -> None:
    """Record a file in a directory of stored files whose name cannot be stored."""
    if parts[0] in layout.FOLDERS and parts[-1] != ".DS_Store" and len(unpacked.left_out) < MAX_LEFT_OUT:
        unpacked.left_out["/".join(parts)] = None


def _is_storable(name: str) -> bool:
    """Whether a name can be stored and shown on one line; unusual spaces are allowed."""
    return not any(
        unicodedata.category(character) in UNSAFE_CATEGORIES or character in BIDI_CONTROLS for character in name
    )


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Convert the errors of gzip and tar to ``BadArchive``; errors of the disk pass through."""
    try:
        yield
    except (EOFError, zlib.error, ZLIB_ERROR, tarfile.TarError, *TARFILE_ERRORS) as error:
        raise BadArchive(BROKEN) from error
    except OSError as error:
        if error.errno is None:  # raised by the gzip reader for trailing garbage
            raise BadArchive(BROKEN) from error
        raise
