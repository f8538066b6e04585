"""JSON arrays as responses: large ones are stored in a file until they are sent, so that none stays in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

from flask import Response, request
from werkzeug.wsgi import wrap_file

MAX_BYTES_IN_MEMORY = 1 << 20
CHUNK_BYTES = 256 << 10


def list_response(rows: Iterable[bytes], status: int, headers: Mapping[str, str], directory: Path) -> Response:
    """Return the array of some JSON texts. ``directory`` is where a large one is stored, without a name."""
    file = _spool(directory)
    try:
        digest = _write(rows, file)
        size = file.tell()
        file.seek(0)
        if size <= MAX_BYTES_IN_MEMORY:
            with file:
                return Response(file.read(), status, headers, mimetype="application/json")
    except BaseException:
        file.close()
        raise
    body = wrap_file(request.environ, file, CHUNK_BYTES)  # closes the file at its end
    response = Response(body, status, headers, mimetype="application/json")
    response.content_length = size
    response.set_etag(digest, weak=True)
    return response


def _spool(directory: Path) -> IO[bytes]:
    return SpooledTemporaryFile(MAX_BYTES_IN_MEMORY, dir=str(directory))


def _write(rows: Iterable[bytes], file: IO[bytes]) -> str:
    """Write the array and return a digest of it."""
    digest = hashlib.sha256()
    separator = b"["
    for row in rows:
        for text in (separator, row):
            file.write(text)
            digest.update(text)
        separator = b","
    file.write(b"]" if separator == b"," else b"[]")
    return digest.hexdigest()
