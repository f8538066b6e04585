"""A remote server for tests: a real one on the loopback address."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Received:
    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class RemoteServer:
    """A real server on the loopback address with a response per path; it records the requests."""

    port: int = 0
    responses: dict[str, Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)

    def url(self, path: str = "/", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    def redirects(self, path: str, location: str, status: int = 302) -> None:
        self.responses[path] = lambda handler: reply(handler, status, location=location)


def reply(handler: BaseHTTPRequestHandler, status: int = 200, body: bytes = b"hello", **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-").title(), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


def raw(*pieces: bytes, pause: float = 0.0) -> Callable[[BaseHTTPRequestHandler], None]:
    """Answer with exactly these bytes, with a pause before each chunk."""

    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        for piece in pieces:
            time.sleep(pause)
            handler.wfile.write(piece)
            handler.wfile.flush()

    return respond


def body_of(handler: BaseHTTPRequestHandler) -> bytes:
    if "chunked" not in handler.headers.get("Transfer-Encoding", ""):
        return handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
    body = b""
    while size := int(handler.rfile.readline(), 16):
        body += handler.rfile.read(size)
        handler.rfile.readline()
    handler.rfile.readline()
    return body


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[RemoteServer]:
    remote = RemoteServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            remote.received.append(Received(self.requestline, dict(self.headers), body_of(self)))
            path = self.path.partition("?")[0]
            try:
                remote.responses.get(path, reply)(self)
            except ConnectionError:
                self.close_connection = True

        do_GET = do_HEAD = do_POST = do_PUT = respond

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            pass  # many of these tests disconnect

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    remote.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield remote
    finally:
        server.shutdown()
        server.server_close()
