"""Giving an archive to whoever asked for it: as a download, or by sending it somewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import IO
from urllib.parse import quote

from flask import Response, request
from werkzeug.exceptions import RequestedRangeNotSatisfiable
from werkzeug.wsgi import FileWrapper

from project_service.domain.projects import Project
from project_service.kit.http.errors import ServiceError
from project_service.kit.security.outgoing_http.client import Client, MinimumRate, RequestFailed
from project_service.kit.security.outgoing_http.rules import Blocked, Policy
from project_service.kit.storage import storage
from project_service.transfers.queries import file_of
from project_service.transfers.remote.downloads import LEAST_PER_SECOND, PIECE, SLOW_SECONDS

CHUNK = 1 << 20
BYTES = "bytes"
OPEN_SECONDS, SILENT_SECONDS, LONGEST_SECONDS = 10.0, 30.0, 6 * 3600.0


class NoExport(ServiceError):
    """There is no archive to be had."""

    status = 404


class NoSuchPart(ServiceError):
    """A range of bytes that begins behind the end."""

    status = 416

    def __init__(self, size: int) -> None:
        super().__init__("416 Requested Range Not Satisfiable", {"Content-Range": f"{BYTES} */{size}"})


def send_export(project: Project) -> Response:
    """The archive of a project as a file (export reference, section 4), or what the request wants of it.

    An archive never changes under its name: a download that broke off goes on where it ended.
    """
    export = file_of(project)
    if export is None or export.storage_name is None:
        raise NoExport("404 Not found or has expired")
    if not storage().exists(export.storage_name):
        raise NoExport("The project export file is not available yet")
    name, size = export.file_name or "export.tar.gz", storage().size(export.storage_name)
    file = storage().open(export.storage_name)
    response = Response(
        FileWrapper(file, CHUNK),
        headers={
            "Content-Type": "application/octet-stream",
            "Content-Disposition": f"attachment; filename=\"{name}\"; filename*=UTF-8''{quote(name)}",
            "Content-Transfer-Encoding": "binary",
            "Content-Length": str(size),
        },
        direct_passthrough=True,
    )
    response.call_on_close(file.close)  # also when nobody reads it, as after HEAD
    response.set_etag(hashlib.sha256(export.storage_name.encode()).hexdigest())
    try:
        response.make_conditional(request, accept_ranges=_asks_for_a_part(size), complete_length=size)
    except RequestedRangeNotSatisfiable as error:
        response.close()
        raise NoSuchPart(size) from error
    response.headers["Accept-Ranges"] = BYTES
    return response


def _asks_for_a_part(size: int) -> bool:
    """Whether the request names one range of bytes; who asks in another way gets the whole (RFC 9110, section 14.2)."""
    asked = request.range
    if request.method != "GET" or asked is None or asked.units != BYTES or len(asked.ranges) != 1:
        return False
    if request.headers.get("If-Range", "").startswith("W/"):  # which says nothing of single bytes
        return False
    return int(asked.ranges[0][0] or 0) > -size  # more than there is, from the end, is all


def upload(
    file: IO[bytes], size: int, url: str, method: str, allowed: Policy, check: Callable[[], None] = lambda: None
) -> str | None:
    """Send an archive to an address, once; what went wrong, if something did (export reference, section 5.1).

    A far side that takes next to nothing for a minute is given up. ``check`` is called with every piece and may end
    this.
    """
    pace = MinimumRate(round(LEAST_PER_SECOND * SLOW_SECONDS), SLOW_SECONDS)
    client = Client(
        allowed,
        connect_timeout=OPEN_SECONDS,
        read_timeout=SILENT_SECONDS,
        total_timeout=LONGEST_SECONDS,
        minimum_rate=pace,
    )
    headers = {"Content-Type": "application/gzip", "Content-Length": str(size)}
    try:
        with client.request(method, url, headers=headers, body=_pieces(file, pace, check)) as answer:
            if 200 <= answer.status < 300:
                return None
            return f"Error uploading the project. Code {answer.status}: {answer.reason}"
    except Blocked as error:
        return f"Error uploading the project. URL is blocked: {error}"
    except RequestFailed as error:
        return f"Error uploading the project. {error}"


def _pieces(file: IO[bytes], pace: MinimumRate, check: Callable[[], None]) -> Iterator[bytes]:
    while piece := file.read(PIECE):
        check()
        pace.count(len(piece))
        yield piece
