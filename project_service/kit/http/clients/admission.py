"""What the web server has to know of a request before it receives the body and calls the application.

Credentials are only looked at, not verified: they tell whose share of threads, downloads and stored bodies a request
uses. The application authenticates the caller as if there were no shares.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from project_service.kit.http.clients.proxies import network_of

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment

READ_METHODS = ("GET", "HEAD", "OPTIONS")
READ, WRITE, SEARCH, OUTGOING, CODE, GIT = (
    "read",
    "write",
    "search",
    "outgoing",
    "code",
    "git",
)  # kinds of work, each with threads of its own


@dataclass(frozen=True, slots=True)
class Work:
    """What a request asks for: the kind of work, and the largest body that is received without further checks.

    - ``is_long``: the response may be large, so that its client decides how long it takes.
    - ``asks_for_more``: authenticated senders may send larger bodies, see ``Admission.max_body_bytes``.
    """

    kind: str = READ
    max_body_bytes: int = sys.maxsize
    is_long: bool = False
    asks_for_more: bool = False


@dataclass(frozen=True, slots=True)
class RequestSender:
    """Who sent a request, as far as its headers tell.

    ``credential`` is a digest of the token, key or session, ``address`` an address or IPv6 network; each is ``None``
    where there is none, or where an address says nothing.
    """

    credential: str | None = None
    address: str | None = None


class Admission(Protocol):
    """What an application tells the web server."""

    def work_of(self, environ: WSGIEnvironment) -> Work:
        """Return what a request asks for; called in the event loop."""

    def sender_of(self, environ: WSGIEnvironment) -> RequestSender:
        """Return who sent a request; called in the event loop."""

    def max_body_bytes(self, environ: WSGIEnvironment) -> int:
        """Return how large the body of a request may be, once its sender was authenticated; called in a thread."""


class PlainAdmission:
    """For any WSGI application: work is divided by method, bodies have no limit."""

    def work_of(self, environ: WSGIEnvironment) -> Work:
        """Return reading or writing."""
        return Work(READ if environ["REQUEST_METHOD"] in READ_METHODS else WRITE)

    def sender_of(self, environ: WSGIEnvironment) -> RequestSender:
        """Return the address, unless it is this machine's."""
        return RequestSender(None, network_of(environ.get("REMOTE_ADDR", ""), counts_loopback=False))

    def max_body_bytes(self, _environ: WSGIEnvironment) -> int:
        """Return no limit."""
        return sys.maxsize
