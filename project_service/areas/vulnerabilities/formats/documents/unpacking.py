"""Files as they are uploaded: gzip is unpacked and UTF-16 is converted, by the first bytes of the file."""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.kit.gzip_reading import BadGzip, GzipReader

MAX_REPORT_BYTES = 512 << 20
BLOCK_BYTES = 1 << 20
GZIP = b"\x1f\x8b"
UTF16 = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE
UNREADABLE = "JSON parsing failed"
TOO_LARGE = f"the file is larger than {MAX_REPORT_BYTES >> 20} MB when unpacked"


@contextmanager
def unpacked(file: IO[bytes], spool_dir: Path | None = None) -> Iterator[IO[bytes]]:
    """Return a file in UTF-8 with the contents of an uploaded one: that one, or a temporary one in ``spool_dir``.

    Raises:
        BrokenReport: it cannot be unpacked or converted, or is larger than ``MAX_REPORT_BYTES`` then.

    """
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
def _in_utf8(file: IO[bytes], spool_dir: Path | None) -> Iterator[IO[bytes]]:
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


def _beginning(file: IO[bytes]) -> bytes:
    file.seek(0)
    first = file.read(2)
    file.seek(0)
    return first


def _copy(source: GzipReader, target: IO[bytes]) -> None:
    size = 0
    while block := source.read(BLOCK_BYTES):
        size += len(block)
        if size > MAX_REPORT_BYTES:
            raise BrokenReport(UNREADABLE, TOO_LARGE)
        target.write(block)
