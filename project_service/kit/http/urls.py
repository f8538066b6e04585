"""Addresses: encoded slashes on the way in, absolute addresses on the way out.

WSGI hands over a decoded path, in which ``group%2Fproject`` and ``group/project`` look the same. ``RawPaths`` rebuilds
the path of an API request from the raw request target and leaves ``%2F`` and ``%25`` encoded; the ``segment`` converter
decodes these two when the route has matched.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from typing import Any
from urllib.parse import quote, unquote_to_bytes, urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from flask import current_app, has_request_context, request
from werkzeug.routing import BaseConverter, IntegerConverter, PathConverter

API = "/api/"
LARGEST_NUMBER = 2**63 - 1
_KEPT = re.compile(r"%(2[Ff]|25)")


class RawPaths:
    """A WSGI layer that keeps encoded slashes apart from real ones, and answers broken text before anything else."""

    def __init__(self, app: WSGIApplication, endings: Container[str] = ()) -> None:
        self.app = app
        self.endings = endings

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Rebuild ``PATH_INFO`` of API requests; a path that is no UTF-8, or has a NUL, is a plain 400."""
        target = environ.get("RAW_URI") or environ.get("REQUEST_URI")
        path = raw_path(target) if target else quote(environ.get("PATH_INFO", "").encode("latin-1"))
        tidied = tidy(path, self.endings)
        if not readable(path):
            start_response("400 Bad Request", [("Content-Type", "text/plain"), ("Content-Length", "11")])
            return [b"Bad Request"]
        if tidied.startswith(API):
            environ["PATH_INFO"] = keep_encoded_slashes(tidied).decode("latin-1")
        return self.app(environ, start_response)


def raw_path(target: str) -> str:
    """The path of a raw request target, which may be in absolute form behind a proxy."""
    if not target.startswith("/"):
        target = urlsplit(target)._replace(scheme="", netloc="").geturl()
    return target.partition("?")[0].partition("#")[0]


def readable(path: str) -> bool:
    """Whether the decoded path is UTF-8 without NUL."""
    try:
        return "\0" not in decode(path).decode()
    except UnicodeDecodeError:
        return False


def decode(path: str) -> bytes:
    """The bytes that a raw path, or a part of one, stands for."""
    return unquote_to_bytes(path.encode("latin-1"))


def keep_encoded_slashes(path: str) -> bytes:
    """Decode all of a path but slashes and percent signs, so that ``Segment`` can tell what they were."""
    return b"".join(
        f"%{part.upper()}".encode() if position % 2 else decode(part).replace(b"%", b"%25")
        for position, part in enumerate(_KEPT.split(path))
    )


def tidy(path: str, endings: Container[str] = ()) -> str:
    """Tolerate what clients add: doubled slashes, a trailing slash, ``.json`` (common behaviour, section 1).

    The suffix is only taken off ``endings``, the fixed words that routes end with, and off ids: names are compared
    literally, and ``v1.json`` is a fine name.
    """
    path = re.sub(r"/{2,}", "/", path).rstrip("/")
    stem = path.removesuffix(".json")
    last = stem.rpartition("/")[2]
    return stem if last in endings or (last.isascii() and last.isdigit()) else path


class Segment(BaseConverter):
    """One segment of a path, decoded whole."""

    regex = "[^/]+"
    part_isolating = True

    def to_python(self, value: str) -> str:
        """Decode the two sequences that ``RawPaths`` left."""
        return value.replace("%2F", "/").replace("%25", "%") if request_is_raw() else value

    def to_url(self, value: Any) -> str:
        """Encode everything, slashes too."""
        return quote(str(value), safe="")


class Number(IntegerConverter):
    """A whole number that a database can look for; a larger one is no address of anything."""

    def __init__(self, map: Any, **options: Any) -> None:  # named by Werkzeug
        super().__init__(map, **({"max": LARGEST_NUMBER} | options))


class PagePath(PathConverter):
    """A path of several segments, as pages have it; never one of the API: what is unknown there is no page."""

    regex = "(?!api/)[^/].*?"


class ProjectPath(PagePath):
    """The full path of a project: at least two segments, so that a project may be called as a page below others is."""

    regex = "(?!api/)[^/]+/[^/].*?"


def request_is_raw() -> bool:
    """Whether the current path still has its slashes encoded."""
    return has_request_context() and request.environ.get("PATH_INFO", "").startswith(API)


def base_url() -> str:
    """Scheme, host and port under which people reach this service, without a trailing slash."""
    if not has_request_context():
        return _configured_url() or "http://localhost"
    return _configured_url() or request.host_url.rstrip("/")


def _configured_url() -> str | None:
    configured: str | None = current_app.config["EXTERNAL_URL"]
    return configured


def absolute(path: str) -> str:
    """The address of a path that begins with a slash."""
    return f"{base_url()}{path}"


def encode(segment: str) -> str:
    """One segment of a path, encoded."""
    return quote(segment, safe="")


def host() -> str:
    """Host, and port where it is not the usual one, under which people reach this service."""
    return urlsplit(base_url()).netloc
