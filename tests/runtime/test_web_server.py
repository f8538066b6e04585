"""The web server as it is shipped, in front of a small application."""

from __future__ import annotations

import http.client
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from tests.runtime.test_supervisor import soon

SHIPPED = "project_service.runtime.web_server"
IMPATIENT = "tests.runtime.short_timeouts"
REPOSITORY = Path(__file__).parents[2]
TOO_SLOW = {"message": "408 Request Timeout"}


TRIES = 3


@dataclass
class Server:
    """A running server."""

    port: int
    process: subprocess.Popen[bytes]
    uploads: Path

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def get(self, target: str) -> tuple[int, dict[str, object]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", target)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def seconds_of_a_list(self) -> float:
        began = time.monotonic()
        assert self.get("/list")[0] == 200
        return time.monotonic() - began

    def has_noted(self, what: str) -> bool:
        return self.uploads.with_name(what).exists()


@contextmanager
def running(config: str, directory: Path, files: tuple[int, int] | None = None) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        number = listener.fileno()
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "gunicorn",
                f"--config=python:{config}",
                "--workers=2",
                f"--bind=fd://{number}",
                "tests.runtime.echo:app",
            ],
            cwd=REPOSITORY,
            env={**os.environ, "UPLOADS": str(directory / "uploads")},
            pass_fds=(number,),
        )
        if files is not None:
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, files)
        server = Server(listener.getsockname()[1], process, directory / "uploads")
    try:
        assert server.get("/")[0] == 200
        yield server
    finally:
        process.terminate()
        process.wait(timeout=60)


def workers_of(server: Server) -> list[int]:
    """The worker processes of a server."""
    master = server.process.pid
    return [int(pid) for pid in Path(f"/proc/{master}/task/{master}/children").read_text().split()]


def memory_of(server: Server) -> int:
    """The memory of the workers, in MiB."""
    rolled = [Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() for pid in workers_of(server)]
    return sum(int(line.split()[1]) for lines in rolled for line in lines if line.startswith("Pss:")) >> 10


def percentile_of_lists(server: Server, seconds: float) -> float:
    """The seconds within which 99 of 100 lists are answered."""
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        times.append(server.seconds_of_a_list())
        time.sleep(0.02)
    return sorted(times)[int(len(times) * 0.99)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(SHIPPED, tmp_path_factory.mktemp("shipped")) as started:
        yield started


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(IMPATIENT, tmp_path_factory.mktemp("impatient")) as started:
        yield started


@pytest.fixture
def clients() -> Iterator[Callable[[Server, bytes], socket.socket]]:
    """Connects and sends; what is still open at the end is closed."""
    with ExitStack() as opened:

        def client(server: Server, sent: bytes) -> socket.socket:
            connection = opened.enter_context(server.connect())
            connection.sendall(sent)
            return connection

        yield client


Clients = Callable[[Server, bytes], socket.socket]


def post(target: str, length: int) -> bytes:
    return f"POST {target} HTTP/1.1\r\nHost: here\r\nContent-Length: {length}\r\n\r\n".encode()


def responses(connection: socket.socket, number: int = 1) -> list[tuple[int, dict[str, object]]]:
    """The next answers on the connection."""
    found = []
    reader = connection.makefile("rb")
    for _ in range(number):
        status = int(reader.readline().split()[1])
        headers = http.client.parse_headers(reader)
        found.append((status, json.loads(reader.read(int(headers["Content-Length"])))))
    return found


def trickle(connections: list[socket.socket], stop: threading.Event, every: float = 1.0) -> None:
    """Send a byte on each connection ``every`` so many seconds."""
    while not stop.wait(every):
        for connection in connections:
            with suppress(OSError):
                connection.send(b"x")


SLOW = [
    (post("/upload", 5_000_000) + bytes(66_000), b"x"),
    (post("/upload", 5_000_000) + bytes(66_000), b"x" * 700),
    (b"GET /list HTTP/1.1\r\nHost: here\r\n" + b"X-Some: header\r\n" * 90, b""),
]


@pytest.mark.parametrize(
    ("slow", "idle", "seconds"), [(100, 200, 4), pytest.param(1000, 2000, 20, marks=pytest.mark.nightly)]
)
def test_slow_and_idle_connections_do_not_delay_a_list(
    tmp_path: Path, clients: Clients, slow: int, idle: int, seconds: float
) -> None:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files[1], files[1]))
    stop = threading.Event()
    with running(SHIPPED, tmp_path) as server:
        for _ in range(idle):
            clients(server, b"")
        connections = [(clients(server, SLOW[number % 3][0]), SLOW[number % 3][1]) for number in range(slow)]

        def send_slowly() -> None:
            while not stop.wait(0.5):
                for connection, data in connections:
                    with suppress(OSError):
                        connection.send(data)

        sending = threading.Thread(target=send_slowly, daemon=True)
        sending.start()
        found = percentile_of_lists(server, seconds)
        stop.set()
        sending.join()

    resource.setrlimit(resource.RLIMIT_NOFILE, files)
    assert found < 1


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"GET /list HTTP/1.1\r\nHost: he", id="head"),
        pytest.param(post("/upload", 1000) + b"x", id="small body"),
        pytest.param(post("/upload", 1_000_000) + bytes(70_000), id="large body"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", id="chunk"),
    ],
)
def test_a_stalling_client_gets_408(impatient: Server, clients: Clients, sent: bytes) -> None:
    stalled = clients(impatient, sent)

    assert responses(stalled) == [(408, TOO_SLOW)]
    assert stalled.recv(1) == b""


def test_request_headers_have_a_time_limit(impatient: Server, clients: Clients) -> None:
    client = clients(impatient, b"GET / HTTP/1.1\r\nX-Long: ")
    stop = threading.Event()
    trickling = threading.Thread(target=trickle, args=([client], stop, 0.05), daemon=True)
    trickling.start()

    assert responses(client) == [(408, TOO_SLOW)]
    stop.set()
    trickling.join()


def test_a_silent_connection_is_closed_without_a_response(impatient: Server, clients: Clients) -> None:
    assert clients(impatient, b"").recv(1) == b""


def test_a_slow_body_above_the_minimum_rate_is_accepted(impatient: Server, clients: Clients) -> None:
    for _ in range(TRIES):
        client, moments = clients(impatient, post("/upload", 100_000)), [time.monotonic()]
        with suppress(ConnectionError):
            for _ in range(10):
                time.sleep(0.1)
                moments.append(time.monotonic())
                client.sendall(bytes(10_000))
        [(status, told)] = responses(client)
        if status == 200 or all(later - earlier < 0.2 for earlier, later in pairwise(moments)):
            break  # else it was us who did not keep the pace, on a machine that does other work too

    assert (status, told.get("read")) == (200, 100_000)


def test_a_client_that_does_not_read_its_response_is_disconnected(impatient: Server, clients: Clients) -> None:
    idle = clients(impatient, b"GET /big HTTP/1.1\r\nHost: here\r\n\r\n")
    assert soon(lambda: impatient.has_noted("left"))

    received = 0
    while data := idle.recv(1 << 20):
        received += len(data)
    assert received < 64 * 1024 * 1024


def test_a_large_response_is_complete(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", "/big")

    assert len(connection.getresponse().read()) == 64 * 1024 * 1024
    connection.close()


@pytest.mark.parametrize("mebibytes", [128, pytest.param(1024, marks=pytest.mark.nightly)])
def test_a_streamed_response_does_not_delay_lists_or_use_memory(server: Server, mebibytes: int) -> None:
    before, received = memory_of(server), []

    def download() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("GET", f"/big?{mebibytes << 20}")
        response = connection.getresponse()
        while data := response.read(1 << 20):
            received.append(len(data))
            time.sleep(0.005)
        connection.close()

    downloading = threading.Thread(target=download, daemon=True)
    downloading.start()
    slowest, most = 0.0, 0
    while downloading.is_alive():
        slowest = max(slowest, percentile_of_lists(server, 0.3))
        most = max(most, memory_of(server))

    assert (sum(received) >> 20, slowest < 0.5, most - before < 64) == (mebibytes, True, True)


def test_waiting_writes_do_not_delay_a_list(server: Server, clients: Clients) -> None:
    for _ in range(60):
        clients(server, post("/slow", 0))

    assert server.seconds_of_a_list() < 0.5


def test_a_large_body_is_spooled_to_the_configured_directory(server: Server, clients: Clients) -> None:
    client = clients(server, post("/upload", 1_000_000) + bytes(500_000))

    def files() -> list[str]:
        found = []
        for pid in workers_of(server):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    found.append(os.readlink(descriptor))
        return [name for name in found if name.endswith("(deleted)") and "/wgunicorn-" not in name]

    assert soon(lambda: any(name.startswith(str(server.uploads.parent)) for name in files()))
    client.sendall(bytes(500_000))
    assert responses(client)[0][1]["read"] == 1_000_000


def test_bodies_of_any_size_are_read_completely(server: Server, clients: Clients) -> None:
    client = clients(server, post("/upload", 30_000_000))

    client.sendall(bytes(30_000_000))

    assert responses(client)[0][1]["read"] == 30_000_000


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"GET / HTTP/1.1\r\n" + b"X-A: b\r\n" * 9000, 431, id="many header lines"),
        pytest.param(b"GET / HTTP/1.1\r\nX-A: " + b"a" * 72_000, 431, id="long header line"),
        pytest.param(b"GET /" + b"a" * 72_000, 414, id="long request line"),
        pytest.param(b"nothing\r\n\r\n", 400, id="no request"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n", 400, id="chunk"
        ),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            403,
            id="WebSocket",
        ),
    ],
)
def test_invalid_requests_are_refused(server: Server, clients: Clients, sent: bytes, status: int) -> None:
    assert int(clients(server, sent).makefile("rb").readline().split()[1]) == status


def test_the_limit_of_open_files_is_raised(tmp_path: Path) -> None:
    with running(SHIPPED, tmp_path, files=(300, 1000)) as server:
        both_workers(server)
        limits = [resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in workers_of(server)]

    assert limits == [(1000, 1000)] * 2


def test_idle_connections_are_closed_for_new_ones(tmp_path: Path, clients: Clients) -> None:
    with running(SHIPPED, tmp_path, files=(260, 260)) as server:
        for _ in range(500):
            clients(server, b"")

        assert server.seconds_of_a_list() < 1


def test_clients_of_refused_bodies_receive_the_response(server: Server, clients: Clients) -> None:
    client = clients(server, post("/refuse", 30_000_000))

    client.sendall(bytes(30_000_000))

    assert responses(client)[0][0] == 401
    client.sendall(b"GET /next HTTP/1.1\r\nHost: here\r\n\r\n")
    assert responses(client)[0][1]["raw"] == "/next"


def test_a_refused_small_body_keeps_the_connection(server: Server, clients: Clients) -> None:
    client = clients(server, (post("/refuse", 1000) + bytes(1000)) * 2)

    assert [status for status, _ in responses(client, 2)] == [401, 401]


def test_a_body_can_be_read_twice(server: Server, clients: Clients) -> None:
    client = clients(server, (post("/again", 1000) + bytes(1000)) * 2)

    assert [(status, told["read"]) for status, told in responses(client, 2)] == [(200, 1000)] * 2


def test_an_incomplete_body_is_not_processed(server: Server, clients: Clients) -> None:
    clients(server, post("/upload", 200_000) + bytes(100_000)).close()
    clients(server, post("/upload", 200_000) + bytes(200_000)).recv(1)

    assert server.uploads.read_text().splitlines()[-1:] == ["200000"]
    assert "100000" not in server.uploads.read_text().splitlines()


@pytest.mark.parametrize("size", [1000, 30_000_000])
def test_concurrent_bodies_of_one_address_are_limited(
    tmp_path: Path, server: Server, clients: Clients, size: int
) -> None:
    def sent_by(address: str, length: int) -> bytes:
        return post("/", length).replace(b"Host", f"X-Client: {address}\r\nHost".encode())

    statuses = Counter[int]()
    for number in range(100):  # until the worker that takes the next connection has 3, however the two share them
        clients(server, sent_by(f"2001:db8::{number:x}", size))
        time.sleep(0.02)
        statuses[responses(clients(server, sent_by("2001:db8::f:1", 1) + b"x"))[0][0]] += 1
        if statuses[429]:
            break
    others = Counter(
        responses(clients(server, sent_by(address, 1) + b"x"))[0][0]
        for address in ("2001:db8:0:1::1", "192.0.2.1", "127.0.0.1")
        for _ in range(4)
    )

    assert statuses[429] == 1
    assert statuses[200] >= 2
    assert others == {200: 12}


def test_headers_with_underscores_do_not_replace_hyphens(server: Server, clients: Clients) -> None:
    sent = b"GET / HTTP/1.1\r\nHost: here\r\nX_Forwarded_For: 192.0.2.1\r\nX-Forwarded_For: 192.0.2.2\r\n\r\n"

    assert responses(clients(server, sent))[0][1]["forwarded"] is None


def test_the_request_target_is_passed_unchanged(server: Server) -> None:
    assert server.get("/api/v4/projects/a%2Fb?x=%2F")[1]["raw"] == "/api/v4/projects/a%2Fb?x=%2F"


def test_request_targets_are_limited_to_eight_kilobytes(server: Server, clients: Clients) -> None:
    assert server.get("/" + "a" * 8000)[0] == 200
    refused = clients(server, b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: here\r\n\r\n")
    assert refused.makefile("rb").readline().split()[1] == b"414"


def test_forwarded_headers_are_left_to_the_application(server: Server, clients: Clients) -> None:
    client = clients(server, b"GET / HTTP/1.1\r\nHost: here\r\nX-Forwarded-Proto: https\r\n\r\n")

    assert responses(client)[0][1]["scheme"] == "http"


def test_pipelined_requests_are_answered_in_order(server: Server, clients: Clients) -> None:
    client = clients(server, b"GET /1 HTTP/1.1\r\nHost: here\r\n\r\n" + post("/2", 5) + b"12345" + post("/3", 0))

    assert [(body["raw"], body["read"]) for _, body in responses(client, 3)] == [("/1", 0), ("/2", 5), ("/3", 0)]


def test_chunked_bodies_are_read_completely(server: Server, clients: Clients) -> None:
    client = clients(server, b"POST /1 HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n")
    time.sleep(0.1)
    client.sendall(b"5\r\n12345\r\n3\r\n678\r\n0\r\n\r\nGET /2 HTTP/1.1\r\nHost: here\r\n\r\n")

    assert [(body["raw"], body["read"]) for _, body in responses(client, 2)] == [("/1", 8), ("/2", 0)]


def test_expect_100_continue_is_answered(server: Server, clients: Clients) -> None:
    client = clients(server, post("/upload", 5).replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))

    assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.sendall(b"12345")
    assert responses(client)[0][1]["read"] == 5


def seconds_of_a_stop(directory: Path) -> float:
    """How long a server with a connection that idles goes on when the running request has ended."""
    directory.mkdir()
    with running(SHIPPED, directory) as server, server.connect() as client, server.connect():
        client.sendall(b"GET /slow HTTP/1.1\r\nHost: here\r\n\r\n")
        assert soon(lambda: server.has_noted("begun"))
        server.process.send_signal(signal.SIGTERM)

        assert responses(client)[0][0] == 200
        began = time.monotonic()
        assert server.process.wait(timeout=60) == 0
        return time.monotonic() - began


def test_a_stop_lets_running_requests_end(tmp_path: Path) -> None:
    assert seconds_of_a_stop(tmp_path / "server") < 5


def distribution(server: Server, count: int = 8) -> Counter[object]:
    """How many of some connections that are opened at once each worker has."""
    with ExitStack() as opened:
        kept = [opened.enter_context(server.connect()) for _ in range(count)]
        for one in kept:
            one.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        return Counter(responses(one)[0][1]["pid"] for one in kept)


def both_workers(server: Server) -> set[object]:
    """The two workers, once both answer."""
    deadline = time.monotonic() + 60
    recent: deque[object] = deque(maxlen=8)
    while len(set(recent)) < 2:
        assert time.monotonic() < deadline
        recent.append(server.get("/")[1]["pid"])
    return set(recent)


@pytest.mark.parametrize("tries", [10, pytest.param(50, marks=pytest.mark.nightly)])
def test_connections_opened_together_are_spread_over_the_workers(tmp_path: Path, tries: int) -> None:
    with running(SHIPPED, tmp_path) as server:
        both_workers(server)
        most = [max(distribution(server).values()) for _ in range(tries)]

    # A worker that the machine does not schedule for a moment leaves its share of one try to the other.
    assert statistics.median(most) <= 5


def test_a_worker_that_hangs_does_not_stop_the_others(tmp_path: Path) -> None:
    with running(SHIPPED, tmp_path) as server, ExitStack() as hanging:
        both_workers(server)
        [pid, _] = workers_of(server)
        os.kill(pid, signal.SIGSTOP)
        hanging.callback(os.kill, pid, signal.SIGCONT)
        began = time.monotonic()
        kept = [hanging.enter_context(server.connect()) for _ in range(8)]
        for one in kept:
            one.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")

        assert [responses(one)[0][0] for one in kept] == [200] * 8
        assert time.monotonic() - began < 5
