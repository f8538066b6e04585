"""One client with 200 slow connections delays nobody else: bodies, archives and git on the started service."""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import threading
import time
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import pytest

from tests.contract.service import TOKEN, Service, git

SLOW_CLIENTS = 200
LARGE_BODY_BYTES = 15_000_000
COMMAND = f"{'0' * 40} {'1' * 40} refs/heads/slow\0report-status\n".encode()
PUSH_COMMAND = b"%04x%s0000PACK" % (len(COMMAND) + 4, COMMAND)
BASIC = base64.b64encode(f"root:{TOKEN}".encode()).decode()


class Shop:
    """A service with a public project, whose repository has a file of 8 MiB, and its clients."""

    def __init__(self, service, directory):
        self.address = urlsplit(service.url)
        self.id = self.post("/projects", name="shop", visibility="public")["id"]
        self.key = self.post(f"/projects/{self.id}/error_tracking/client_keys")["public_key"]
        self.git_url = f"http://root:{TOKEN}@{self.address.netloc}/root/shop.git"
        self.folder = directory / "work"
        self.folder.mkdir()
        git(self.folder, "init", "-q", "-b", "main")
        (self.folder / "random").write_bytes(os.urandom(8 << 20))
        git(self.folder, "add", ".")
        git(self.folder, "commit", "-qm", "First")
        git(self.folder, "push", "-q", self.git_url, "main")

    def request(self, method, target, body=None, **headers):
        connection = http.client.HTTPConnection(self.address.netloc, timeout=30)
        try:
            connection.request(method, target, body, {"Content-Type": "application/json", **headers})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def post(self, path, **fields):
        return json.loads(self.request("POST", f"/api/v4{path}", json.dumps(fields), **{"PRIVATE-TOKEN": TOKEN})[2])

    def open(self, stack, method, target, length=0, **headers):
        """Send the head of a request on a connection of its own that receives slowly."""
        connection = stack.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((self.address.hostname, self.address.port))
        lines = "".join(f"{name}: {value}\r\n" for name, value in {"Host": "here", **headers}.items())
        connection.sendall(f"{method} {target} HTTP/1.1\r\n{lines}Content-Length: {length}\r\n\r\n".encode())
        return connection

    def seconds_of_others(self):
        """How long a fetch and the archive of another, anonymous client take together."""
        began = time.monotonic()
        git(self.folder, "ls-remote", self.git_url.replace(f"root:{TOKEN}@", ""))
        assert self.request("GET", f"/api/v4/projects/{self.id}/repository/archive.zip")[0] == 200
        return time.monotonic() - began


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("shares"))
    service.start()
    yield Shop(service, service.directory)
    service.stop()


def slow_targets(shop):
    pack = {"Authorization": f"Basic {BASIC}", "Content-Type": "application/x-git-receive-pack-request"}
    return {
        "envelope": (
            f"/api/v4/error_tracking/collector/api/{shop.id}/envelope/",
            {"X-Sentry-Auth": f"Sentry sentry_key={shop.key}"},
            b'{}\n{"type":"event","length":14000000}\n{"message":"',
        ),
        "push": ("/root/shop.git/git-receive-pack", pack, PUSH_COMMAND),
        "import": ("/api/v4/projects/import", {"PRIVATE-TOKEN": TOKEN}, b""),
    }


@pytest.mark.parametrize("kind", ["envelope", "push", "import"])
def test_slow_bodies_do_not_delay_git_and_downloads(shop, kind):
    target, headers, begin = slow_targets(shop)[kind]
    stop = threading.Event()
    with ExitStack() as stack:
        slow = [shop.open(stack, "POST", target, LARGE_BODY_BYTES, **headers) for _ in range(SLOW_CLIENTS)]

        for connection in slow:
            connection.sendall(begin)

        def trickle():
            while not stop.wait(0.5):
                for connection in slow:
                    with suppress(OSError):
                        connection.send(b"x" * 800)

        sending = threading.Thread(target=trickle)
        sending.start()
        time.sleep(1)
        try:
            assert shop.seconds_of_others() < 10
        finally:
            stop.set()
            sending.join()


def test_slow_downloads_of_one_user_leave_archives_for_others(shop):
    with ExitStack() as stack:
        target, token = f"/api/v4/projects/{shop.id}/repository/archive.zip", {"PRIVATE-TOKEN": TOKEN}
        slow = [shop.open(stack, "GET", target, **token) for _ in range(24)]
        time.sleep(1)

        assert shop.seconds_of_others() < 10
        for connection in slow:
            connection.settimeout(30)
        statuses = [connection.recv(12) for connection in slow]

    assert set(statuses) <= {b"HTTP/1.1 200", b"HTTP/1.1 503"}
    assert statuses.count(b"HTTP/1.1 503") >= 4


@pytest.mark.parametrize(("headers", "length"), [({}, 2_000_000), ({"PRIVATE-TOKEN": TOKEN}, LARGE_BODY_BYTES)])
def test_a_body_that_is_too_large_is_refused_before_it_is_received(shop, headers, length):
    with ExitStack() as stack:
        connection = shop.open(stack, "POST", "/api/v4/projects", length, **headers)
        connection.settimeout(10)

        assert connection.recv(12) == b"HTTP/1.1 413"
