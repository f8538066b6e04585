"""Reading of data that is compressed with gzip (RFC 1952) as a stream: a body of any size takes little memory."""

from __future__ import annotations

import io
import zlib
from typing import IO, Any

CHUNK_BYTES = 64 << 10
WINDOW_BITS = 31  # zlib: with the header and checksum of gzip
MAX_MEMBERS = 10_000  # empty ones take processor time and become nothing


class BadGzip(ValueError):
    """Data that are not gzip, end early, or have too many members."""


class GzipReader(io.RawIOBase):
    """Decompress a stream, of one or more members, as it is read.

    How much may be read is up to the reader: a small body can become a thousand times as large. ``gzip.GzipFile`` does
    not limit the number of members.
    """

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._member: Any = None
        self._members = 0
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read decompressed bytes.

        Raises:
            BadGzip: the data are invalid.

        """
        while data := self._rest or self._source.read(CHUNK_BYTES):
            self._rest = b""
            if self._member is None and not (data := self._begin_member(data)):
                continue
            try:
                piece = self._member.decompress(data, len(buffer))
            except zlib.error as error:
                raise BadGzip("the data are not compressed with gzip") from error
            if self._member.eof:
                self._rest, self._member = self._member.unused_data, None
            else:
                self._rest = self._member.unconsumed_tail
            if piece:
                buffer[: len(piece)] = piece
                return len(piece)
        if self._member is not None or not self._members:
            raise BadGzip("the compressed data end too early")
        return 0

    def _begin_member(self, data: bytes) -> bytes:
        """Begin the next member; return the data without zeros, which may fill what is behind the last one."""
        if self._members:
            data = data.lstrip(b"\0")
        if data:
            self._members += 1
            if self._members > MAX_MEMBERS:
                raise BadGzip(f"the compressed data have more than {MAX_MEMBERS} members")
            self._member = zlib.decompressobj(WINDOW_BITS)
        return data
