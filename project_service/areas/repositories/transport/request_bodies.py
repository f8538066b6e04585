"""Bodies of git's requests, which may be compressed and are read as they arrive."""

from __future__ import annotations

import io
import zlib
from typing import IO, Any

from flask import Request
from werkzeug.wsgi import get_input_stream

GZIP = ("gzip", "x-gzip")
GZIP_WINDOW_BITS = 31  # zlib: with the header and checksum of gzip
CHUNK_BYTES = 256 << 10


class BadBody(Exception):
    """A body that cannot be decompressed."""


class GzipReader(io.RawIOBase):
    """Decompress a stream piece by piece; a small body that becomes a large one takes no memory."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._inflater = zlib.decompressobj(GZIP_WINDOW_BITS)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._inflater.eof:
            data = self._inflater.unconsumed_tail or self._source.read(CHUNK_BYTES)
            if not data:
                raise BadBody("the compressed body ends too early")
            try:
                found = self._inflater.decompress(data, len(buffer))
            except zlib.error as error:
                raise BadBody("the body is not compressed with gzip") from error
            if found:
                buffer[: len(found)] = found
                return len(found)
        return 0


def body_of(request: Request) -> IO[bytes]:
    """Return the body of a request as a stream, decompressed.

    It ends with the body, but the limit for bodies of forms does not apply to a push.
    """
    stream = get_input_stream(request.environ)
    if request.headers.get("Content-Encoding", "").lower() in GZIP:
        return io.BufferedReader(GzipReader(stream), CHUNK_BYTES)
    return stream
