"""A receiver of web hooks, and hooks that lead to it."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from project_service.domain.instance_settings import change_settings
from project_service.kit.db.session import db, unit_of_work


class Receiver(ThreadingHTTPServer):
    """Records requests; answers ``status``, ``headers`` and ``body``."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests, self.status, self.headers, self.body, self.released = [], 200, {}, b"thanks", threading.Event()
        self.released.set()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/hook"

    @property
    def bodies(self):
        return [json.loads(body) for _, _, body in self.requests]

    def header(self, name):
        return [headers[name] for _, headers, _ in self.requests]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        server = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.requests.append((self.path, self.headers, body))
        server.released.wait(20)
        self.send_response(server.status)
        for name, value in server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(server.body)))
        self.end_headers()
        self.wfile.write(server.body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def receiver():
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def local_hooks(app):
    """Hooks may lead to this machine."""
    with unit_of_work():
        change_settings({"allow_local_requests_from_web_hooks_and_services": True})
    db.session.remove()


@pytest.fixture
def make_hook(local_hooks, receiver, project, as_maintainer):
    def make(**fields):
        response = as_maintainer.post(f"/projects/{project.id}/hooks", json={"url": receiver.url} | fields)
        assert response.status_code == 201, response.json
        return response.json

    return make
