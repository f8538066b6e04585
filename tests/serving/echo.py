"""A small WSGI application, to look at the web server alone."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from typing import Any

BIG = 64 * 1024 * 1024


def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Tell what arrived; ``/refuse`` without reading the body, ``/big`` and ``/slow`` as they say."""
    path = environ["PATH_INFO"]
    if path == "/big":
        start_response("200 OK", [("Content-Type", "application/octet-stream"), ("Content-Length", str(BIG))])
        return (bytes(1 << 20) for _ in range(BIG >> 20))
    if path == "/slow":
        time.sleep(1)
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
