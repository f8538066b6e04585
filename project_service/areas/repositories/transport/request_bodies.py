"""Bodies of git's requests, which may be compressed and are read as they arrive."""

from __future__ import annotations

import io
from typing import IO

from flask import Request
from werkzeug.wsgi import get_input_stream

from project_service.kit.gzip_reading import GzipReader

GZIP = ("gzip", "x-gzip")
CHUNK_BYTES = 256 << 10


def body_of(request: Request) -> IO[bytes]:
    """Return the body of a request as a stream, decompressed.

    It ends with the body, but the limit for bodies of forms does not apply to a push.
    """
    stream = get_input_stream(request.environ)
    if request.headers.get("Content-Encoding", "").lower() in GZIP:
        return io.BufferedReader(GzipReader(stream), CHUNK_BYTES)
    return stream
