"""Serve a WSGI application over ASGI: bodies and responses wait in the event loop, the application runs in threads.

A request body is received completely before the application is called, so that a slow client costs memory or disk
space and no thread. Each kind of work has threads of its own, and each client a share of them.
``docs/decisions/web-server.md`` has the reasons.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes
from wsgiref.types import WSGIApplication, WSGIEnvironment

from werkzeug.exceptions import ClientDisconnected, HTTPException, ServiceUnavailable
from werkzeug.wsgi import FileWrapper

from project_service.kit.concurrency import Busy, ConcurrencyLimiter, ShareLimits
from project_service.kit.http.clients.admission import (
    CODE,
    GIT,
    OUTGOING,
    READ,
    SEARCH,
    WRITE,
    Admission,
    PlainAdmission,
    RequestSender,
    Work,
)
from project_service.runtime.request_bodies import BodyReceiver, IncomingBody

FILE_CHUNK_BYTES = 256 << 10
RETRY_SECONDS = 10
BUSY = "503 Service Unavailable: too many requests of this kind are in progress, try again in a moment"
# how many requests of each kind run at once in a process, each in a thread; how many wait, and for how long
RUNNING = {
    READ: ShareLimits(4, 3, 4, 3, 3),
    WRITE: ShareLimits(8, 4, 6, 6, 4),
    SEARCH: ShareLimits(3, 1, 2, 1, 1),
    OUTGOING: ShareLimits(12, 3, 6, 4, 2),
    CODE: ShareLimits(4, 2, 3, 2, 1),
    GIT: ShareLimits(16, 4, 8, 8, 4),
}
WAITING = {
    READ: ShareLimits(1000, 500, 500, 500, 500),
    WRITE: ShareLimits(200, 100, 150, 100, 50),
    SEARCH: ShareLimits(96, 24, 48, 48, 24),
    OUTGOING: ShareLimits(48, 12, 24, 24, 12),
    CODE: ShareLimits(48, 12, 24, 24, 12),
    GIT: ShareLimits(32, 8, 16, 16, 8),
}
MAX_WAIT_SECONDS = {READ: 30.0, WRITE: 30.0, SEARCH: 15.0, OUTGOING: 10.0, CODE: 10.0, GIT: 10.0}
# responses that are sent in pieces: each holds a thread only while it makes the next piece
STREAMING = ShareLimits(64, 4, 16, 16, 2)
WAITING_TO_STREAM = ShareLimits(64, 8, 16, 16, 8)

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
T = TypeVar("T")


class Call:
    """One call of the application, whose steps run in threads, one after the other and in one context."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application
        self._context = contextvars.copy_context()
        self._last: Future[Any] | None = None
        self._chunks: Iterator[bytes] = iter(())
        self._result: Iterable[bytes] = ()
        self.status = 500
        self.headers: list[tuple[bytes, bytes]] = []
        self.length: int | None = None

    async def step(self, executor: Executor, function: Callable[..., T], *args: Any) -> T:
        """Run a function in a thread; when the client is gone, wait for its end, since it cannot be stopped."""
        self._last = executor.submit(self._context.run, function, *args)
        try:
            return await asyncio.wrap_future(self._last)
        except asyncio.CancelledError:
            await asyncio.wait([asyncio.wrap_future(self._last)])
            raise

    def start(self, environ: WSGIEnvironment) -> bytes | None:
        """Call the application; return the first chunk, which most often is all, and None for an empty response."""
        self._result = self._application(environ, self._start_response)
        self._chunks = iter(self._result)
        return self.next_chunk()

    def next_chunk(self) -> bytes | None:
        """The next chunk, and None at the end."""
        return next(self._chunks, None)

    def close(self, executor: Executor) -> None:
        """Close the response as soon as no step runs any more."""
        close = getattr(self._result, "close", None)
        if close is not None and self._last is not None:
            self._last.add_done_callback(lambda _: executor.submit(self._context.run, close))

    def _start_response(self, status: str, headers: list[tuple[str, str]], _error: Any = None) -> Callable[..., Any]:
        self.status = int(status.split(" ", 1)[0])
        self.headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        lengths = [int(value) for name, value in headers if name.lower() == "content-length"]
        self.length = lengths[0] if lengths else None
        return _write


def _write(_data: bytes) -> None:
    raise NotImplementedError("return an iterable instead of calling write()")


class WsgiAdapter:
    """An ASGI application that calls a WSGI application.

    Bodies that need a file get it in ``spool_dir``; one address may send ``max_waiting_bodies`` at the same time.
    """

    def __init__(
        self,
        application: WSGIApplication,
        admission: Admission | None = None,
        spool_dir: str | None = None,
        max_waiting_bodies: int = 0,
    ) -> None:
        self._application = application
        self._admission = admission or PlainAdmission()
        self._bodies = BodyReceiver(self._admission, spool_dir, max_waiting_bodies)
        self._limiters = {
            kind: ConcurrencyLimiter(RUNNING[kind], WAITING[kind], MAX_WAIT_SECONDS[kind]) for kind in RUNNING
        }
        self._executors = {kind: ThreadPoolExecutor(RUNNING[kind].total, kind) for kind in RUNNING}
        self._streams = ConcurrencyLimiter(STREAMING, WAITING_TO_STREAM, MAX_WAIT_SECONDS[CODE])
        self._chunks = ThreadPoolExecutor(STREAMING.total, "chunk")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; WebSockets are refused."""
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        environ = environ_of(scope)
        body = IncomingBody(receive, environ)
        try:
            work, sender = self._admission.work_of(environ), self._admission.sender_of(environ)
            async with self._bodies.received(environ, body, work, sender) as file:
                environ["wsgi.input"] = file
                await self._respond(environ, send, work, sender)
        except ClientDisconnected:
            return
        except Busy:
            await send_busy(send, environ)
        except HTTPException as error:
            await send_error(send, error)
        await body.drain()

    async def _respond(self, environ: WSGIEnvironment, send: Send, work: Work, sender: RequestSender) -> None:
        call, executor = Call(self._application), self._executors[work.kind]
        async with AsyncExitStack() as stack:
            if work.is_long:
                await stack.enter_async_context(self._streams.slot(sender))
            running = await stack.enter_async_context(AsyncExitStack())
            await running.enter_async_context(self._limiters[work.kind].slot(sender))
            try:
                chunk = await call.step(executor, call.start, environ)
                if work.kind != GIT:  # whose process runs as long as it sends
                    await running.aclose()
                is_whole = chunk is None or len(chunk) == call.length
                if not is_whole and not work.is_long:
                    await stack.enter_async_context(self._streams.slot(sender))
                await send({"type": "http.response.start", "status": call.status, "headers": call.headers})
                while chunk is not None and len(chunk) != call.length:
                    if chunk:
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
                    chunk = await call.step(self._chunks, call.next_chunk)
                await send({"type": "http.response.body", "body": chunk or b""})
            finally:
                call.close(self._chunks)


def environ_of(scope: Scope) -> WSGIEnvironment:
    """The WSGI environment of a request, with the request target as it was sent in ``RAW_URI``."""
    raw_path, query = scope["raw_path"], scope["query_string"].decode("latin-1")
    client, server = scope["client"] or ("", 0), scope["server"] or ("", 0)
    environ: WSGIEnvironment = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(raw_path).decode("latin-1"),
        "QUERY_STRING": query,
        "RAW_URI": raw_path.decode("latin-1") + ("?" + query if query else ""),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "REMOTE_ADDR": client[0],
        "REMOTE_PORT": str(client[1]),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
        "wsgi.file_wrapper": lambda file, _size: FileWrapper(file, FILE_CHUNK_BYTES),
    }
    for name, value in scope["headers"]:
        if b"_" in name:  # would be taken for the header with hyphens
            continue
        key = name.decode("latin-1").upper().replace("-", "_")
        key = key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else "HTTP_" + key
        text = value.decode("latin-1")
        environ[key] = f"{environ[key]}{'; ' if key == 'HTTP_COOKIE' else ','}{text}" if key in environ else text
    return environ


async def send_busy(send: Send, environ: WSGIEnvironment) -> None:
    """Refuse a request whose client, or whose kind, uses all of its share; programs get JSON, others read a text."""
    is_api = environ["PATH_INFO"].startswith("/api/")
    kind, body = ("application/json", f'{{"message":"{BUSY}"}}') if is_api else ("text/plain", f"{BUSY}\n")
    headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Retry-After": str(RETRY_SECONDS)}
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": ServiceUnavailable.code, "headers": encoded})
    await send({"type": "http.response.body", "body": body.encode()})


async def send_error(send: Send, error: HTTPException) -> None:
    """Answer in the way of the API, without the application."""
    body = error_body(error)
    headers = [(b"Content-Type", b"application/json"), (b"Content-Length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": error.code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def error_body(error: HTTPException) -> bytes:
    """The JSON body of an error of ``error``'s kind."""
    return f'{{"message":"{error.code} {error.name}"}}'.encode()
