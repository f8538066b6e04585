"""Addresses: encoded slashes on the way in, absolute addresses on the way out.

WSGI hands over a decoded path, in which ``group%2Fproject`` and ``group/project`` look the same. ``RawPaths`` rebuilds
the path of an API request from the raw request target and leaves ``%2F`` and ``%25`` encoded; the ``segment`` converter
decodes these two when the route has matched.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote_to_bytes, urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from flask import current_app, has_request_context, request
from werkzeug.routing import BaseConverter, IntegerConverter, Map, MapAdapter, PathConverter, Rule, RuleFactory
from werkzeug.sansio.utils import get_current_url
from werkzeug.wsgi import get_host

API = "/api/"
MOST_KNOWN = 1000
LONGEST_KNOWN = 200
LARGEST_NUMBER = 2**63 - 1
BASE_URL = "project_service.base_url"  # of the environment of a request
_KEPT = re.compile(r"%(2[Ff]|25)")


class RawPaths:
    """A WSGI layer that keeps encoded slashes apart from real ones, and answers broken text before anything else."""

    def __init__(self, app: WSGIApplication, endings: Container[str] = ()) -> None:
        self.app = app
        self.endings = endings
        self.known = functools.lru_cache(maxsize=MOST_KNOWN)(self._read)  # of those that are asked for again and again

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Rebuild ``PATH_INFO`` of API requests; a path that is no UTF-8, or has a NUL, is a plain 400."""
        target = environ.get("RAW_URI") or environ.get("REQUEST_URI")
        path = raw_path(target) if target else quote(environ.get("PATH_INFO", "").encode("latin-1"))
        is_readable, of_api = self.known(path) if len(path) <= LONGEST_KNOWN else self._read(path)
        if not is_readable:
            start_response("400 Bad Request", [("Content-Type", "text/plain"), ("Content-Length", "11")])
            return [b"Bad Request"]
        if of_api is not None:
            environ["PATH_INFO"] = of_api
        return self.app(environ, start_response)

    def _read(self, path: str) -> tuple[bool, str | None]:
        """Whether a path is text, and what the API has in its place."""
        tidied = tidy(path, self.endings)
        of_api = keep_encoded_slashes(tidied).decode("latin-1") if tidied.startswith(API) else None
        return readable(path), of_api


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


class Routes(Map):
    """The map of routes, which remembers where the addresses lead that were asked for last.

    To find a path of several segments means to try one pattern after the other.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self.known: dict[tuple[str, str], tuple[Rule, Mapping[str, Any]]] = {}
        super().__init__(*args, **options)

    def add(self, rulefactory: RuleFactory) -> None:
        """Add a route, which an address may lead to that led elsewhere."""
        self.known.clear()
        super().add(rulefactory)

    def find(self, environ: WSGIEnvironment) -> tuple[Rule, Mapping[str, Any]] | None:
        """Where the address of a request leads, if somebody has asked for it before, and what is said in it.

        For a layer in front of Flask, whose addresses are not decoded as these are: only those in ASCII are found.
        """
        path = environ["PATH_INFO"]
        return self.known.get((path, environ["REQUEST_METHOD"])) if path.isascii() else None

    def bind_to_environ(self, *args: Any, **options: Any) -> MapAdapter:
        """What finds the route of one request."""
        found = super().bind_to_environ(*args, **options)
        return _Bound(
            self,
            found.server_name,
            found.script_name,
            found.subdomain,
            found.url_scheme,
            found.path_info,
            found.default_method,
            found.query_args,
        )


class _Bound(MapAdapter):
    map: Routes

    def match(self, *args: Any, **options: Any) -> Any:
        if args or options != {"return_rule": True}:
            return super().match(*args, **options)
        key = self.path_info, self.default_method
        found = self.map.known.get(key)
        if found is None:
            found = super().match(return_rule=True)
            if len(self.path_info) <= LONGEST_KNOWN:
                if len(self.map.known) >= MOST_KNOWN:
                    self.map.known.clear()
                self.map.known[key] = found
        rule, values = found
        return rule, {**values}


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
    environ = request.environ
    found: str | None = environ.get(BASE_URL)  # a list asks for it with each of its rows
    if found is None:
        found = environ[BASE_URL] = _configured_url() or _url_of(environ["wsgi.url_scheme"], get_host(environ))
    return found


@functools.lru_cache(maxsize=64)
def _url_of(scheme: str, host: str) -> str:
    """The address of a host, readable where it is written in another script; there are few in use."""
    return get_current_url(scheme, host).rstrip("/")


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
