"""URLs: encoded slashes in request paths, converters of routes, absolute URLs.

WSGI passes a decoded path, in which ``group%2Fproject`` and ``group/project`` look the same. ``RawPaths`` rebuilds
the path of an API request from the raw request target and leaves ``%2F`` and ``%25`` encoded; the converter ``Segment``
decodes these two when the route has matched.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from typing import Any, cast
from urllib.parse import quote, unquote_to_bytes, urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from flask import current_app, has_request_context, request
from werkzeug.routing import BaseConverter, IntegerConverter, PathConverter

from project_service.kit.http.requests import Request, service_url

API = "/api/"
API_PREFIX = "/api/v4"
MAX_PATH_BYTES = 4096  # of pages, decoded: like the longest path of a file in most systems
MAX_SEGMENTS = 256
MAX_ID = 2**63 - 1
_ENCODED = re.compile(r"%(2[Ff]|25)")


class RawPaths:
    """WSGI middleware that keeps encoded slashes distinct from real ones, and refuses malformed and very long paths."""

    def __init__(self, app: WSGIApplication, endings: Container[str] = ()) -> None:
        self.app = app
        self.endings = endings

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Rebuild ``PATH_INFO`` of API requests; answer 400 to a malformed path, 414 to a very long one."""
        path = self.path_of(environ)
        if path is None:
            status = "414 URI Too Long" if is_too_long(environ.get("PATH_INFO", "")) else "400 Bad Request"
            body = status.partition(" ")[2].encode()
            start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
            return [body]
        environ["PATH_INFO"] = path
        return self.app(environ, start_response)

    def path_of(self, environ: WSGIEnvironment) -> str | None:
        """Return the value of ``PATH_INFO`` for a request; ``None`` for a malformed path and for a very long one."""
        target = environ.get("RAW_URI") or environ.get("REQUEST_URI")
        info: str = environ.get("PATH_INFO", "")
        path = raw_path(target) if target else quote(info.encode("latin-1"))
        if is_too_long(info) or not readable(path):
            return None
        normalized = normalize(path, self.endings)
        return keep_encoded_slashes(normalized).decode("latin-1") if normalized.startswith(API) else info


def raw_path(target: str) -> str:
    """Return the path of a raw request target, which may be in absolute form behind a proxy."""
    if not target.startswith("/"):
        target = urlsplit(target)._replace(scheme="", netloc="").geturl()
    return target.partition("?")[0].partition("#")[0]


def is_too_long(path: str) -> bool:
    """Whether no route is looked for: that takes some time for each segment, and on pages for each character."""
    is_long_page = len(path) > MAX_PATH_BYTES and not path.startswith(API)
    return is_long_page or path.count("/") > MAX_SEGMENTS


def readable(path: str) -> bool:
    """Whether the decoded path is UTF-8 without NUL."""
    try:
        return "\0" not in decode(path).decode()
    except UnicodeDecodeError:
        return False


def decode(path: str) -> bytes:
    """Percent-decode a raw path."""
    return unquote_to_bytes(path.encode("latin-1"))


def keep_encoded_slashes(path: str) -> bytes:
    """Decode a path except for encoded slashes and percent signs, which ``Segment`` decodes."""
    return b"".join(
        f"%{part.upper()}".encode() if position % 2 else decode(part).replace(b"%", b"%25")
        for position, part in enumerate(_ENCODED.split(path))
    )


def normalize(path: str, endings: Container[str] = ()) -> str:
    """Remove what clients add: doubled slashes, a trailing slash, ``.json`` (common reference, section 1).

    The suffix is removed only from ``endings``, the fixed words that routes end with, and from ids: ``v1.json`` is a
    valid name.
    """
    path = re.sub(r"/{2,}", "/", path).rstrip("/")
    stem = path.removesuffix(".json")
    last = stem.rpartition("/")[2]
    return stem if last in endings or (last.isascii() and last.isdigit()) else path


class Segment(BaseConverter):
    """A segment of a path, fully decoded."""

    regex = "[^/]+"
    part_isolating = True

    def to_python(self, value: str) -> str:
        """Decode the two sequences that ``RawPaths`` left encoded."""
        return value.replace("%2F", "/").replace("%25", "%") if request_is_raw() else value

    def to_url(self, value: Any) -> str:
        """Encode everything, including slashes."""
        return quote(str(value), safe="")


class Number(IntegerConverter):
    """An integer that fits into the database; a larger one matches no route."""

    def __init__(self, map: Any, **options: Any) -> None:  # named by Werkzeug
        super().__init__(map, **({"max": MAX_ID} | options))


class PagePath(PathConverter):
    """A path of several segments; never one of the API, whose unknown URLs are not pages.

    Routes continue with a slash behind it, so matching goes by segments, not by characters.
    """

    regex = r"(?!api/)[^/\n]++(?:/[^/\n]*+)*?"


class ProjectPath(PagePath):
    """The full path of a project: at least two segments, so that a project may be named like a page of its group."""

    regex = "(?!api/)[^/]+/[^/].*?"


def request_is_raw() -> bool:
    """Whether slashes in the current path are still encoded."""
    return has_request_context() and request.environ.get("PATH_INFO", "").startswith(API)


def base_url() -> str:
    """Return scheme, host and port of the service's public URL, without a trailing slash."""
    if has_request_context():
        return service_url.get() or cast(Request, request).service_url
    configured: str | None = current_app.config["EXTERNAL_URL"]
    return configured or "http://localhost"


def absolute_or_none(address: str | None) -> str | None:
    """Return an address that may be a path of this server as clients need it; other addresses stay as they are."""
    return absolute(address) if address and address.startswith("/") else address


def absolute(path: str) -> str:
    """Return the absolute URL of a path."""
    return f"{base_url()}{path}"


def absolute_api(path: str) -> str:
    """Return the absolute URL of a path of the API."""
    return absolute(f"{API_PREFIX}{path}")


def encode(segment: str) -> str:
    """Encode one segment of a path."""
    return quote(segment, safe="")


def encode_path(path: str) -> str:
    """Encode a path of several segments; slashes stay."""
    return quote(path)


def host() -> str:
    """Return the public host, with the port unless it is the default."""
    return urlsplit(base_url()).netloc
