"""The adapter between the web server and the application, called without a server."""

from __future__ import annotations

import asyncio
import errno
import functools
import itertools
import json
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from project_service.kit.concurrency import ShareLimits
from project_service.kit.http.clients.admission import CODE, PlainAdmission, RequestSender, Work
from project_service.runtime import request_bodies
from project_service.runtime.wsgi_adapter import RUNNING, WAITING, WsgiAdapter


@functools.cache
def server_loop() -> asyncio.AbstractEventLoop:
    """The event loop of all tests, in a thread."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Return the environment as text."""
    told = {name: value for name, value in environ.items() if isinstance(value, str)}
    body = json.dumps(told | {"body": environ["wsgi.input"].read().decode()}).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def call(
    adapter: WsgiAdapter,
    body: bytes = b"",
    path: bytes = b"/",
    query: bytes = b"",
    headers: Iterable[Any] = (),
    *,
    method: str = "POST",
) -> tuple[int, dict[str, Any]]:
    """Send a request and return status and parsed body."""
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": method,
        "http_version": "1.1",
        "scheme": "http",
        "raw_path": path,
        "query_string": query,
        "client": ("192.0.2.1", 1000),
        "server": ("192.0.2.2", 80),
        "headers": [(b"content-length", str(len(body)).encode()), *headers],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run_coroutine_threadsafe(adapter(scope, receive, send), server_loop()).result()
    text = b"".join(message["body"] for message in sent[1:])
    return sent[0]["status"], json.loads(text) if text.startswith(b"{") else {"message": text.decode()}


def test_the_wsgi_environment_matches_the_request() -> None:
    repeated = [
        (b"x-a", b"1"),
        (b"x-a", b"2"),
        (b"cookie", b"a=b"),
        (b"cookie", b"c=d"),
        (b"content-type", b"text/plain"),
    ]
    status, environ = call(WsgiAdapter(application), b"hello", b"/a%2Fb/%C3%A9", b"c=%2F", repeated)

    assert (status, environ["body"], environ["CONTENT_LENGTH"], environ["CONTENT_TYPE"]) == (
        200,
        "hello",
        "5",
        "text/plain",
    )
    assert (environ["RAW_URI"], environ["PATH_INFO"]) == ("/a%2Fb/%C3%A9?c=%2F", "/a/b/\xc3\xa9")
    assert (environ["REMOTE_ADDR"], environ["SERVER_NAME"], environ["SERVER_PORT"]) == ("192.0.2.1", "192.0.2.2", "80")
    assert (environ["HTTP_X_A"], environ["HTTP_COOKIE"]) == ("1,2", "a=b; c=d")


def test_the_total_size_of_waiting_bodies_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_bodies, "STORED", ShareLimits(1000, 1000, 1000, 1000, 1000))
    adapter = WsgiAdapter(application)

    assert call(adapter, bytes(1001), b"/api/v4/projects")[0] == 503
    assert call(adapter, bytes(1000))[0] == 200


def test_headers_with_underscores_are_dropped() -> None:
    headers = [(b"x_forwarded_for", b"192.0.2.9"), (b"content_length", b"9"), (b"x-real", b"1")]
    environ = call(WsgiAdapter(application), headers=headers)[1]

    assert [environ.get(name) for name in ("HTTP_X_FORWARDED_FOR", "CONTENT_LENGTH", "HTTP_X_REAL")] == [None, "0", "1"]


def test_a_body_is_refused_when_the_disk_is_full(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class FullFile:
        def write(self, _data: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        def __enter__(self) -> FullFile:
            return self

        def __exit__(self, *_error: object) -> None: ...

    monkeypatch.setattr(request_bodies.tempfile, "SpooledTemporaryFile", lambda *_, **__: FullFile())

    status, body = call(WsgiAdapter(application, spool_dir=str(tmp_path)), bytes(1000))

    assert (status, body["message"][:24]) == (507, "507 Insufficient Storage")


def test_errors_of_the_application_reach_the_server() -> None:
    def fail(_environ: Any, _start_response: Any) -> Iterable[bytes]:
        raise LookupError

    with pytest.raises(LookupError):
        call(WsgiAdapter(fail))


class ByPath(PlainAdmission):
    """The kind of work and the credential are the parts of the path."""

    def work_of(self, environ: dict[str, Any]) -> Work:
        return Work(environ["PATH_INFO"].split("/")[1])

    def sender_of(self, environ: dict[str, Any]) -> RequestSender:
        return RequestSender(environ["PATH_INFO"].split("/")[2])


@contextmanager
def forty_waiting(path: bytes) -> Iterator[tuple[WsgiAdapter, list[Future[Any]], ThreadPoolExecutor]]:
    """An adapter whose application holds forty requests for a path until the end of the block."""
    released = threading.Event()

    def waiting(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"].encode() == path:
            released.wait(30)
        return application(environ, start_response)

    adapter = WsgiAdapter(waiting, ByPath())
    with ThreadPoolExecutor(60) as clients:
        held = [clients.submit(call, adapter, b"", path, method="GET") for _ in range(40)]
        try:
            yield adapter, held, clients
        finally:
            released.set()
            wait(held)


@pytest.mark.parametrize("other", [b"/read/one", b"/write/one", b"/git/one", b"/search/one", b"/code/other"])
def test_requests_that_wait_for_git_delay_no_others(other: bytes) -> None:
    with forty_waiting(b"/code/one") as (adapter, held, clients):
        others = [clients.submit(call, adapter, b"", other, method="GET") for _ in range(10)]

        assert {one.result(10)[0] for one in others} == {200}
        assert sum(not one.done() for one in held) >= RUNNING[CODE].per_credential


def test_what_waits_is_bounded() -> None:
    accepted = RUNNING[CODE].per_credential + WAITING[CODE].per_credential
    with forty_waiting(b"/code/one") as (_adapter, held, _clients):
        refused = [one.result()[0] for one in itertools.islice(as_completed(held, 10), 40 - accepted)]

        assert refused == [503] * (40 - accepted)
        assert not all(one.done() for one in held)
