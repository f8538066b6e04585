"""A small WSGI application, to look at the web server alone."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from project_service.kit.http.clients.admission import PlainAdmission, RequestSender, Work
from project_service.kit.http.clients.proxies import network_of

BIG = 64 * 1024 * 1024


def note(what: str) -> None:
    """Leave a mark beside the list of uploads."""
    Path(os.environ["UPLOADS"]).with_name(what).touch()


def big(size: int) -> Iterator[bytes]:
    """A large body; a mark is left if it is closed before its end."""
    try:
        for _ in range(size >> 20):
            yield bytes(1 << 20)
    except GeneratorExit:
        note("left")
        raise


def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Return what arrived; ``/refuse`` without reading the body, ``/big?BYTES`` and ``/slow`` as they say.

    ``/again`` reads the body into memory first.
    """
    path = environ["PATH_INFO"]
    if path == "/big":
        size = int(environ["QUERY_STRING"] or BIG)
        start_response("200 OK", [("Content-Type", "application/octet-stream"), ("Content-Length", str(size))])
        return big(size)
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
    forwarded = environ.get("HTTP_X_FORWARDED_FOR")
    told = (
        {"forwarded": forwarded}
        | {"raw": environ.get("RAW_URI"), "read": read, "scheme": environ["wsgi.url_scheme"]}
        | {"pid": os.getpid()}
    )
    body = json.dumps(told).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


class Admission(PlainAdmission):
    """Reads the address, the credential and the kind of work from headers of the test."""

    def work_of(self, environ: dict[str, Any]) -> Work:
        """Return the kind that ``X-Kind`` names."""
        usual = super().work_of(environ)
        is_long = environ["PATH_INFO"] == "/big"
        return replace(usual, kind=environ.get("HTTP_X_KIND", usual.kind), is_long=is_long)

    def sender_of(self, environ: dict[str, Any]) -> RequestSender:
        """Return the address and the credential that headers name."""
        address = network_of(environ.get("HTTP_X_CLIENT", "127.0.0.1"), counts_loopback=False)
        return RequestSender(environ.get("HTTP_X_CREDENTIAL"), address)


# what the web server looks up: where bodies may be stored, and how many a client may send at the same time
vars(app).update(
    spool_dir=str(Path(os.environ["UPLOADS"]).parent), admission=Admission(), max_waiting_bodies_per_client=3
)
