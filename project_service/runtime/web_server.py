"""Configuration of gunicorn as we ship it: ``gunicorn --config python:project_service.runtime.web_server app:app``.

The lower-case names are gunicorn's settings. Its ASGI worker keeps connections in an event loop, so that a slow client
costs no thread; ``WsgiAdapter`` calls the WSGI application. ``docs/decisions/web-server.md`` has the reasons.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sys
from collections.abc import Callable
from typing import Any
from wsgiref.types import WSGIApplication

from gunicorn.app.base import BaseApplication
from gunicorn.workers.gasgi import ASGIWorker
from werkzeug.exceptions import RequestTimeout

from project_service.runtime.listening import BalancedServer, ConnectionCounts
from project_service.runtime.request_bodies import GRACE_SECONDS, MIN_BYTES_PER_SECOND
from project_service.runtime.wsgi_adapter import WsgiAdapter, error_body

MEMORY_DIR = "/dev/shm"  # noqa: S108  # gunicorn opens and unlinks its file there safely
STOP_IDLE_SECONDS = 1.0
SWITCH_SECONDS = 0.0005  # the default is ten times as long
RESERVED_FILES = 200

connection_counts = ConnectionCounts()  # created before the workers are forked

bind = "127.0.0.1:8000"
workers = os.cpu_count() or 1
worker_class = "project_service.runtime.web_server.WebWorker"
asgi_loop = "asyncio"
asgi_lifespan = "off"
asgi_disconnect_grace_period = 1
keepalive = 75
timeout = 30
graceful_timeout = 7
limit_request_line = 8190
limit_request_fields = 100
limit_request_field_size = 8190
# Which forwarded headers count is decided by the application alone (PROJECT_SERVICE_TRUSTED_PROXIES).
forwarded_allow_ips = ""
secure_scheme_headers: dict[str, str] = {}
control_socket_disable = True
preload_app = True
# The heartbeat of the workers is a file: on a busy disk a worker would look as if it hung.
worker_tmp_dir = MEMORY_DIR if os.access(MEMORY_DIR, os.W_OK) else None
accesslog = None
loglevel = "warning"


def serve(load: Callable[[], WSGIApplication], bind: str, workers: int) -> None:
    """Run gunicorn with this configuration in this process until SIGTERM."""
    LoadedApplication(load, {"bind": bind, "workers": workers}).run()


def on_starting(_server: Any) -> None:
    """Share the loaded memory with the workers; allow as many open files, and so connections, as the system permits."""
    gc.freeze()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def pre_fork(_server: Any, worker: Any) -> None:
    """Give a new worker a slot among the others."""
    worker.slot = connection_counts.reserve()


def child_exit(_server: Any, worker: Any) -> None:
    """Free the slot of a worker that has ended."""
    connection_counts.free(worker.slot)


def post_fork(server: Any, _worker: Any) -> None:
    """Let a worker open connections of its own, if the application has an ``after_fork`` for that.

    A thread that waits for the interpreter gets it sooner than by default: one that holds the lock of writers needs it
    after each statement, while others parse.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    after_fork: Callable[[], None] | None = getattr(server.app.wsgi(), "after_fork", None)
    if after_fork is not None:
        after_fork()


class LoadedApplication(BaseApplication):
    """Gunicorn for an application that this process has loaded already."""

    def __init__(self, load: Callable[[], WSGIApplication], options: dict[str, Any]) -> None:
        self._load = load
        self._options = options
        super().__init__()

    def load_config(self) -> None:
        """Take the settings of this module, and then those of the call."""
        own = {name: value for name, value in globals().items() if name in self.cfg.settings}
        for name, value in (own | self._options).items():
            self.cfg.set(name, value)

    def load(self) -> WSGIApplication:
        """Return the application."""
        return self._load()


class ClientConnection(asyncio.Protocol):
    """Gunicorn's protocol for one connection, with the time limits that it lacks.

    A first request must be complete up to its body within ``GRACE_SECONDS``, else the answer is 408. A client that
    takes less than ``MIN_BYTES_PER_SECOND`` of a response is disconnected.
    """

    def __init__(self, protocol: Any, worker: Any) -> None:
        self._protocol = protocol
        self._worker = worker
        self._received = self._paused = False
        self._unsent: int | None = None
        self.busy = self.served = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._address = transport.get_extra_info("peername")[:2]
        self._worker.make_room()
        self._worker.connections[self._address] = self
        self._worker.count_connections()
        self._check = self._worker.loop.call_later(GRACE_SECONDS, self._check_progress)
        self._protocol.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self._received = True
        self._protocol.data_received(data)

    def pause_writing(self) -> None:
        self._paused, self._unsent = True, None
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._paused = False
        self._protocol.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._check.cancel()
        self._worker.connections.pop(self._address, None)
        self._worker.count_connections()
        self._protocol.connection_lost(error)

    def close_if_idle(self) -> None:
        if not self.busy:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def _check_progress(self) -> None:
        unsent = self._transport.get_write_buffer_size()
        if not self.served and not self._transport.is_closing():
            if self._received:
                self._transport.write(raw_response(RequestTimeout()))
            self._transport.close()
        elif not self._paused and not self._transport.is_closing():
            self._unsent = None
        elif self._unsent is not None and unsent > self._unsent - GRACE_SECONDS * MIN_BYTES_PER_SECOND:
            self.abort()
            return
        else:
            self._unsent = unsent
        self._check = self._worker.loop.call_later(GRACE_SECONDS, self._check_progress)


class ConnectionLoop(asyncio.SelectorEventLoop):
    """An event loop whose servers give every connection the limits of ``ClientConnection``."""

    def __init__(self, worker: Any) -> None:
        super().__init__()
        self._worker = worker

    async def create_server(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:
        """Start a server that shares the connections of a socket out with the other workers."""
        if options.get("ssl") is not None:
            raise NotImplementedError("TLS is the work of a reverse proxy")
        worker = self._worker
        server = BalancedServer(
            self,
            options["sock"],
            lambda: ClientConnection(protocol_factory(), worker),
            connection_counts,
            worker.slot,
        )
        connection_counts.start(worker.slot)
        await server.start_serving()
        return server


class WebWorker(ASGIWorker):
    """Gunicorn's ASGI worker for a WSGI application."""

    loop: asyncio.AbstractEventLoop
    asgi: Any
    alive: bool
    slot: int  # among the workers, in ``connection_counts``

    def init_signals(self) -> None:
        self.connections: dict[tuple[str, int], ClientConnection] = {}
        # each connection may need a second file, for the body of its request
        self.max_connections = (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVED_FILES) // 2
        self.loop.close()
        self.loop = ConnectionLoop(self)
        asyncio.set_event_loop(self.loop)
        super().init_signals()

    def load_wsgi(self) -> None:
        super().load_wsgi()
        adapter = WsgiAdapter(
            self.asgi,
            getattr(self.asgi, "admission", None),
            getattr(self.asgi, "spool_dir", None),
            getattr(self.asgi, "max_waiting_bodies_per_client", 0),
        )

        async def serve(scope: Any, receive: Any, send: Any) -> None:
            connection = self.connections[scope["client"]]
            connection.busy = connection.served = True
            try:
                await adapter(scope, receive, send)
            finally:
                connection.busy = False

        self.asgi = serve

    def handle_exit_signal(self) -> None:
        """Begin to stop: connections without a request are closed soon, the others when they are answered."""
        super().handle_exit_signal()
        connection_counts.stop(self.slot)
        for connection in self.connections.values():
            self.loop.call_later(STOP_IDLE_SECONDS, connection.close_if_idle)

    def count_connections(self) -> None:
        """Let the other workers know how many connections this one has."""
        connection_counts.set_open(self.slot, len(self.connections))

    def make_room(self) -> None:
        """Disconnect the oldest client without a request if there are too many connections."""
        if len(self.connections) >= self.max_connections:
            idle = (connection for connection in self.connections.values() if not connection.busy)
            if (oldest := next(idle, None)) is not None:
                oldest.abort()


def raw_response(error: RequestTimeout) -> bytes:
    """A complete response to a request that the application has not seen."""
    body = error_body(error)
    head = (
        f"HTTP/1.1 {error.code} {error.name}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
