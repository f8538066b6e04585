"""Gunicorn as we ship it: ``gunicorn --config python:project_service.runtime.web_server …``.

The lower-case names are gunicorn's settings. The worker class gives each process many places to wait in and few to
compute in: whoever waits for a client's bytes, or for a client to take them, never keeps others from computing.
``docs/decisions/web-server.md`` tells why.
"""

from __future__ import annotations

import ctypes
import errno
import math
import mmap
import os
import re
import resource
import select
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker
from werkzeug.exceptions import BadRequest, ClientDisconnected, RequestTimeout

from project_service.kit.http.waiting import ASIDE

bind = "127.0.0.1:8000"
workers = os.cpu_count() or 1
worker_class = "project_service.runtime.web_server.PatientWorker"
threads = 64
worker_connections = min(1000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
keepalive = 75
timeout = 30
graceful_timeout = 7
limit_request_line = 8190
limit_request_fields = 100
limit_request_field_size = 8190
# Whose forwarded headers count is the application's decision (PROJECT_SERVICE_TRUSTED_PROXIES), and made once.
forwarded_allow_ips = ""
secure_scheme_headers: dict[str, str] = {}
control_socket_disable = True
# Imported once and shared by all workers: they start sooner, and take less memory together.
preload_app = True
# The workers' heartbeat is a file: one on a disk that is busy would look like a worker that hangs.
MEMORY = "/dev/shm"  # noqa: S108  # gunicorn opens and unlinks its file there safely
worker_tmp_dir = MEMORY if os.access(MEMORY, os.W_OK) else None
accesslog = None
loglevel = "warning"

M_ARENA_MAX = -8  # of malloc.h
COMPUTING = 2
PATIENCE = 0.25
GRACE = 10.0
SLOWEST = 1000.0
PREFETCH = 65536
LINGER = 0.005
DRAIN_GRACE = 2.0
DRAIN_SECONDS = 30.0
DRAIN_BYTES = 256 * 1024 * 1024
CROWDED = 0.9
STEP_BACK = 0.002
PLACES = 256


FRAMING = re.compile(rb"\r\n(content-length|transfer-encoding|expect)[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
UNFINISHED = object()

StartResponse = Callable[..., Any]
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


class Shares:
    """How many connections each worker of a server has, in memory that all of its processes see.

    The kernel gives a connection to whoever asks first, and a proxy keeps its connections for hours: left to chance,
    one worker may have all of them while the others idle. So whoever has more than another steps back for a moment.
    """

    def __init__(self) -> None:
        # one more than there are, so that 0 is a place where nobody takes any
        self._counts = memoryview(mmap.mmap(-1, 4 * PLACES)).cast("I")

    def tell(self, place: int, connections: int) -> None:
        """The worker at a place, which nobody else writes to, has so many."""
        self._counts[place] = connections + 1

    def leave(self, place: int) -> None:
        """The worker at a place takes no more."""
        self._counts[place] = 0

    def is_ahead(self, place: int) -> bool:
        """Whether some worker has fewer than the one at a place."""
        counts = self._counts.tolist()
        return any(0 < count < counts[place] for count in counts)


shares = Shares()


def on_starting(_server: Any) -> None:
    """Have the threads of all workers share one arena of malloc, where the C library has several.

    Each arena keeps what its threads once needed; Python lets one of them compute at a time, so that one is enough.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)


def pre_fork(server: Any, worker: Any) -> None:
    """Give a worker a place of its own."""
    taken = {other.place for other in server.WORKERS.values()}
    worker.place = min(set(range(PLACES)) - taken, default=0)


def child_exit(_server: Any, worker: Any) -> None:
    """Wait no longer for a worker that is gone."""
    shares.leave(worker.place)


def post_fork(server: Any, _worker: Any) -> None:
    """Have a worker open connections of its own, if the application has an ``after_fork`` that does so."""
    after_fork: Callable[[], None] | None = getattr(server.app.wsgi(), "after_fork", None)
    if after_fork is not None:
        after_fork()


class Pace:
    """How long a client may still be waited for, in seconds of waiting.

    Every ``grace`` seconds must bring ``grace`` times ``SLOWEST`` bytes; time in which we compute does not count.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._moved = 0
        self.left = grace

    def waited(self, seconds: float) -> None:
        self.left -= seconds

    def moved(self, count: int) -> bool:
        """Count bytes; whether they were enough for the clock to start anew."""
        self._moved += count
        if self._moved < self._grace * SLOWEST:
            return False
        self._moved = 0
        self.left = self._grace
        return True


class Seat:
    """A thread of the crew: what it sleeps on, and what it is to do when woken."""

    __slots__ = ("task", "wake")

    def __init__(self) -> None:
        self.wake = threading.Lock()
        self.wake.acquire()
        self.task: Callable[[], None] = lambda: None


class Crew:
    """Many threads, of which few compute at once.

    Two threads that compute wait for each other at the interpreter's lock, and more of them only wait longer; but who
    waits for a client's bytes is in nobody's way. So a thread calls ``leave`` before it waits and ``come_back`` after
    it. A limit for throughput must never stand still: who has computed for ``PATIENCE`` seconds (it most likely waits
    for a database, or for a lock that somebody in the queue holds) no longer counts, see ``relax``.
    """

    def __init__(self, computing: int, threads: int) -> None:
        self._limit = computing
        self._threads = threads
        self._lock = threading.Lock()
        self._computing: dict[Seat, float] = {}
        self._idle: list[Seat] = []
        self._returning: deque[Seat] = deque()
        self._queue: deque[Callable[[], None]] = deque()
        self._own = threading.local()

    def submit(self, task: Callable[[], None]) -> None:
        """Have a thread do ``task``, which must not raise."""
        with self._lock:
            self._queue.append(task)
            self._hand_out()

    def shutdown(self, wait: bool = False) -> None:
        """Nothing to do: the threads end with the process."""

    def leave(self) -> None:
        """The calling thread is about to wait: let another one compute."""
        if seat := getattr(self._own, "seat", None):
            with self._lock:
                self._computing.pop(seat, None)
                self._hand_out()

    def come_back(self) -> None:
        """The calling thread has waited: return when it may compute again, or after ``PATIENCE`` seconds."""
        if seat := getattr(self._own, "seat", None):
            with self._lock:
                if len(self._computing) < self._limit:
                    self._computing[seat] = time.monotonic()
                    return
                self._returning.append(seat)
            if not seat.wake.acquire(timeout=PATIENCE):
                with self._lock:
                    if seat in self._returning:
                        self._returning.remove(seat)
                        return
                seat.wake.acquire()

    def queues(self) -> bool:
        """Whether tasks wait."""
        return bool(self._queue)

    def is_crowded(self) -> bool:
        """Whether tasks wait for a thread and every thread has one."""
        return bool(self._queue) and not self._idle and not self._threads

    def relax(self) -> None:
        """To be called a few times a second while tasks wait."""
        latest = time.monotonic() - PATIENCE
        with self._lock:
            for seat in [seat for seat, since in self._computing.items() if since < latest]:
                del self._computing[seat]
            self._hand_out()

    def _hand_out(self) -> None:
        """Fill the free places: first with those who come back."""
        while self._returning and len(self._computing) < self._limit:
            self._wake(self._returning.popleft())
        while self._queue and len(self._computing) < self._limit:
            if self._idle:
                seat = self._idle.pop()
            elif self._threads:
                self._threads -= 1
                seat = Seat()
                threading.Thread(target=self._work, args=(seat,), daemon=True).start()
            else:
                return
            seat.task = self._queue.popleft()
            self._wake(seat)

    def _wake(self, seat: Seat) -> None:
        self._computing[seat] = time.monotonic()
        seat.wake.release()

    def _work(self, seat: Seat) -> None:
        self._own.seat = seat
        while True:
            seat.wake.acquire()
            seat.task()
            with self._lock:
                self._computing.pop(seat, None)
                self._idle.append(seat)
                self._hand_out()


class ClientSocket:
    """A client's connection as gunicorn's parser and response see it: one that blocks.

    Underneath it never does: before it waits it leaves the computing place of the request, and it waits only as long
    as the client keeps the pace. A client that does not, or leaves amid its body, is told apart by ``RequestTimeout``
    and ``ClientDisconnected``, which an application answers like any other error.
    """

    def __init__(self, raw: socket.socket, crew: Crew) -> None:
        raw.setblocking(False)
        self._raw = raw
        self._crew = crew
        self.pace = Pace(GRACE)
        self.request: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def setblocking(self, _blocking: bool) -> None:
        """Gunicorn switches this to and fro; how to wait is decided here."""

    def settimeout(self, _seconds: float | None) -> None:
        """The pace limits every wait."""

    def gettimeout(self) -> float | None:
        return 0.0

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Leave the computing place of the request while it waits for something else than its client."""
        self._crew.leave()
        try:
            yield
        finally:
            self._crew.come_back()

    def recv(self, size: int) -> bytes:
        """Some of the body; the head has arrived before anybody calls this, so an end of file is always too early."""
        while True:
            try:
                data = self._raw.recv(size)
            except BlockingIOError:
                if not self._wait(select.POLLIN):
                    raise RequestTimeout from None
                continue
            except ConnectionError:
                data = b""
            if not data:
                raise ClientDisconnected
            self.pace.moved(len(data))
            return data

    def wait_a_moment(self) -> bool:
        """Whether bytes come within ``LINGER`` seconds."""
        waiting = select.poll()
        waiting.register(self._raw, select.POLLIN)
        self._crew.leave()
        ready = waiting.poll(1000 * LINGER)
        self._crew.come_back()
        return bool(ready)

    def send(self, data: bytes) -> int:
        return self._write(partial(self._raw.send, data))

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._write(partial(self._raw.send, view)) :]

    def sendfile(self, file: Any, offset: int = 0, count: int = 0) -> int:
        sent = 0
        while sent < count:
            step = min(count - sent, 1 << 20)
            written = self._write(partial(os.sendfile, self._raw.fileno(), file.fileno(), offset + sent, step))
            if not written:
                break
            sent += written
        return sent

    def _write(self, write: Callable[[], int]) -> int:
        while True:
            try:
                written = write()
            except BlockingIOError:
                if not self._wait(select.POLLOUT):
                    raise ConnectionResetError(errno.ECONNRESET, "the client takes its answer too slowly") from None
                continue
            self.pace.moved(written)
            return written

    def _wait(self, event: int) -> bool:
        """Whether the socket became ready in time. While others find no thread, there is a second and no more."""
        waiting = select.poll()
        waiting.register(self._raw, event)
        self._crew.leave()
        try:
            while self.pace.left > 0:
                began = time.monotonic()
                ready = waiting.poll(1000 * min(1.0, self.pace.left))
                self.pace.waited(time.monotonic() - began)
                if ready:
                    return True
                if self._crew.is_crowded():
                    break
            return False
        finally:
            self._crew.come_back()


class Connection(TConn):  # type: ignore[misc]  # gunicorn has no types
    """A connection of gunicorn's, with the beginning of its next request gathered before a thread is given to it."""

    sock: ClientSocket

    def __init__(self, cfg: Any, client_socket: ClientSocket, client: Any, server: Any) -> None:
        super().__init__(cfg, client_socket, client, server)
        self.data_ready = True
        self.is_closed = False
        self.gathered = bytearray()
        self.head = 0
        self.needed = 0
        self.chunked = False
        self.waiting_since = time.monotonic()
        self.drained = 0
        self.sock.pace = Pace(GRACE)

    def close(self, graceful: bool = False) -> None:
        self.is_closed = True
        super().close(graceful)

    def gather(self) -> bool:
        """Take what has arrived; whether the request can be handed to the application now, or else never comes.

        That is: when its head is complete, and its body is too or has filled ``PREFETCH`` bytes. A client that waits
        to be told to continue, or sends chunks, is handed on sooner.
        """
        if self.parser is not None:
            self.gathered += self.parser.unreader.take_buffered()
        while not self._enough():
            try:
                data = self.sock._raw.recv(PREFETCH)
            except BlockingIOError:
                return False
            except OSError:
                data = b""
            if not data:
                raise ClientDisconnected
            self.gathered += data
            if self.head:
                self.sock.pace.moved(len(data))
        return True

    def read_ahead(self) -> bool:
        """Whether the beginning of the next request came with the end of this one."""
        return self.parser is not None and self.parser.unreader.buf.getbuffer().nbytes > 0

    def hand_over(self) -> None:
        """Give the gathered bytes to gunicorn's parser."""
        self.init()
        self.parser.unreader.unread(bytes(self.gathered))
        self.gathered.clear()
        self.head = self.needed = 0
        self.chunked = False
        self.sock.pace = Pace(GRACE)

    def _enough(self) -> bool:
        if not self.head:
            end = self.gathered.find(b"\r\n\r\n")
            if end < 0:
                # A head that is malformed or too long is refused by the parser.
                return b"\n\n" in self.gathered or len(self.gathered) >= PREFETCH
            self.head = end + 4
            self.needed = self.head + self._prefetch(end)
            self.sock.pace = Pace(GRACE)
        if len(self.gathered) >= self.needed:
            return True
        # The last of the chunks ends so. Should it be another one: taking it for the last does no harm.
        return self.chunked and self.gathered.find(b"\r\n\r\n", self.head) >= 0

    def _prefetch(self, end: int) -> int:
        """How much of the body to wait for, by the head that ends at ``end``."""
        wanted = 0
        for name, value in FRAMING.findall(self.gathered, 0, end):
            if name.lower() == b"expect":
                return 0
            if name.lower() == b"transfer-encoding":
                self.chunked = True
                wanted = PREFETCH
            elif value.isdigit():
                wanted = min(int(value[:12]), PREFETCH)
        return wanted


class PatientWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Gunicorn's threaded worker, with four things changed.

    Connections are shared out evenly among the workers. A request gets a thread once its head, and a small body, are
    complete; until then it waits in the poller. Of the threads few compute at once. A connection that ends is drained
    in the poller, so that whoever still sends a body that was refused receives the answer.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.wsgi: Application
        self.unfinished: dict[Connection, float] = {}
        self.ending: dict[Connection, float] = {}
        self.next_sweep = 0.0
        self.place = 0
        self.has_stepped_back = False
        self.accepts_from = 0.0
        self.stop_deadline = math.inf

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        super().check_config(cfg, log)
        if cfg.is_ssl:
            raise RuntimeError("TLS is left to a reverse proxy; run this worker without certfile and keyfile")

    def load_wsgi(self) -> None:
        super().load_wsgi()
        self.wsgi = answering(self.wsgi)

    def get_thread_pool(self) -> Crew:
        return Crew(COMPUTING, self.cfg.threads)

    def set_accept_enabled(self, enabled: bool) -> None:
        if enabled and time.monotonic() < self.accepts_from:
            return
        super().set_accept_enabled(enabled)
        if not self.alive:
            shares.leave(self.place)
            # A successor on the same address must not share its callers with one that no longer accepts.
            for listener in self.sockets:
                listener.close()

    # In the poller's thread: nothing below may block.

    def accept(self, listener: Any) -> None:
        if not self.alive or self._steps_back():
            return
        try:
            raw, client = listener.accept()
        except OSError:
            return
        connection = Connection(self.cfg, ClientSocket(raw, self.tpool), client, listener.getsockname())
        self.nr_conns += 1
        if self.nr_conns > CROWDED * self.worker_connections:
            self._shed()
        self._await_request(connection)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        if self.tpool.queues():
            self.tpool.relax()
            timeout = min(timeout, PATIENCE / 2)
        if self.alive:
            shares.tell(self.place, self.nr_conns)
            if (left := self.accepts_from - time.monotonic()) > 0:
                timeout = min(timeout, left)
        super().wait_for_and_dispatch_events(timeout)

    def enqueue_req(self, conn: Connection) -> None:
        self.tpool.submit(partial(self._attend, conn))

    def finish_request(self, conn: Connection, fs: Any) -> None:
        """Take a connection back from its thread; ``fs`` is what ``handle`` returned."""
        if fs is UNFINISHED:
            self._await_request(conn)
            return
        conn.sock.pace = Pace(GRACE)
        if not fs:
            self._end(conn)
        elif conn.read_ahead():
            self.enqueue_req(conn)
        else:
            conn.set_timeout()
            conn.timeout = min(conn.timeout, self.stop_deadline)
            self.keepalived_conns.append(conn)
            self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_client_socket_readable, conn))

    def _cap_keepalive(self, deadline: float) -> None:
        """A stop has begun: whoever has not sent a whole request by ``deadline`` is not waited for."""
        super()._cap_keepalive(deadline)
        self.stop_deadline = deadline

    def murder_pending(self) -> None:
        """Twice a second: end those whose time is over."""
        now = time.monotonic()
        if now < self.next_sweep:
            return
        self.next_sweep = now + 0.5
        for connection, deadline in list(self.unfinished.items()):
            if now >= min(deadline, self.stop_deadline):
                self._forget(connection, self.unfinished)
                self._refuse(connection)
        for connection, deadline in list(self.ending.items()):
            if now >= min(deadline, self.stop_deadline, connection.waiting_since + DRAIN_SECONDS):
                self._close(connection)

    def _steps_back(self) -> bool:
        """Whether a connection is left to the workers that have fewer; what they do not take in time is taken."""
        self.has_stepped_back = not self.has_stepped_back and shares.is_ahead(self.place)
        if self.has_stepped_back:
            self.accepts_from = time.monotonic() + STEP_BACK
            self.set_accept_enabled(False)
        return self.has_stepped_back

    def _await_request(self, connection: Connection) -> None:
        connection.waiting_since = time.monotonic()
        self.unfinished[connection] = connection.waiting_since + connection.sock.pace.left
        self.poller.register(connection.sock, selectors.EVENT_READ, partial(self._on_more, connection))

    # What has become ready may have been shed meanwhile, for another one that did at the same moment.

    def on_client_socket_readable(self, conn: Connection, client: ClientSocket) -> None:
        if not conn.is_closed:
            super().on_client_socket_readable(conn, client)

    def _on_more(self, connection: Connection, _client: ClientSocket) -> None:
        if connection.is_closed:
            return
        self._forget(connection, self.unfinished)
        connection.sock.pace.waited(time.monotonic() - connection.waiting_since)
        if connection.sock.pace.left > 0:
            self.enqueue_req(connection)
        else:
            self._refuse(connection)

    def _refuse(self, connection: Connection) -> None:
        """Answer whoever has begun a request and not ended it; silence for who has said nothing."""
        if not connection.gathered:
            self._close(connection)
            return
        with suppress(OSError):
            connection.sock._raw.send(raw_answer(RequestTimeout()))
        self._end(connection)

    def _end(self, connection: Connection) -> None:
        """Half-close, and swallow what still comes until the client closes too: a reset would destroy our answer."""
        try:
            connection.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(connection)
            return
        connection.waiting_since = time.monotonic()
        connection.sock.pace = Pace(DRAIN_GRACE)
        self.ending[connection] = connection.waiting_since + DRAIN_GRACE
        self.poller.register(connection.sock, selectors.EVENT_READ, partial(self._on_rest, connection))

    def _on_rest(self, connection: Connection, _client: ClientSocket) -> None:
        if connection.is_closed:
            return
        try:
            data = connection.sock._raw.recv(PREFETCH)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        connection.drained += len(data)
        if not data or connection.drained > DRAIN_BYTES:
            self._close(connection)
        elif connection.sock.pace.moved(len(data)):
            self.ending[connection] = time.monotonic() + DRAIN_GRACE

    def _close(self, connection: Connection) -> None:
        self._forget(connection, self.ending)
        self.nr_conns -= 1
        connection.close()

    def _forget(self, connection: Connection, waiting: dict[Connection, float]) -> None:
        if waiting.pop(connection, None) is not None:
            self.poller.unregister(connection.sock)

    def _shed(self) -> None:
        """Make room: close what idles, or else who has been sending its request for longest."""
        if self.ending:
            self._close(next(iter(self.ending)))
        elif self.keepalived_conns:
            connection = self.keepalived_conns.popleft()
            self.poller.unregister(connection.sock)
            self.nr_conns -= 1
            connection.close()
        elif self.unfinished:
            connection = min(self.unfinished, key=self.unfinished.__getitem__)
            self._forget(connection, self.unfinished)
            self._close(connection)

    # In a thread of the crew.

    def _attend(self, conn: Connection) -> None:
        try:
            outcome = self.handle(conn)
        except BaseException:
            self.log.exception("Error handling connection")
            outcome = False
        self.method_queue.defer(self.finish_request, conn, outcome)

    def handle(self, conn: Connection) -> Any:
        try:
            # A body often follows its head in a packet of its own; the way back through the poller costs more.
            if not conn.gather() and not (conn.sock.wait_a_moment() and conn.gather()):
                return UNFINISHED
        except ClientDisconnected:
            return False
        conn.hand_over()
        return super().handle(conn)

    def handle_request(self, req: Any, conn: Connection) -> Any:
        conn.sock.request = req
        return super().handle_request(req, conn)

    def _keepalive_after(self, conn: Connection, keepalive: Any) -> bool:
        try:
            return bool(super()._keepalive_after(conn, keepalive))
        except (RequestTimeout, ClientDisconnected):
            return False

    def handle_error(self, req: Any, client: ClientSocket, addr: Any, exc: BaseException) -> None:
        if not isinstance(exc, RequestTimeout | ClientDisconnected):
            super().handle_error(req, client, addr, exc)
            return
        with suppress(OSError):
            client.sendall(raw_answer(exc))


def answering(application: Application) -> Application:
    """The application, with the two errors of a client's connection answered when it lets them pass.

    An answer given before the body was read closes the connection: the rest of the body must not be taken for the
    next request, and reading it first would keep a thread.
    """

    def wrapped(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        client: ClientSocket = environ["gunicorn.socket"]
        environ[ASIDE] = client.aside
        body = environ["wsgi.input"]  # which the application may put something else in the place of

        def start(*args: Any) -> Any:
            if body_is_unread(body):
                client.request.force_close()
            return start_response(*args)

        try:
            return application(environ, start)
        except (RequestTimeout, ClientDisconnected) as error:
            told = json_body(error)
            headers = [("Content-Type", "application/json"), ("Content-Length", str(len(told)))]
            start(f"{error.code} {error.name}", headers)
            return [told]

    return wrapped


def body_is_unread(body: Any) -> bool:
    """Whether bytes of the request body are still on their way, as far as gunicorn's reader knows."""
    reader = body.reader
    if body.failed:
        return True
    if hasattr(reader, "length"):
        return bool(reader.length > reader.unreader.buf.getbuffer().nbytes)
    return getattr(reader, "parser", None) is not None


def json_body(error: BadRequest | RequestTimeout) -> bytes:
    """The body that the API gives to any error of this kind."""
    return f'{{"message":"{error.code} {error.name}"}}'.encode()


def raw_answer(error: BadRequest | RequestTimeout) -> bytes:
    """A whole answer, for a request that the application never saw."""
    body = json_body(error)
    head = (
        f"HTTP/1.1 {error.code} {error.name}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
