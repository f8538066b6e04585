"""Archives from elsewhere: what is asked before one is taken, and how it is fetched (import reference, section 6)."""

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
LARGEST = 10 * GIB
GZIP = "application/gzip"
HEAD_SECONDS = 10.0
SILENT_SECONDS = 60.0
DOWNLOAD_SECONDS = 6 * 3600.0  # however many attempts there are
# everybody's imports and exports wait for this one: what is slower than that is as good as nothing
LEAST_PER_SECOND, SLOW_SECONDS = 1 << 10, 60.0
PIECE = 16 << 10  # bytes that are waited for, a small part of what a minute has to bring
ATTEMPTS = 5
FIRST_PAUSE = 0.5
PARTIAL, NO_SUCH_PART, GONE_WRONG = 206, 416, 500
CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)", re.IGNORECASE)  # RFC 9110, section 14.4

OF_ANOTHER = "The remote file has changed while it was downloaded, or another part of it came than was asked for"


def check(url: str, allowed: Policy) -> None:
    """Ask the far side what it would send; ``Unfit`` with the first thing that is wrong (section 6.2)."""
    try:
        answer = Client(allowed, read_timeout=HEAD_SECONDS, total_timeout=2 * HEAD_SECONDS).head(url)
    except (Blocked, RequestFailed) as error:
        raise Unfit(str(error)) from error
    text = _problem(answer)
    if text is not None:
        raise Unfit(text)


def download(url: str, place: Path, allowed: Policy, check: Callable[[], None] = lambda: None) -> None:
    """Fetch an archive; one that breaks off is asked for the rest, when the far side sends parts of the same file.

    It is fetched anew when that part is of another file, begins elsewhere, or is not to be had. A far side that sends
    next to nothing for a minute is given up. ``check`` is called with every piece and may end this. Raises ``Blocked``
    and ``RequestFailed``.
    """
    deadline, pace = (
        time.monotonic() + DOWNLOAD_SECONDS,
        MinimumRate(round(LEAST_PER_SECOND * SLOW_SECONDS), SLOW_SECONDS),
    )
    known = Told()  # of what is there already
    place.unlink(missing_ok=True)
    for attempt in range(ATTEMPTS):
        left = deadline - time.monotonic()
        client = Client(allowed, read_timeout=SILENT_SECONDS, total_timeout=left, minimum_rate=pace)
        try:
            done = place.stat().st_size if known.validator and place.exists() else 0
            headers = {"Accept-Encoding": "identity"}
            if done and known.validator:
                headers |= {"Range": f"bytes={done}-", "If-Range": known.validator}
            with client.request("GET", url, headers=headers) as answer:
                if answer.status >= GONE_WRONG and attempt < ATTEMPTS - 1:
                    raise RequestFailed(_refused(answer))
                if done and answer.status == NO_SUCH_PART:
                    known = Told()
                    raise RequestFailed(_refused(answer))
                if not 200 <= answer.status < 300:
                    raise Refused(_refused(answer))
                told = _told(answer)
                if answer.status != PARTIAL:
                    done = 0
                elif told.start != done or not told.may_be_of(known):
                    known = Told()
                    raise RequestFailed(OF_ANOTHER)
                known = known if done else told
                _receive(answer, place, done, told.size or known.size, check)
            return
        except RequestFailed:
            if attempt == ATTEMPTS - 1 or pace.too_slow or time.monotonic() >= deadline:
                raise
            time.sleep(FIRST_PAUSE * 2**attempt)
        except Refused as error:
            raise RequestFailed(str(error)) from error


class Unfit(BadRequest):
    """What lies at an address, or the address itself, cannot be imported."""


class Refused(Exception):
    """The far side said no, and would say so again."""


@dataclass(frozen=True, slots=True)
class Told:
    """What an answer tells of its file, and where in it the body begins."""

    start: int | None = 0
    size: int | None = None
    tag: str | None = None
    modified: str | None = None
    comes_in_parts: bool = False

    @property
    def validator(self) -> str | None:
        """What tells that a later part is of the same file."""
        return (self.tag or self.modified) if self.comes_in_parts else None

    def may_be_of(self, other: Told) -> bool:
        """Whether it contradicts nothing that was told before; a part need not repeat all of that."""
        by_tag = self.tag is not None and other.tag is not None
        same = (self.tag, other.tag) if by_tag else (self.modified, other.modified)
        return all(None in both or both[0] == both[1] for both in (same, (self.size, other.size)))


def _told(answer: RemoteResponse) -> Told:
    tag, modified = answer.headers.get("ETag"), answer.headers.get("Last-Modified")
    if tag is not None and tag.startswith("W/"):
        tag = None
    if answer.status != PARTIAL:
        size = whole_number(answer.headers.get("Content-Length", "").strip())
        return Told(0, size, tag, modified, answer.headers.get("Accept-Ranges", "").lower() == "bytes")
    part = CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
    start, size = (int(part[1]), whole_number(part[2])) if part else (None, None)
    return Told(start, size, tag, modified, comes_in_parts=True)


def _receive(answer: RemoteResponse, place: Path, done: int, whole: int | None, check: Callable[[], None]) -> None:
    with place.open("ab" if done else "wb") as file:
        size = done
        for chunk in answer.iter_chunks(PIECE):
            check()
            size += len(chunk)
            if size > LARGEST:
                raise Refused("Remote file larger than limit. (limit 10 GB)")
            file.write(chunk)
    if whole not in (None, size):
        raise RequestFailed("The answer is incomplete")


def _refused(answer: RemoteResponse) -> str:
    return f"The remote file cannot be downloaded: the answer was {answer.status}"


def _problem(answer: RemoteResponse) -> str | None:
    length = whole_number(answer.headers.get("Content-Length", "").strip())
    if not length:
        return "Missing 'ContentLength' header"
    if length > LARGEST:
        return "Remote file larger than limit. (limit 10 GB)"
    kind = answer.headers.get("Content-Type")
    if not kind:
        return "Missing 'ContentType' header"
    if kind != GZIP:
        return f"Remote file content type '{kind}' not allowed. (Allowed content types: {GZIP})"
    return None
