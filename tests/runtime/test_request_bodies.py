"""Request bodies whose framing is broken, sent to the started service."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
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


def test_a_whole_chunked_body_is_read(service):
    status, text = post(service, "/api/v4/projects", JSON, b'2\r\n{"\r\n11\r\nname": "chunked"}\r\n0\r\n\r\n')

    assert (status, '"path":"chunked"' in text) == (201, True)
