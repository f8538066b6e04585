"""Serve a WSGI application over ASGI: bodies and responses wait in the event loop, the application runs in threads.

A request body of usual size is received completely before the application is called, so that a slow client costs
memory or a little disk space and no thread. A larger one is read by the application while it arrives, which lets the
application refuse it first. ``docs/decisions/web-server.md`` has the reasons.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import io
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Any, TypeVar
from urllib.parse import unquote_to_bytes
from wsgiref.types import WSGIApplication, WSGIEnvironment

from werkzeug.exceptions import ClientDisconnected, HTTPException, RequestTimeout, ServiceUnavailable
from werkzeug.wsgi import FileWrapper

from project_service.runtime.waiting_bodies import WaitingBodies

READ_THREADS = 4
CODE_THREADS = 4
WRITE_THREADS = 8
TRANSFER_THREADS = 64
GRACE_SECONDS = 10.0
MIN_BYTES_PER_SECOND = 1000
MAX_GATHERED_BODY_BYTES = 10 << 20
MAX_GATHERED_BYTES = 256 << 20
MAX_BODY_BYTES_IN_MEMORY = 64 << 10
FILE_CHUNK_BYTES = 256 << 10
MAX_DRAINED_BYTES = 256 << 20
DRAIN_SECONDS = 30.0
READ_METHODS = ("GET", "HEAD", "OPTIONS")
GIT = re.compile(r"\.git/(?:info/refs|git-upload-pack|git-receive-pack)\Z")  # paths of requests that wait for git
# paths of requests that read repositories, which may take seconds
CODE = re.compile(r"/-/(?:archive|blame|blob|branches|commits?|compare|raw|tags|tree)(?:/|\Z)|/repository/")
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
T = TypeVar("T")


class NoRoomForBody(HTTPException):
    """The disk has no room for the body of a request."""

    code = 507
    name = "Insufficient Storage: there is no room left on the disk of this server"


class IncomingBody:
    """The body of a request as it arrives. ``complete`` once its end was received."""

    def __init__(self, receive: Receive, complete: bool) -> None:
        self._receive = receive
        self.complete = complete
        self.gathered_bytes = 0

    async def take(self) -> bytes:
        """Return what came in ``GRACE_SECONDS`` at most, which is the rest or what the minimum rate demands.

        Raises ``RequestTimeout`` for a client that is too slow and ``ClientDisconnected`` for one that is gone.
        """
        chunks: list[bytes] = []
        missing = GRACE_SECONDS * MIN_BYTES_PER_SECOND
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                while missing > 0 and not self.complete:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnected
                    chunks.append(message.get("body", b""))
                    missing -= len(chunks[-1])
                    self.complete = not message.get("more_body", False)
        except TimeoutError:
            raise RequestTimeout from None
        return b"".join(chunks)

    async def drain(self) -> None:
        """Discard the rest, so that a client that is still sending receives its response."""
        drained = 0
        with suppress(RequestTimeout, ClientDisconnected, TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while not self.complete and drained < MAX_DRAINED_BYTES:
                    drained += len(await self.take())


class BodyReader(io.RawIOBase):
    """``wsgi.input`` of a large body: first what was gathered, then what arrives while a thread reads."""

    def __init__(self, gathered: IO[bytes], body: IncomingBody, loop: asyncio.AbstractEventLoop) -> None:
        self._gathered = gathered
        self._body = body
        self._loop = loop
        self._chunk = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._chunk:
            data = self._gathered.read(FILE_CHUNK_BYTES)
            if not data and not self._body.complete:
                waiting = asyncio.run_coroutine_threadsafe(self._body.take(), self._loop)
                data = waiting.result(2 * GRACE_SECONDS)
            self._chunk = memoryview(data)
        count = min(len(buffer), len(self._chunk))
        buffer[:count] = self._chunk[:count]
        self._chunk = self._chunk[count:]
        return count


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
        """Run a function in a thread."""
        self._last = executor.submit(self._context.run, function, *args)
        return await asyncio.wrap_future(self._last)

    def start(self, environ: WSGIEnvironment) -> bytes:
        """Call the application; returns the first chunk when a length was announced, which most often is all."""
        self._result = self._application(environ, self._start_response)
        self._chunks = iter(self._result)
        return b"" if self.length is None else self.next_chunk() or b""

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

    Bodies that need a file get it in ``spool_dir``. ``waiting`` limits how many of them one client address may send at
    the same time.
    """

    def __init__(
        self, application: WSGIApplication, spool_dir: str | None = None, waiting: WaitingBodies | None = None
    ) -> None:
        self._application = application
        self._spool_dir = spool_dir
        self._waiting = waiting or WaitingBodies()
        # apart, since a request that writes may wait for a lock of the database, and one that reads code for git
        self._reads = ThreadPoolExecutor(READ_THREADS, "read")
        self._code = ThreadPoolExecutor(CODE_THREADS, "code")
        self._writes = ThreadPoolExecutor(WRITE_THREADS, "write")
        self._transfers = ThreadPoolExecutor(TRANSFER_THREADS, "transfer")
        self._gathered_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; WebSockets are refused."""
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        environ = environ_of(scope)
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = IncomingBody(receive, complete=not length and "HTTP_TRANSFER_ENCODING" not in environ)
        with tempfile.SpooledTemporaryFile(MAX_BODY_BYTES_IN_MEMORY, dir=self._spool_dir) as spool:
            try:
                if not body.complete and length <= MAX_GATHERED_BODY_BYTES:
                    with self._waiting.count(environ):
                        await self._gather(body, spool)
                if body.complete:
                    environ["wsgi.input"] = spool
                    await self._respond(environ, send, self._executor_of(environ))
                else:
                    reader = BodyReader(spool, body, asyncio.get_running_loop())
                    environ["wsgi.input"] = io.BufferedReader(reader, FILE_CHUNK_BYTES)
                    with self._waiting.count(environ):
                        await self._respond(environ, send, self._transfers)
            except ClientDisconnected:
                return
            except HTTPException as error:
                await send_error(send, error)
            except OSError as error:
                if error.errno not in FULL_DISK:
                    raise
                await send_error(send, NoRoomForBody())
            finally:
                self._gathered_bytes -= body.gathered_bytes
        await body.drain()

    def _executor_of(self, environ: WSGIEnvironment) -> Executor:
        if GIT.search(environ["PATH_INFO"]) is not None:
            return self._transfers
        if environ["REQUEST_METHOD"] not in READ_METHODS:
            return self._writes
        return self._reads if CODE.search(environ["PATH_INFO"]) is None else self._code

    async def _gather(self, body: IncomingBody, spool: IO[bytes]) -> None:
        while not body.complete and body.gathered_bytes <= MAX_GATHERED_BODY_BYTES:
            data = await body.take()
            body.gathered_bytes += len(data)
            self._gathered_bytes += len(data)
            if self._gathered_bytes > MAX_GATHERED_BYTES:
                raise ServiceUnavailable
            spool.write(data)
        spool.seek(0)

    async def _respond(self, environ: WSGIEnvironment, send: Send, executor: Executor) -> None:
        call = Call(self._application)
        try:
            chunk: bytes | None = await call.step(executor, call.start, environ)
            await send({"type": "http.response.start", "status": call.status, "headers": call.headers})
            while chunk is not None and len(chunk) != call.length:
                if chunk:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                chunk = await call.step(self._transfers, call.next_chunk)
            await send({"type": "http.response.body", "body": chunk or b""})
        finally:
            call.close(executor)


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


async def send_error(send: Send, error: HTTPException) -> None:
    """Answer in the way of the API, without the application."""
    body = error_body(error)
    headers = [(b"Content-Type", b"application/json"), (b"Content-Length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": error.code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def error_body(error: HTTPException) -> bytes:
    """The JSON body of an error of ``error``'s kind."""
    return f'{{"message":"{error.code} {error.name}"}}'.encode()
