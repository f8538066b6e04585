"""Requests of ``report check`` and ``report export`` to a server: the standard library, urllib3 and no application."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import IO, Any
from urllib.parse import quote, urlencode

import click
import orjson
import urllib3

TIMEOUT = urllib3.Timeout(connect=30, read=600)  # a large report is read completely before it is answered
CHUNK_BYTES = 1 << 20
MAX_MESSAGE_LENGTH = 300
MAX_REFUSAL_BYTES = 1 << 16
MAX_WAIT_SECONDS = 120.0
RETRY_WAITS = (2.0, 4.0, 8.0, 16.0)  # seconds, before the second attempt and those after it


class CannotJudge(click.ClickException):
    """The report could not be judged; the text has no secret."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the error in one line."""
        click.echo(f"project-service: {self.format_message()}", file=file, err=file is None)


def upload(url: str, token: str | None, project: str, file: IO[bytes], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Send a report; return the answer, which has a gate.

    Raises:
        CannotJudge: there is no such answer.

    """
    token = _checked(url, token)
    address = f"{url.rstrip('/')}/api/v4/projects/{quote(project, safe='')}/security_reports"
    with seekable_file(file) as report:
        for waited in RETRY_WAITS:
            answer = _sent(url, address, token, report, fields)
            wait = _wait_before_retry(answer, waited)
            if wait is None:
                return _answer_of(url, answer)
            click.echo(f"project-service: {url} answers {answer.status}; the next attempt is in {wait:.0f} s", err=True)
            time.sleep(wait)
        return _answer_of(url, _sent(url, address, token, report, fields))


def download(url: str, token: str | None, project: str, parameters: Mapping[str, str | None]) -> Iterator[bytes]:
    """Yield an export of the findings of a project.

    Raises:
        click.ClickException: the server refuses, or ends before the export does.

    """
    token = _checked(url, token)
    query = urlencode({name: value for name, value in parameters.items() if value})
    address = f"{url.rstrip('/')}/api/v4/projects/{quote(project, safe='')}/tracked_findings/export?{query}"
    try:
        answer = _requested(url, "GET", address, token, preload_content=False)
        if answer.status != HTTPStatus.OK:
            document = _document(answer.read(MAX_REFUSAL_BYTES))
            raise CannotJudge(f"{url} refuses: {answer.status} {_reason(document, answer.status)}".rstrip())
        yield from answer.stream(CHUNK_BYTES)
    except CannotJudge as error:
        raise click.ClickException(error.format_message()) from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise click.ClickException(f"{url} ended before the export did ({type(error).__name__})") from error


def _checked(url: str, token: str | None) -> str:
    if not url.startswith(("http://", "https://")):
        raise click.BadParameter("has to begin with https:// or http://", param_hint="--url")
    if not token:
        raise click.UsageError("--url needs an access token, best in the variable PROJECT_SERVICE_TOKEN")
    return token


def _sent(url: str, address: str, token: str, report: IO[bytes], fields: Mapping[str, Any]) -> urllib3.BaseHTTPResponse:
    body, headers = _multipart(report, fields)
    return _requested(url, "POST", address, token, body=body, headers=headers)


def _requested(
    url: str, method: str, address: str, token: str, headers: Mapping[str, str] | None = None, **options: Any
) -> urllib3.BaseHTTPResponse:
    try:
        # redirects are not followed: they would send the token to another server
        return urllib3.request(
            *(method, address),
            headers={**(headers or {}), "PRIVATE-TOKEN": token},
            redirect=False,
            retries=False,
            timeout=TIMEOUT,
            **options,
        )
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise CannotJudge(f"{url} cannot be reached ({type(error).__name__})") from error
    except ValueError as error:  # a token or an address with characters that no header or host has
        raise CannotJudge(f"the request cannot be made ({error})") from None


def _wait_before_retry(answer: urllib3.BaseHTTPResponse, usual: float) -> float | None:
    """Return the seconds to wait if the server has stored nothing because it is busy, else ``None``.

    That is what it asks for in ``Retry-After``, ``usual`` without it; more than ``MAX_WAIT_SECONDS`` is too long.
    """
    if answer.status not in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        return None
    try:
        asked = urllib3.Retry().get_retry_after(answer)
    except urllib3.exceptions.InvalidHeader:
        asked = None
    wait = usual if asked is None else asked
    return wait if wait <= MAX_WAIT_SECONDS else None


@contextmanager
def seekable_file(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """A file whose size can be found out: a pipe is copied to a temporary file."""
    if file.seekable():
        yield file
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(file, copy)
        yield copy


def _multipart(file: IO[bytes], fields: Mapping[str, Any]) -> tuple[Iterator[bytes], dict[str, str]]:
    """Return the body of a form with a file, which is read while it is sent, and its headers."""
    boundary = secrets.token_hex(16)
    values = {name: str(value).lower() if isinstance(value, bool) else value for name, value in fields.items()}
    head = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in values.items()
        if value is not None
    )
    disposition = 'Content-Disposition: form-data; name="file"; filename="report"'
    start = f"{head}--{boundary}\r\n{disposition}\r\nContent-Type: application/octet-stream\r\n\r\n".encode()
    end = f"\r\n--{boundary}--\r\n".encode()
    size = file.seek(0, 2)
    file.seek(0)

    def body() -> Iterator[bytes]:
        yield start
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
        yield end

    content_type = f"multipart/form-data; boundary={boundary}"
    return body(), {"Content-Type": content_type, "Content-Length": str(len(start) + size + len(end))}


def _answer_of(url: str, answer: urllib3.BaseHTTPResponse) -> dict[str, Any]:
    document = _document(answer.data)
    if answer.status in (HTTPStatus.OK, HTTPStatus.CREATED):
        if isinstance(document, dict) and isinstance(document.get("gate"), dict):
            return document
        raise CannotJudge(f"{url} is no Project Service with a quality gate")
    raise CannotJudge(f"{url} refuses: {answer.status} {_reason(document, answer.status)}".rstrip())


def _document(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except ValueError:
        return None


def _reason(found: Any, status: int) -> str:
    """Return message, pointer and reason of a refusal in one line."""
    if not isinstance(found, dict):
        return ""
    parts = (found.get("message") or found.get("error"), found.get("pointer"), found.get("reason"))
    line = " ".join(" ".join(_text(part).split()) for part in parts if part)
    return line.removeprefix(str(status)).strip()[:MAX_MESSAGE_LENGTH]


def _text(part: Any) -> str:
    if isinstance(part, dict):
        return "; ".join(f"{name} {_text(value)}" for name, value in part.items())
    return ", ".join(map(str, part)) if isinstance(part, list) else str(part)
