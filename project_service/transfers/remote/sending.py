"""Delivery of archives: as a download, or by an upload to a remote server."""

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
from project_service.transfers.remote.downloads import CHUNK_BYTES, MIN_BYTES_PER_SECOND, SLOW_SECONDS

CHUNK = 1 << 20
BYTES = "bytes"
CONNECT_SECONDS, SILENT_SECONDS, TOTAL_SECONDS = 10.0, 30.0, 6 * 3600.0


class NoExport(ServiceError):
    """There is no archive to download."""

    status = 404


class RangeNotSatisfiable(ServiceError):
    """The range begins behind the end of the file."""

    status = 416

    def __init__(self, size: int) -> None:
        super().__init__("416 Requested Range Not Satisfiable", {"Content-Range": f"{BYTES} */{size}"})


def send_export(project: Project) -> Response:
    """Return the archive of a project, or the requested range of it (export reference, section 4).

    The content of a stored archive never changes, so interrupted downloads can be resumed.
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
    response.call_on_close(file.close)  # also without a body, after HEAD
    response.set_etag(hashlib.sha256(export.storage_name.encode()).hexdigest())
    try:
        response.make_conditional(request, accept_ranges=_has_single_range(size), complete_length=size)
    except RequestedRangeNotSatisfiable as error:
        response.close()
        raise RangeNotSatisfiable(size) from error
    response.headers["Accept-Ranges"] = BYTES
    return response


def _has_single_range(size: int) -> bool:
    """Whether the request has one valid range; otherwise the whole file is sent (RFC 9110, section 14.2)."""
    ranges = request.range
    if request.method != "GET" or ranges is None or ranges.units != BYTES or len(ranges.ranges) != 1:
        return False
    if request.headers.get("If-Range", "").startswith("W/"):  # weak validators do not match byte ranges
        return False
    return int(ranges.ranges[0][0] or 0) > -size  # a suffix longer than the file is all of it


def upload(
    file: IO[bytes], size: int, url: str, method: str, allowed: Policy, check: Callable[[], None] = lambda: None
) -> str | None:
    """Upload an archive, in one attempt; return the problem, if there is one (export reference, section 5.1).

    ``check`` is called for each chunk; it may raise an exception to stop.
    """
    pace = MinimumRate(round(MIN_BYTES_PER_SECOND * SLOW_SECONDS), SLOW_SECONDS)
    client = Client(
        allowed,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=SILENT_SECONDS,
        total_timeout=TOTAL_SECONDS,
        minimum_rate=pace,
    )
    headers = {"Content-Type": "application/gzip", "Content-Length": str(size)}
    try:
        with client.request(method, url, headers=headers, body=_chunks(file, pace, check)) as answer:
            if 200 <= answer.status < 300:
                return None
            return f"Error uploading the project. Code {answer.status}: {answer.reason}"
    except Blocked as error:
        return f"Error uploading the project. URL is blocked: {error}"
    except RequestFailed as error:
        return f"Error uploading the project. {error}"


def _chunks(file: IO[bytes], pace: MinimumRate, check: Callable[[], None]) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        check()
        pace.count(len(chunk))
        yield chunk
