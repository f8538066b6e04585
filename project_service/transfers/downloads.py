"""Archives from elsewhere: what is asked before one is taken, and how it is fetched (import reference, section 6)."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from project_service.kit.errors import BadRequest
from project_service.kit.fields import whole_number
from project_service.kit.outgoing import Answer, Blocked, Client, Pace, Policy, RequestFailed

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
PARTIAL, GONE_WRONG = 206, 500


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

    A far side that sends next to nothing for a minute is given up. ``check`` is called with every piece and may end
    this. Raises ``Blocked`` and ``RequestFailed``.
    """
    deadline, pace = time.monotonic() + DOWNLOAD_SECONDS, Pace(round(LEAST_PER_SECOND * SLOW_SECONDS), SLOW_SECONDS)
    validator: str | None = None
    place.unlink(missing_ok=True)
    for attempt in range(ATTEMPTS):
        left = deadline - time.monotonic()
        client = Client(allowed, read_timeout=SILENT_SECONDS, total_timeout=left, pace=pace)
        try:
            done = place.stat().st_size if validator and place.exists() else 0
            headers = {"Accept-Encoding": "identity"}
            if done and validator:
                headers |= {"Range": f"bytes={done}-", "If-Range": validator}
            with client.request("GET", url, headers=headers) as answer:
                if answer.status >= GONE_WRONG and attempt < ATTEMPTS - 1:
                    raise RequestFailed(_refused(answer))
                if not 200 <= answer.status < 300:
                    raise Refused(_refused(answer))
                validator = _validator(answer)
                _receive(answer, place, done if answer.status == PARTIAL else 0, check)
            return
        except RequestFailed:
            if attempt == ATTEMPTS - 1 or pace.lost or time.monotonic() >= deadline:
                raise
            time.sleep(FIRST_PAUSE * 2**attempt)
        except Refused as error:
            raise RequestFailed(str(error)) from error


class Unfit(BadRequest):
    """What lies at an address, or the address itself, cannot be imported."""


class Refused(Exception):
    """The far side said no, and would say so again."""


def _receive(answer: Answer, place: Path, done: int, check: Callable[[], None]) -> None:
    expected = answer.headers.get("Content-Length", "")
    with place.open("ab" if done else "wb") as file:
        size = done
        for chunk in answer.iter_chunks(PIECE):
            check()
            size += len(chunk)
            if size > LARGEST:
                raise Refused("Remote file larger than limit. (limit 10 GB)")
            file.write(chunk)
    if whole_number(expected) not in (None, size - done):
        raise RequestFailed("The answer is incomplete")


def _validator(answer: Answer) -> str | None:
    """What tells that a later part is of the same file."""
    if answer.headers.get("Accept-Ranges", "").lower() != "bytes" and answer.status != PARTIAL:
        return None
    tag = answer.headers.get("ETag")
    if tag is not None and not tag.startswith("W/"):
        return tag
    return answer.headers.get("Last-Modified")


def _refused(answer: Answer) -> str:
    return f"The remote file cannot be downloaded: the answer was {answer.status}"


def _problem(answer: Answer) -> str | None:
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
