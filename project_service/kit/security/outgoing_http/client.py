"""HTTP client for URLs that users chose: every URL, redirects included, passes the URL rules first.

Times are seconds, sizes are bytes.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.client import HTTPException, responses
from typing import IO
from urllib.parse import urljoin

from urllib3 import BaseHTTPResponse, HTTPHeaderDict
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from project_service.kit.security.outgoing_http import rules
from project_service.kit.security.outgoing_http.rules import Policy, Resolver, Target

Body = bytes | IO[bytes] | Iterable[bytes]

ABSOLUTE_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
HEADER_NAME = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
# the only headers that follow a redirect to another origin: a deny list could never name every header with a secret
SAFE_HEADERS = frozenset({"accept", "accept-encoding", "accept-language", "range", "user-agent"})
CHUNK_BYTES = 64 * 1024
MAX_REASON_CHARACTERS = 100
TOO_LONG = "The request took too long"


class RequestFailed(Exception):
    """No complete response: refused, timed out, broken. The text has no secret and may be shown."""


@dataclass
class MinimumRate:
    """A minimum transfer rate: ``min_bytes`` in every ``seconds``, over all requests of a transfer.

    A socket timeout restarts with every byte, so a slow server could hold a worker for hours. Requests with a minimum
    rate fail when it is not reached. Response bodies are counted by the client, sent bytes by the sender.
    """

    min_bytes: int
    seconds: float
    too_slow: bool = False
    _moved: int = 0
    _ends: float = 0.0

    def __post_init__(self) -> None:
        self._ends = time.monotonic() + self.seconds

    def count(self, size: int) -> None:
        """Count transferred bytes."""
        self._moved += size

    def check_period(self) -> float:
        """Check the period that has ended, if one has; returns the seconds until the next check."""
        now = time.monotonic()
        if now >= self._ends:
            self.too_slow = self.too_slow or self._moved < self.min_bytes
            self._moved, self._ends = 0, now + self.seconds
        return self._ends - now

    def check(self) -> None:
        """Raise ``RequestFailed`` when the rate was too low."""
        if self.too_slow:
            raise RequestFailed("The remote server is too slow")


@dataclass(frozen=True)
class RemoteResponse:
    """The response of a remote server: status and headers at once, the body while the request is open."""

    status: int
    headers: Mapping[str, str]  # names in any case; a repeated header is one, joined by commas
    final_url: str = field(repr=False)  # after redirects, without user information; redact it before it is logged
    _response: BaseHTTPResponse = field(repr=False)
    _target: Target = field(repr=False)
    _deadline: float = field(repr=False)
    _minimum_rate: MinimumRate | None = field(default=None, repr=False)

    @property
    def reason(self) -> str:
        """The printable part of the reason phrase; the standard phrase if the server sent none."""
        phrase = "".join(filter(str.isprintable, self._response.reason or ""))[:MAX_REASON_CHARACTERS].strip()
        return phrase or responses.get(self.status, "")

    def iter_chunks(self, size: int = CHUNK_BYTES) -> Iterator[bytes]:
        """The body as it was sent, not decompressed, in pieces of ``size`` bytes; the last may be shorter.

        ``RequestFailed`` when it ends early or the time is over, so that a partial body never counts as complete.
        """
        while True:
            with _failures(self._target, self._deadline, self._minimum_rate):
                chunk = self._response.read(size, decode_content=False)
            if not chunk:
                return
            if self._minimum_rate is not None:
                self._minimum_rate.count(len(chunk))
            yield chunk

    def read(self, limit: int) -> bytes:
        """The whole body; ``RequestFailed`` when it has more than ``limit`` bytes."""
        body = bytearray()
        for chunk in self.iter_chunks(min(limit + 1, CHUNK_BYTES)):
            body += chunk
            if len(body) > limit:
                raise RequestFailed(f"The answer of {self._target.netloc} has more than {limit} bytes")
        return bytes(body)


@dataclass(frozen=True)
class Client:
    """Makes requests within a policy. It holds no connection and may be shared between threads.

    ``total_timeout`` counts from the call to the last byte read, over all redirects and the caller's own time while
    it reads. Proxies and credentials of the environment are not used.
    """

    policy: Policy
    connect_timeout: float = 5.0  # for name resolution, and for each address
    read_timeout: float = 10.0  # without a byte in either direction
    total_timeout: float = 60.0
    max_redirects: int = 5  # with 0 a redirect is a response like any other
    resolver: Resolver = socket.getaddrinfo
    tls: ssl.SSLContext | None = None  # certificate authorities other than the machine's
    minimum_rate: MinimumRate | None = None  # of the one transfer that this client serves

    @contextmanager
    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: Body | None = None,
        credentials: tuple[str, str] | None = None,
    ) -> Iterator[RemoteResponse]:
        """Send a request and yield the response with any status, for the ``with`` block.

        ``credentials`` are name and password for Basic authentication; a given Authorization header comes before
        them, the user information of the URL after them. A body that is not ``bytes`` goes out chunked unless
        ``headers`` has its Content-Length. GET and HEAD without a body follow redirects; to another origin goes
        nothing but harmless headers. Raises ``Blocked`` and ``RequestFailed``.
        """
        deadline = time.monotonic() + self.total_timeout
        target = self._validate(url, deadline)
        sent = HTTPHeaderDict(headers or {})
        if credentials is not None:
            sent.setdefault("Authorization", rules.basic_authorization(":".join(credentials).encode()))
        for _ in range(self.max_redirects + 1):
            if target.authorization is not None:
                sent.setdefault("Authorization", target.authorization)
            with self._exchange(method, target, sent, body, deadline) as response:
                is_followed = self.max_redirects > 0 and response.status in REDIRECT_STATUSES
                location = response.headers.get("Location") if is_followed else None
                if location is None:
                    yield RemoteResponse(
                        response.status, response.headers, target.url, response, target, deadline, self.minimum_rate
                    )
                    return
            if method not in ("GET", "HEAD") or body is not None:
                raise RequestFailed(f"{target.netloc} answered {method} with a redirect, which is not followed")
            # Only a relative address is joined: joining rewrites, and a signed URL must arrive as it was written.
            location = location if ABSOLUTE_URL.match(location) else urljoin(target.url, location)
            previous, target = target, self._validate(location, deadline)
            if target.origin != previous.origin:
                sent = HTTPHeaderDict((name, value) for name, value in sent.items() if name.lower() in SAFE_HEADERS)
        raise RequestFailed(f"More than {self.max_redirects} redirects")

    def head(self, url: str, *, headers: Mapping[str, str] | None = None) -> RemoteResponse:
        """Send HEAD; the body of the response is empty."""
        with self.request("HEAD", url, headers=headers) as answer:
            return answer

    def _validate(self, url: str, deadline: float) -> Target:
        return rules.validate(
            url, self.policy, self.resolver, resolve_seconds=min(self.connect_timeout, _remaining(deadline))
        )

    @contextmanager
    def _exchange(
        self, method: str, target: Target, headers: HTTPHeaderDict, body: Body | None, deadline: float
    ) -> Iterator[BaseHTTPResponse]:
        sent = HTTPHeaderDict(headers)
        sent["Host"] = target.netloc
        sent.setdefault("User-Agent", "project-service")
        _check_headers(sent)
        with _failures(target, deadline):
            connection = self._connect(target, deadline)
        # A socket timeout restarts with every byte. A watchdog shuts the socket down when the total time is over, which
        # ends every blocking call on it.
        over = threading.Event()
        watching = (connection.sock, deadline, self.minimum_rate, over)
        threading.Thread(target=_watch, args=watching, name="watchdog", daemon=True).start()
        with closing(connection):
            try:
                with _failures(target, deadline, self.minimum_rate):
                    response = _send(connection, method, sent, body)
                with closing(response):
                    yield response
            finally:
                over.set()

    def _connect(self, target: Target, deadline: float) -> HTTPConnection:
        failures: list[Exception] = []
        for address in target.addresses:
            connection = self._connection(target, address, min(self.connect_timeout, _remaining(deadline)))
            try:
                connection.connect()
            except (HTTPError, OSError) as error:
                connection.close()
                failures.append(error)
            else:
                connection.timeout = min(self.read_timeout, _remaining(deadline))
                return connection
        raise failures[-1]

    def _connection(self, target: Target, address: str, timeout: float) -> HTTPConnection:
        connection: _Connection
        if target.scheme == "https":
            connection = _TlsConnection(
                address,
                target.port,
                timeout=timeout,
                server_hostname=target.host,
                ssl_context=self.tls or _default_tls(),
            )
        else:
            connection = _Connection(address, target.port, timeout=timeout)
        connection.request_target = target.request_target
        return connection


class _Connection(HTTPConnection):
    """Sends ``request_target`` whatever the caller asked for.

    urllib3 quotes the address it was given when it warns of odd headers, and the query of a signed URL is a secret.
    So it is given "/" and cannot tell.
    """

    request_target = "/"

    def putrequest(self, method: str, url: str, skip_host: bool = False, skip_accept_encoding: bool = False) -> None:
        super().putrequest(method, self.request_target, skip_host, skip_accept_encoding)


class _TlsConnection(_Connection, HTTPSConnection):
    """The same over TLS; certificate and server name indication follow the name, not the address."""


@cache
def _default_tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _send(connection: HTTPConnection, method: str, headers: HTTPHeaderDict, body: Body | None) -> BaseHTTPResponse:
    # A server may refuse an upload before its end; read its response all the same.
    with suppress(BrokenPipeError, ConnectionResetError):
        connection.request(method, "/", body=body, headers=headers, preload_content=False, decode_content=False)
    return connection.getresponse()


def _check_headers(headers: HTTPHeaderDict) -> None:
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name) or not HEADER_VALUE.fullmatch(value):
            raise RequestFailed(f"The header {name!r} has characters that cannot be sent")


@contextmanager
def _failures(target: Target, deadline: float, minimum_rate: MinimumRate | None = None) -> Iterator[None]:
    """Turn what the network layers raise into ``RequestFailed``, and also success that came too late."""
    try:
        yield
    except (HTTPError, HTTPException, OSError) as error:
        _check_time(deadline, minimum_rate)
        raise RequestFailed(f"Request to {target.netloc} failed: {_reason(error)}") from error
    _check_time(deadline, minimum_rate)


def _check_time(deadline: float, minimum_rate: MinimumRate | None) -> None:
    """Raise ``RequestFailed`` when this side has ended the request, whatever came of that."""
    _remaining(deadline)
    if minimum_rate is not None:
        minimum_rate.check()


def _reason(error: BaseException | None) -> str:
    """The cause, in words of the operating system or ours: other texts may quote the request."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"certificate verify failed: {error.verify_message}"
        if isinstance(error, ssl.SSLError):
            return "TLS failed"
        if isinstance(error, TimeoutError):
            return "timed out"
        if isinstance(error, OSError) and error.errno is not None:
            return os.strerror(error.errno)
        error = error.__cause__ or error.__context__
    return "the answer is incomplete or not HTTP"


def _remaining(deadline: float) -> float:
    """Seconds until the deadline; ``RequestFailed`` when it is over."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise RequestFailed(TOO_LONG)
    return seconds


def _watch(sock: socket.socket, deadline: float, minimum_rate: MinimumRate | None, over: threading.Event) -> None:
    """Shut a socket down at the deadline or when the rate is too low, unless the request ends first."""
    while True:
        seconds_left = deadline - time.monotonic()
        until_look = seconds_left if minimum_rate is None else minimum_rate.check_period()
        if seconds_left <= 0 or (minimum_rate is not None and minimum_rate.too_slow):
            _shut(sock)
            return
        if over.wait(min(seconds_left, until_look)):
            return


def _shut(sock: socket.socket) -> None:
    # Not sock.shutdown: that of a TLS socket also takes its TLS layer away under the thread that is reading.
    with suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
