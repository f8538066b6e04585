"""Files as they are uploaded: by their first bytes gzip and ZIP archives are unpacked, and UTF-16 is converted."""

from __future__ import annotations

import codecs
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.kit.gzip_reading import BadGzip, GzipReader
from project_service.kit.zip_directories import LongDirectory, NoDirectory, check_directory

MAX_REPORT_BYTES = 512 << 20
BLOCK_BYTES = 1 << 20
GZIP = b"\x1f\x8b"
ZIP = b"PK"  # no JSON begins like that
MAX_MEMBERS = 1_000  # of an archive
MAX_NAME_LENGTH = 255
IS_ENCRYPTED = 0x1
MAX_DIRECTORY_BYTES = 1 << 20
NOT_ZIP = "the file is not a valid ZIP archive"
MAX_NAMED_MEMBERS = 10  # in a message
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
UTF16 = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE
UNREADABLE = "JSON parsing failed"
# first bytes of what is left when a file is unpacked, or was never packed, and why it is refused
NOT_TAKEN = (
    (GZIP, "the file is compressed more than once: compress it once with gzip"),
    (b"PK\3\4", "the file is compressed more than once: compress it once with gzip"),
    (b"BZh", "the file is compressed with bzip2: use gzip"),
    (b"\xfd7zXZ", "the file is compressed with xz: use gzip"),
    (b"\x28\xb5\x2f\xfd", "the file is compressed with zstd: use gzip"),
    (codecs.BOM_UTF32_LE, "the file is in UTF-32: write UTF-8"),
    (codecs.BOM_UTF32_BE, "the file is in UTF-32: write UTF-8"),
)
TAR_MARK, TAR_MARK_OFFSET = b"ustar", 257
TOO_LARGE = f"the file is larger than {MAX_REPORT_BYTES >> 20} MB when unpacked"


@contextmanager
def unpacked(file: IO[bytes], spool_dir: Path | None = None) -> Iterator[IO[bytes]]:
    """Return a file in UTF-8 with the contents of an uploaded one: that one, or a temporary one in ``spool_dir``.

    Raises:
        BrokenReport: it cannot be unpacked or converted, or is larger than ``MAX_REPORT_BYTES`` then.

    """
    if _beginning(file) == ZIP:
        with _in_archive(file, spool_dir) as plain, _in_utf8(plain, spool_dir) as converted:
            yield converted
        return
    if _beginning(file) != GZIP:
        with _in_utf8(file, spool_dir) as converted:
            yield converted
        return
    with tempfile.TemporaryFile(dir=spool_dir) as plain:
        try:
            _copy(GzipReader(file), plain)
        except BadGzip as error:
            raise BrokenReport(UNREADABLE, "the file is not valid gzip") from error
        with _in_utf8(plain, spool_dir) as converted:
            yield converted


@contextmanager
def _in_archive(file: IO[bytes], spool_dir: Path | None) -> Iterator[IO[bytes]]:
    """Return the only file of a ZIP archive, as CI systems pack what a job leaves."""
    _refuse_long_directory(file)
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise BrokenReport(UNREADABLE, NOT_ZIP) from error
    with archive, tempfile.TemporaryFile(dir=spool_dir) as plain:
        member = _only_member(archive)
        try:
            with archive.open(member) as source:
                _copy(source, plain)
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as error:
            raise BrokenReport(UNREADABLE, NOT_ZIP) from error
        yield plain


def _refuse_long_directory(file: IO[bytes]) -> None:
    """Refuse an archive whose directory is long, before it is read into memory."""
    try:
        check_directory(file, max_files=MAX_MEMBERS, max_bytes=MAX_DIRECTORY_BYTES)
    except NoDirectory as error:
        raise BrokenReport(UNREADABLE, NOT_ZIP) from error
    except LongDirectory as error:
        reason = "the ZIP archive has too many files: it must have exactly one, the report"
        raise BrokenReport(UNREADABLE, reason) from error


def _only_member(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    members = [
        member for member in archive.infolist() if not member.is_dir() and not member.filename.startswith("__MACOSX/")
    ]
    if len(members) != 1:
        names = ", ".join(member.filename[:MAX_NAME_LENGTH] for member in members[:MAX_NAMED_MEMBERS])
        more = f" and {len(members) - MAX_NAMED_MEMBERS} more" if len(members) > MAX_NAMED_MEMBERS else ""
        content = f"{len(members)} files ({names}{more})" if members else "no file"
        raise BrokenReport(UNREADABLE, f"the ZIP archive has {content}: it must have exactly one, the report")
    if members[0].flag_bits & IS_ENCRYPTED or members[0].compress_type not in METHODS:
        raise BrokenReport(UNREADABLE, "the file in the ZIP archive is encrypted or compressed in an unknown way")
    return members[0]


@contextmanager
def _in_utf8(file: IO[bytes], spool_dir: Path | None) -> Iterator[IO[bytes]]:
    _refuse_binary(file)
    if _beginning(file) not in UTF16:
        file.seek(0)
        yield file
        return
    with tempfile.TemporaryFile(dir=spool_dir) as plain:
        decoder = codecs.getincrementaldecoder("utf-16")()
        try:
            while block := file.read(BLOCK_BYTES):
                plain.write(decoder.decode(block).encode())
            plain.write(decoder.decode(b"", final=True).encode())
        except UnicodeError as error:
            raise BrokenReport(UNREADABLE, "a text is not UTF-16") from error
        plain.seek(0)
        yield plain


def _refuse_binary(file: IO[bytes]) -> None:
    """Refuse archives and encodings that are not taken, by their first bytes: an error of the parser would not help.

    Raises:
        BrokenReport: it is such a file.

    """
    file.seek(0)
    beginning = file.read(TAR_MARK_OFFSET + len(TAR_MARK))
    reason = next((text for first, text in NOT_TAKEN if beginning.startswith(first)), "")
    if not reason and beginning[TAR_MARK_OFFSET:] == TAR_MARK:
        reason = "the file is a tar archive: upload the report itself"
    elif not reason and b"\0" in beginning[:2]:
        reason = "the file is not in UTF-8: write UTF-8, or UTF-16 with a byte order mark"
    if reason:
        raise BrokenReport(UNREADABLE, reason)


def _beginning(file: IO[bytes]) -> bytes:
    file.seek(0)
    first = file.read(2)
    file.seek(0)
    return first


def _copy(source: IO[bytes] | GzipReader, target: IO[bytes]) -> None:
    size = 0
    while block := source.read(BLOCK_BYTES):
        size += len(block)
        if size > MAX_REPORT_BYTES:
            raise BrokenReport(UNREADABLE, TOO_LARGE)
        target.write(block)
