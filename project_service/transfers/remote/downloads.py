"""Download of remote archives, and the check before it (import reference, section 6)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from project_service.kit.http.errors import BadRequest
from project_service.kit.http.fields import whole_number
from project_service.kit.security.outgoing_http.client import Client, MinimumRate, RemoteResponse, RequestFailed
from project_service.kit.security.outgoing_http.rules import Blocked, Policy

GIB = 1 << 30
MAX_FILE_BYTES = 10 * GIB
GZIP = "application/gzip"
HEAD_SECONDS = 10.0
SILENT_SECONDS = 60.0
TOTAL_SECONDS = 6 * 3600.0  # of all attempts
# slower transfers are aborted: others wait for their worker
MIN_BYTES_PER_SECOND, SLOW_SECONDS = 1 << 10, 60.0
CHUNK_BYTES = 16 << 10  # of a read; small against the minimum of a minute
ATTEMPTS = 5
FIRST_RETRY_SECONDS = 0.5
PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE, SERVER_ERROR = 206, 416, 500
CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)", re.IGNORECASE)  # RFC 9110, section 14.4

FILE_CHANGED = "The remote file has changed while it was downloaded, or another part of it came than was asked for"


def check(url: str, allowed: Policy) -> None:
    """Check a remote archive with HEAD; raises ``RemoteFileRefused`` with the first problem.

    Import reference, section 6.2.
    """
    try:
        answer = Client(allowed, read_timeout=HEAD_SECONDS, total_timeout=2 * HEAD_SECONDS).head(url)
    except (Blocked, RequestFailed) as error:
        raise RemoteFileRefused(str(error)) from error
    text = _problem(answer)
    if text is not None:
        raise RemoteFileRefused(text)


def download(url: str, path: Path, allowed: Policy, check: Callable[[], None] = lambda: None) -> None:
    """Download an archive; an interrupted download is resumed if the server sends ranges of the same file.

    It restarts if the range is of another file, begins elsewhere or is not available. ``check`` is called for each
    chunk; it may raise an exception to stop.

    Raises:
        Blocked: the address is not allowed.
        RequestFailed: the download failed, or was too slow.

    """
    deadline, pace = (
        time.monotonic() + TOTAL_SECONDS,
        MinimumRate(round(MIN_BYTES_PER_SECOND * SLOW_SECONDS), SLOW_SECONDS),
    )
    partial_file = FileDescription()  # of the part that is there
    path.unlink(missing_ok=True)
    for attempt in range(ATTEMPTS):
        seconds_left = deadline - time.monotonic()
        client = Client(allowed, read_timeout=SILENT_SECONDS, total_timeout=seconds_left, minimum_rate=pace)
        try:
            done = path.stat().st_size if partial_file.validator and path.exists() else 0
            headers = {"Accept-Encoding": "identity"}
            if done and partial_file.validator:
                headers |= {"Range": f"bytes={done}-", "If-Range": partial_file.validator}
            with client.request("GET", url, headers=headers) as answer:
                if answer.status >= SERVER_ERROR and attempt < ATTEMPTS - 1:
                    raise RequestFailed(_refused(answer))
                if done and answer.status == RANGE_NOT_SATISFIABLE:
                    partial_file = FileDescription()
                    raise RequestFailed(_refused(answer))
                if not 200 <= answer.status < 300:
                    raise PermanentFailure(_refused(answer))
                described = _describe(answer)
                if answer.status != PARTIAL_CONTENT:
                    done = 0
                elif described.start != done or not described.may_be_of(partial_file):
                    partial_file = FileDescription()
                    raise RequestFailed(FILE_CHANGED)
                partial_file = partial_file if done else described
                _receive(answer, path, done, described.size or partial_file.size, check)
            return
        except RequestFailed:
            if attempt == ATTEMPTS - 1 or pace.too_slow or time.monotonic() >= deadline:
                raise
            time.sleep(FIRST_RETRY_SECONDS * 2**attempt)
        except PermanentFailure as error:
            raise RequestFailed(str(error)) from error


class RemoteFileRefused(BadRequest):
    """The remote file, or its address, cannot be imported."""


class PermanentFailure(Exception):
    """The server refused the request, and a retry would not help."""


@dataclass(frozen=True, slots=True)
class FileDescription:
    """What a response says about its file, and the offset of its body."""

    start: int | None = 0
    size: int | None = None
    tag: str | None = None
    modified: str | None = None
    accepts_ranges: bool = False

    @property
    def validator(self) -> str | None:
        """The validator for ``If-Range``."""
        return (self.tag or self.modified) if self.accepts_ranges else None

    def may_be_of(self, other: FileDescription) -> bool:
        """Whether it can be the same file; a partial response need not repeat all values."""
        by_tag = self.tag is not None and other.tag is not None
        same = (self.tag, other.tag) if by_tag else (self.modified, other.modified)
        return all(None in both or both[0] == both[1] for both in (same, (self.size, other.size)))


def _describe(answer: RemoteResponse) -> FileDescription:
    tag, modified = answer.headers.get("ETag"), answer.headers.get("Last-Modified")
    if tag is not None and tag.startswith("W/"):
        tag = None
    if answer.status != PARTIAL_CONTENT:
        size = whole_number(answer.headers.get("Content-Length", "").strip())
        return FileDescription(0, size, tag, modified, answer.headers.get("Accept-Ranges", "").lower() == "bytes")
    part = CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
    start, size = (int(part[1]), whole_number(part[2])) if part else (None, None)
    return FileDescription(start, size, tag, modified, accepts_ranges=True)


def _receive(answer: RemoteResponse, path: Path, done: int, whole: int | None, check: Callable[[], None]) -> None:
    with path.open("ab" if done else "wb") as file:
        size = done
        for chunk in answer.iter_chunks(CHUNK_BYTES):
            check()
            size += len(chunk)
            if size > MAX_FILE_BYTES:
                raise PermanentFailure("Remote file larger than limit. (limit 10 GB)")
            file.write(chunk)
    if whole not in (None, size):
        raise RequestFailed("The answer is incomplete")


def _refused(answer: RemoteResponse) -> str:
    return f"The remote file cannot be downloaded: the answer was {answer.status}"


def _problem(answer: RemoteResponse) -> str | None:
    length = whole_number(answer.headers.get("Content-Length", "").strip())
    if not length:
        return "Missing 'ContentLength' header"
    if length > MAX_FILE_BYTES:
        return "Remote file larger than limit. (limit 10 GB)"
    kind = answer.headers.get("Content-Type")
    if not kind:
        return "Missing 'ContentType' header"
    if kind != GZIP:
        return f"Remote file content type '{kind}' not allowed. (Allowed content types: {GZIP})"
    return None
