"""A small WSGI application, to look at the web server alone."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

BIG = 64 * 1024 * 1024


def note(what: str) -> None:
    """Leave a mark beside the list of uploads."""
    Path(os.environ["UPLOADS"]).with_name(what).touch()


def big() -> Iterator[bytes]:
    """A large body; whether anybody lost patience with its client is noted."""
    try:
        for _ in range(BIG >> 20):
            yield bytes(1 << 20)
    except GeneratorExit:
        note("left")
        raise


def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Tell what arrived; ``/refuse`` without reading the body, ``/big`` and ``/slow`` as they say.

    ``/again`` reads it for somebody who is to read it once more.
    """
    path = environ["PATH_INFO"]
    if path == "/big":
        start_response("200 OK", [("Content-Type", "application/octet-stream"), ("Content-Length", str(BIG))])
        return big()
    if path == "/slow":
        note("begun")
        time.sleep(1)
    if path == "/again":
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read())
    status, read = "200 OK", 0
    if path == "/refuse":
        status = "401 Unauthorized"
    else:
        while data := environ["wsgi.input"].read(65536):
            read += len(data)
    if path == "/upload":
        with open(os.environ["UPLOADS"], "a") as uploads:
            uploads.write(f"{read}\n")
    told = {"raw": environ.get("RAW_URI"), "read": read, "scheme": environ["wsgi.url_scheme"]} | {"pid": os.getpid()}
    body = json.dumps(told).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
