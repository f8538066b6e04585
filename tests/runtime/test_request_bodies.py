"""Request bodies whose framing is broken, sent to the started service."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from tests.contract.service import TOKEN, Service

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=b"
TARGETS = [
    ("/api/v4/projects", JSON),
    ("/api/v4/projects", FORM),
    ("/api/v4/projects", "text/plain"),
    ("/api/v4/projects/import", MULTIPART),
    ("/users/sign_in", FORM),
    ("/users/sign_in", MULTIPART),
    ("/no/such/project/alerts/notify.json", JSON),
]
BODIES = {
    "size is no number": b"ZZ\r\n{}\r\n0\r\n\r\n",
    "size is negative": b"-2\r\n{}\r\n0\r\n\r\n",
    "chunk is longer than its size": b"2\r\n{}}\r\n0\r\n\r\n",
    "second size is no number": b"2\r\n{}\r\nZZ\r\n\r\n",
}

CHUNKED = b"Transfer-Encoding: chunked\r\n"
PIPELINED = b"GET /-/liveness HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
# headers and body of a request, and the statuses of it and of the one that follows; none where the connection is closed
FRAMING = {
    "a length and chunks": (b"Content-Length: 6\r\n" + CHUNKED, b"0\r\n\r\nX", [400]),
    "chunks and a length": (CHUNKED + b"Content-Length: 4\r\n", b"2\r\n{}\r\n0\r\n\r\n", [400]),
    "two lengths": (b"Content-Length: 2\r\nContent-Length: 3\r\n", b"{}x", [400]),
    "a list of lengths": (b"Content-Length: 2, 2\r\n", b"{}", [400]),
    "a negative length": (b"Content-Length: -2\r\n", b"{}", [400]),
    "a length with a sign": (b"Content-Length: +2\r\n", b"{}", [400]),
    "a length with an underscore": (b"Content-Length: 1_0\r\n", b"{}" * 5, [400]),
    "a blank before the colon": (b"Content-Length : 2\r\n", b"{}", [400]),
    "a header line that is folded": (b"Transfer-Encoding:\r\n chunked\r\n", b"2\r\n{}\r\n0\r\n\r\n", [400]),
    "chunks twice": (CHUNKED * 2, b"2\r\n{}\r\n0\r\n\r\n", [400]),
    "chunks inside another coding": (b"Transfer-Encoding: chunked, gzip\r\n", b"0\r\n\r\n", [400]),
    "an unknown coding": (b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n", [501]),
    "a chunk extension": (CHUNKED, b'2;a="b"\r\n{}\r\n0;x\r\n\r\n', [400, 200]),
    "a chunk extension with a line end": (CHUNKED, b"2;a\nb\r\n{}\r\n0\r\n\r\n", [400]),
    "a chunk size with a prefix": (CHUNKED, b"0x2\r\n{}\r\n0\r\n\r\n", [400]),
    "a chunk size with a blank": (CHUNKED, b"2 \r\n{}\r\n0\r\n\r\n", [400]),
    "a chunk that ends with a line feed": (CHUNKED, b"2\n{}\r\n0\r\n\r\n", [400]),
    "a chunk without an end": (CHUNKED, b"2\r\n{}0\r\n\r\n", [400]),
    "a trailer": (CHUNKED, b"2\r\n{}\r\n0\r\nX-Checksum: 1\r\n\r\n", [400, 200]),
    "a trailer with a length": (CHUNKED, b"2\r\n{}\r\n0\r\nContent-Length: 50\r\n\r\n", [400]),
    "too many trailers": (CHUNKED, b"2\r\n{}\r\n0\r\n" + b"A: b\r\n" * 5000 + b"\r\n", [431]),
    "a valid body": (b"Content-Length: 2\r\n", b"{}", [400, 200]),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A running service."""
    started = Service(tmp_path_factory.mktemp("bodies"), is_measured=True)
    started.start()
    yield started
    started.stop()


def post(service: Service, path: str, content_type: str, body: bytes) -> tuple[int, str]:
    """Send a chunked body as it is given; the status and the text of the response."""
    address = urlsplit(service.url)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nPRIVATE-TOKEN: {TOKEN}\r\n"
        f"Content-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(head.encode() + body)
        response = http.client.HTTPResponse(connection, method="POST")
        response.begin()
        return response.status, response.read().decode()


def test_a_malformed_chunked_body_is_a_bad_request(service):
    statuses = {
        (path, content_type, kind): post(service, path, content_type, body)[0]
        for path, content_type in TARGETS
        for kind, body in BODIES.items()
    }

    assert statuses == dict.fromkeys(statuses, 400)
    assert "Traceback" not in service.log.read_text()
    assert service.lines(level="error") == []


def test_a_complete_chunked_body_is_read(service):
    status, text = post(service, "/api/v4/projects", JSON, b'2\r\n{"\r\n11\r\nname": "chunked"}\r\n0\r\n\r\n')

    assert (status, '"path":"chunked"' in text) == (201, True)


@pytest.mark.parametrize(("headers", "body", "statuses"), FRAMING.values(), ids=FRAMING)
def test_request_smuggling_is_prevented(service, headers, body, statuses):
    address = urlsplit(service.url)
    head = (
        f"POST /api/v4/projects HTTP/1.1\r\nHost: here\r\nPRIVATE-TOKEN: {TOKEN}\r\nContent-Type: {JSON}\r\n".encode()
    )
    received = b""
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(head + headers + b"\r\n" + body + PIPELINED)
        with suppress(ConnectionResetError):
            while data := connection.recv(65536):
                received += data

    assert [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", received)] == statuses


def test_a_stop_does_not_wait_for_malformed_bodies(tmp_path):
    service = Service(tmp_path / "stopping")
    service.start()
    address = urlsplit(service.url)
    head = (
        f"POST /api/v4/projects HTTP/1.1\r\nHost: here\r\nPRIVATE-TOKEN: {TOKEN}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    connections = [socket.create_connection((address.hostname, address.port)) for _ in range(2 * len(BODIES))]
    for connection, body in zip(connections, [*BODIES.values()] * 2, strict=True):
        connection.sendall(head.encode() + body)

    seconds = service.stop()

    for connection in connections:
        connection.close()
    assert seconds < 15
