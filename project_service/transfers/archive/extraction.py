"""Taking an archive apart, though it may be meant to harm (archive format reference, section 7).

The archive is read once, as a stream. Nothing but what the format knows is written, below one folder, under names of
ours; what a member claims to be called, to own or to link to is never asked of the file system.
"""

from __future__ import annotations

import shutil
import tarfile
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from zlib_ng import gzip_ng, zlib_ng

from project_service.transfers.archive import layout

MIB = 1 << 20
# what is read and written piece by piece has to fit into the processor's cache: with pieces of 1 MiB it takes three
# times as long
CHUNK = 128 * 1024
BUFFER = 64 * 1024
GZIP = b"\x1f\x8b"
MOST_RELATIONS = 1000
LONGEST_HEADERS = MIB  # bytes of all that stands before one member: long names, extended headers
EXTENDED = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
COUNTS = (b"path", b"linkpath", b"size")  # of what extended headers say
MOST_DIGITS = 20
MAGIC = slice(257, 265)  # where a header says whose it is
MAP_GOES_ON = 504  # where a block of the map of a sparse file says so
ENDS: Any = (tarfile.EOFHeaderError, tarfile.EmptyHeaderError)  # type: ignore[attr-defined]  # typeshed has them not
LONGEST_NAME, MOST_PARTS = 4096, 100  # no file has a longer name, and what costs time with each part is not done
MOST_LINKS, LONGEST_LINKS = 100_000, 8 * MIB  # the characters of all their names
MOST_LEFT_OUT = 100  # of files whose names nobody can keep that many are told of
# controls and halves of characters, and what would let a name pass for lines or, by turning its direction, for another
UNSAFE = frozenset({"Cc", "Cs", "Zl", "Zp"})
TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class BadArchive(Exception):
    """An archive that cannot be imported; the text is what people are told, without a path of this server."""


UNREADABLE: Any = zlib_ng.error  # its types call it an object
# what tarfile stumbles over: numbers that are none, headers nested without end
CONFUSED = (ValueError, OverflowError, IndexError, RecursionError)
NOT_GZIP = "The file is not in gzip format"
BROKEN = "The archive is damaged or incomplete"
TOO_BIG = "Decompressed archive size validation failed."
NO_VERSION = "No such file or directory @ rb_sysopen - [FILTERED] (VERSION missing)"
EMPTY_VERSION = "end of file reached"
NO_TREE = "invalid import format"
BAD_JSON = "Incorrect JSON format"
HARD_LINK = "File shares hard link"
BEHIND_A_LINK = "The archive has a member in a directory that is a symbolic link"
CLIMBS = "The archive has a member outside of its own directory"
TOO_MANY = "The archive has too many members"


@dataclass(frozen=True, slots=True)
class Limits:
    """How far an archive may go: bytes when decompressed, how many times those of the file, members."""

    size: int = 10 << 30
    ratio: int = 250
    ratio_from: int = 256 * MIB
    members: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Carried:
    """A file that is carried along: its place in the archive, and where it lies now."""

    path: str
    place: Path
    size: int


@dataclass(frozen=True, slots=True)
class TooLarge:
    """What stands for a row that is not read, and why."""

    text: str


@dataclass(slots=True)
class Unpacked:
    """What was found in an archive, as files of ours."""

    folder: Path
    texts: dict[str, str] = field(default_factory=dict)
    relations: dict[str, Path] = field(default_factory=dict)
    project: Path | None = None
    legacy: Path | None = None
    bundles: dict[str, Path] = field(default_factory=dict)
    lfs_types: Path | None = None
    carried: dict[str, Carried] = field(default_factory=dict)
    links: set[str] = field(default_factory=set)  # names of symbolic links, none of which is made
    length_of_links: int = 0  # of all these names
    left_out: dict[str, None] = field(default_factory=dict)  # names of files that are not carried along
    too_large: dict[str, dict[int, TooLarge]] = field(default_factory=dict)  # rows that are not read, by their lines

    def check(self) -> None:
        """Raise ``BadArchive`` unless this is the format we read, and it has a tree (section 2; import, section 7)."""
        version = self.texts.get("VERSION")
        if version is None:
            raise BadArchive(NO_VERSION)
        if not version.strip():
            raise BadArchive(EMPTY_VERSION)
        if not layout.VERSION.fullmatch(version.strip()):
            raise BadArchive("Incorrect VERSION format")
        if layout.segments_of(version) != layout.segments_of(layout.FORMAT):
            raise BadArchive(f"Import version mismatch: Required {layout.FORMAT} but was {version.strip()[:100]}")
        if self.project is None and self.legacy is None:
            raise BadArchive(NO_TREE)


def unpack(
    archive: Path, folder: Path, limits: Limits | None = None, check: Callable[[], None] = lambda: None
) -> Unpacked:
    """Write what an archive holds below a fresh ``folder``; ``BadArchive``, or ``OSError`` when a disk is full.

    ``check`` is called with every piece and may end this.
    """
    limits = limits or Limits()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    found = Unpacked(folder)
    with archive.open("rb") as file:
        if file.read(2) != GZIP:
            raise BadArchive(NOT_GZIP)
    with _reading(), gzip_ng.open(archive, "rb") as stream:  # type: ignore[no-untyped-call]  # the library has no types
        measured = Measured(stream, archive.stat().st_size, limits, check)
        with Tape.open(fileobj=cast(IO[bytes], measured), mode="r|", tarinfo=Member, bufsize=BUFFER) as tar:
            for count, member in enumerate(iter(tar.next, None)):
                tar.members.clear()  # it would remember them all
                if count >= limits.members:
                    raise BadArchive(TOO_MANY)
                if tar.offset > limits.size:  # where the next one is looked for, piece by piece, behind the end too
                    raise BadArchive(TOO_BIG)
                _take(found, tar, member)
        measured.drain()  # the checksum of the archive stands at its very end
    return found


class Measured:
    """A stream that ends the reading when more comes out of the archive than may."""

    def __init__(self, stream: IO[bytes], packed: int, limits: Limits, check: Callable[[], None]) -> None:
        self.stream = stream
        self.packed = packed
        self.limits = limits
        self.check = check
        self.total = 0

    def read(self, size: int = -1) -> bytes:
        """Read on."""
        self.check()
        data = self.stream.read(size)
        self.total += len(data)
        expands = self.total > self.limits.ratio_from and self.total > self.packed * self.limits.ratio
        if self.total > self.limits.size or expands:
            raise BadArchive(TOO_BIG)
        return data

    def drain(self) -> None:
        """Read to the end."""
        while self.read(CHUNK):
            pass


class Tape(tarfile.TarFile):
    """An archive that knows how many bytes of headers stand before the member that is read."""

    members: list[tarfile.TarInfo]
    headers = 0
    is_begun = False  # some of these are of a member that is still to come


class Member(tarfile.TarInfo):
    """A member of an archive, read with what its headers may cost in mind.

    ``tarfile`` itself stops at a header that is none as if it were the end, keeps all of the extended headers and the
    maps of sparse files, and looks through a header of many digits for minutes.
    """

    @classmethod
    def fromtarfile(cls, tar: Any) -> Any:
        """The next member; the end is a block of zeros, or where nothing is left at all."""
        try:
            return super().fromtarfile(tar)
        except tarfile.HeaderError as error:
            if isinstance(error, ENDS) and not tar.is_begun:
                raise
            raise BadArchive(BROKEN) from error

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Any:
        """A member by its header; GNU's may have moments where others have the beginning of a long name."""
        found = super().frombuf(buf, encoding, errors)
        if buf[MAGIC] == tarfile.GNU_MAGIC:
            name = buf[: tarfile.LENGTH_NAME].partition(b"\0")[0].decode(encoding, errors)
            found.name = name.rstrip("/") if found.isdir() else name
        return found

    def _proc_member(self, tar: Any) -> Any:
        is_header = self.type in EXTENDED or self.type in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
        tar.headers = tar.headers + tarfile.BLOCKSIZE + self.size if is_header else 0
        tar.is_begun = is_header and self.type != tarfile.XGLTYPE
        if self.size < 0 or tar.headers > LONGEST_HEADERS:
            raise BadArchive(BROKEN)
        if self.type in EXTENDED:
            return self._proc_extended(tar)
        if self.type == tarfile.GNUTYPE_SPARSE:
            return self._proc_holes(tar)
        return super()._proc_member(tar)  # type: ignore[misc]  # the hook that tarfile gives to subclasses

    def _proc_extended(self, tar: Any) -> Any:
        """Read an extended header: of one member, or of all that follow."""
        block: Any = self._block  # type: ignore[attr-defined]  # typeshed has no parts of the hook
        said, is_sparse = _said(tar.fileobj.read(block(self.size))[: self.size])
        if self.type == tarfile.XGLTYPE:
            tar.pax_headers.update(said)
            return self.fromtarfile(tar)
        member = self.fromtarfile(tar)
        if is_sparse:
            member.sparse = b""
        member._apply_pax_info(said, tar.encoding, tar.errors)
        if "size" in said:
            has_content = member.isreg() or member.type not in tarfile.SUPPORTED_TYPES
            tar.offset = member.offset_data + (block(member.size) if has_content else 0)
        return member

    def _proc_holes(self, tar: Any) -> Any:
        """Skip the map of a sparse file; it goes on in further blocks as long as each says so."""
        _, goes_on, _ = self._sparse_structs  # type: ignore[attr-defined]  # what tarfile read of it
        while goes_on:
            goes_on = tar.fileobj.read(tarfile.BLOCKSIZE)[MAP_GOES_ON]
        self.sparse = b""
        return self._proc_builtin(tar)  # type: ignore[attr-defined]  # as above


def _said(header: bytes) -> tuple[dict[str, str], bool]:
    """What counts of an extended header, and whether it is that of a sparse file.

    Its records are ``LENGTH KEYWORD=VALUE`` and a line end, each as long as it says (POSIX, pax).
    """
    said: dict[str, str] = {}
    is_sparse, start = False, 0
    while start < len(header) and header[start]:  # some are padded
        length, _, _ = header[start : start + MOST_DIGITS].partition(b" ")
        end = start + (int(length) if length.isdigit() else 0)
        keyword, equals, value = header[start + len(length) + 1 : end].partition(b"=")
        if end > len(header) or not equals or not value.endswith(b"\n"):
            raise BadArchive(BROKEN)
        if keyword in COUNTS:
            said[keyword.decode()] = value[:-1].decode(errors="surrogateescape")
        is_sparse = is_sparse or keyword.startswith(b"GNU.sparse.")
        start = end
    return said, is_sparse


def _take(found: Unpacked, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
    if "/../" in f"/{member.name}/":
        raise BadArchive(CLIMBS)
    if member.islnk():
        raise BadArchive(HARD_LINK)
    whole = [part for part in member.name.split("/") if part not in ("", ".")]
    parts = "/".join(whole)[:LONGEST_NAME].split("/")[:MOST_PARTS] if whole else []
    is_beyond = parts != whole
    if found.links and any("/".join(parts[:count]) in found.links for count in range(1, len(parts))):
        raise BadArchive(BEHIND_A_LINK)
    if member.issym() and not is_beyond:
        _remember_link(found, "/".join(parts))
    # links, devices and pipes are not followed, not made and not missed
    if not member.isreg() or member.issparse() or not parts or parts[-1].startswith("._"):
        return
    if is_beyond:
        _leave_out(found, parts)
        return
    name = "/".join(parts)
    place = _place(found, name)
    if place is None:
        _leave_out(found, parts)
        return
    source = tar.extractfile(member)
    if source is None:
        return
    with place.open("wb") as target:
        shutil.copyfileobj(source, target, CHUNK)
    if place.stat().st_size != member.size:
        raise BadArchive(BROKEN)
    _enter(found, name, place)


def _remember_link(found: Unpacked, name: str) -> None:
    if name in found.links:
        return
    found.links.add(name)
    found.length_of_links += len(name)
    if len(found.links) > MOST_LINKS or found.length_of_links > LONGEST_LINKS:
        raise BadArchive(TOO_MANY)


def _place(found: Unpacked, name: str) -> Path | None:
    """Where a member is written; nowhere when the format does not know it. A name given twice is written over."""
    if name in layout.TEXTS or name in ("project.json", layout.LFS_TYPES) or layout.BUNDLE.fullmatch(name):
        return found.folder / name
    if name == "tree/project.json":
        return found.folder / "tree-project.json"
    if relation := layout.TREE_FILE.fullmatch(name):
        return found.folder / f"relation-{relation[1]}.ndjson"
    if any(pattern.fullmatch(name) for pattern in layout.CARRIED) and _is_text(name):
        known = found.carried.get(name)
        return known.place if known else found.folder / f"file-{len(found.carried)}"
    return None


def _enter(found: Unpacked, name: str, place: Path) -> None:
    if name in layout.TEXTS:
        with place.open(errors="replace") as text:
            found.texts[name] = text.read(1000)
    elif name == "project.json":
        found.legacy = place
    elif name == "tree/project.json":
        found.project = place
    elif name == layout.LFS_TYPES:
        found.lfs_types = place
    elif relation := layout.TREE_FILE.fullmatch(name):
        found.relations[relation[1]] = place
        if len(found.relations) > MOST_RELATIONS:
            raise BadArchive(TOO_MANY)
    elif layout.BUNDLE.fullmatch(name):
        found.bundles[name.removesuffix(".bundle")] = place
    else:
        found.carried[name] = Carried(name, place, place.stat().st_size)


def _leave_out(found: Unpacked, parts: list[str]) -> None:
    """Remember files that stand where files are carried along, and have names that cannot be kept."""
    if parts[0] in layout.FOLDERS and parts[-1] != ".DS_Store" and len(found.left_out) < MOST_LEFT_OUT:
        found.left_out["/".join(parts)] = None


def _is_text(name: str) -> bool:
    """Whether a name can be stored, shown on one line and written back; odd blanks are in names that people have."""
    return not any(unicodedata.category(character) in UNSAFE or character in TURNS for character in name)


@contextmanager
def _reading() -> Iterator[None]:
    """What the readers of gzip and tar raise, in one word; the disk's own errors go on."""
    try:
        yield
    except (EOFError, zlib.error, UNREADABLE, tarfile.TarError, *CONFUSED) as error:
        raise BadArchive(BROKEN) from error
    except OSError as error:
        if error.errno is None:  # how the reader of gzip says that there is something else
            raise BadArchive(BROKEN) from error
        raise
