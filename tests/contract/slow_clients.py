"""A public project with a repository, and clients that are slow, to see what they take from others."""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import ssl
import threading
import time
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from tests.contract.service import TOKEN, git

SLOW_CLIENTS = 200
SLOW_ADDRESS = "127.0.0.9"
LARGE_BODY_BYTES = 15_000_000
COMMAND = f"{'0' * 40} {'1' * 40} refs/heads/slow\0report-status\n".encode()
PUSH_COMMAND = b"%04x%s0000PACK" % (len(COMMAND) + 4, COMMAND)
BASIC = base64.b64encode(f"root:{TOKEN}".encode()).decode()


class Shop:
    """A service with a public project, whose repository has a file of 8 MiB, and its clients.

    The slow ones come through a proxy, if there is one, from an address of their own.
    """

    def __init__(self, service, directory, proxy=None):
        self.address, self.proxy = urlsplit(service.url), proxy
        self.id = self.post("/projects", name="shop", visibility="public")["id"]
        settings = json.dumps({"active": True, "integrated": True})
        target = f"/api/v4/projects/{self.id}/error_tracking/settings"
        assert self.request("PUT", target, settings, **{"PRIVATE-TOKEN": TOKEN})[0] == 200
        self.key = self.post(f"/projects/{self.id}/error_tracking/client_keys")["public_key"]
        self.archive = f"/api/v4/projects/{self.id}/repository/archive.zip"
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
        if self.proxy is None:
            connection.connect((self.address.hostname, self.address.port))
        else:
            connection.bind((SLOW_ADDRESS, 0))
            connection.connect(("127.0.0.1", self.proxy.secure))
            context = ssl._create_unverified_context()
            connection = stack.enter_context(context.wrap_socket(connection, server_hostname=self.proxy.host))
        host = self.proxy.host if self.proxy else "here"
        lines = "".join(f"{name}: {value}\r\n" for name, value in {"Host": host, **headers}.items())
        connection.sendall(f"{method} {target} HTTP/1.1\r\n{lines}Content-Length: {length}\r\n\r\n".encode())
        return connection

    def seconds_of_others(self):
        """How long a fetch and the archive of another, anonymous client take together."""
        began = time.monotonic()
        if self.proxy is not None:
            for target in ("/root/shop.git/info/refs?service=git-upload-pack", self.archive):
                assert self.proxy.get(target, headers={"PRIVATE-TOKEN": ""})[0] == 200
            return time.monotonic() - began
        git(self.folder, "ls-remote", self.git_url.replace(f"root:{TOKEN}@", ""))
        assert self.request("GET", self.archive)[0] == 200
        return time.monotonic() - began


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


@contextmanager
def slow_bodies(shop, stack, kind):
    """Send bodies of one kind on many connections, at a rate just above the least."""
    target, headers, begin = slow_targets(shop)[kind]
    stop = threading.Event()
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
        yield
    finally:
        stop.set()
        sending.join()


def slow_downloads(shop, stack):
    """Request an archive 24 times as one user, and read nothing."""
    token = {"PRIVATE-TOKEN": TOKEN}
    slow = [shop.open(stack, "GET", shop.archive, **token) for _ in range(24)]
    time.sleep(1)
    return slow
