"""Response helpers: request id, security headers, CORS, conditional requests, access log, rendering of errors.

Common reference, sections 9, 14 and 15.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import redis.exceptions
import structlog
from flask import Flask, Response, after_this_request, g, request
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm.exc import StaleDataError
from werkzeug import exceptions
from werkzeug.datastructures import Headers
from werkzeug.exceptions import HTTPException

from project_service.kit import logs, metrics
from project_service.kit.db import deadlines, searching
from project_service.kit.db.session import dispose_after_fork
from project_service.kit.http import errors, urls
from project_service.kit.http.clients.admission import Admission, PlainAdmission
from project_service.kit.http.requests import Request

EXPOSED_HEADERS = (
    "Link, X-Total, X-Total-Pages, X-Per-Page, X-Page, X-Next-Page, X-Prev-Page, X-Request-Id, ETag, "
    "Retry-After, RateLimit-Limit, RateLimit-Observed, RateLimit-Remaining, RateLimit-Reset"
)
CORS_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
PREFLIGHT_SECONDS = 7200
SECURITY_HEADERS = (
    ("X-Frame-Options", "SAMEORIGIN"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
)
PAGE_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: https:; font-src 'self'; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
)
API_POLICY = "default-src 'none'; frame-ancestors 'none'"
# set unless the view has set them
PAGE_DEFAULTS = {"Cache-Control": "no-store", "Content-Security-Policy": PAGE_POLICY}
API_DEFAULTS = {"Cache-Control": "no-cache", "Content-Security-Policy": API_POLICY}
API_READ_DEFAULTS = API_DEFAULTS | {"Cache-Control": "max-age=0, private, must-revalidate"}
VARIES_BY_ORIGIN = ("Vary", "Origin")
CONDITIONS = ("HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE")
# the disk is full: on SQLite also when the shared memory of the write-ahead log cannot grow
SQLITE_DISK_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
POSTGRESQL_DISK_FULL = "53100"

log = structlog.get_logger(__name__)


class RequestStart(NamedTuple):
    """The id of a request and when it began, by ``time.perf_counter``."""

    request_id: str
    moment: float


def is_api() -> bool:
    """Whether the current request is for the API."""
    return request.path.startswith(urls.API)


def before_request() -> Response | None:
    """Give the request its id, and answer CORS preflights."""
    _request_start()
    is_preflight = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
    if is_preflight and is_api() and not _answers_options():
        return Response(status=200)
    return None


def _answers_options() -> bool:
    """Whether the view of the request answers ``OPTIONS`` itself."""
    return request.url_rule is not None and not getattr(request.url_rule, "provide_automatic_options", True)


def after_request(response: Response) -> Response:
    """Set the headers of every response, make reads of the API conditional, and log the request."""
    api = is_api()
    headers = response.headers
    is_read = api and response.status_code == 200 and request.method in ("GET", "HEAD")
    headers.extend(_common_headers(headers, api=api, is_read=is_read))
    if api and "Origin" in request.headers and "Access-Control-Allow-Origin" not in headers:
        _add_cors_headers(headers)
    if is_read:
        _make_conditional(response)
    start = _request_start()
    seconds = time.perf_counter() - start.moment
    headers.extend((("X-Request-Id", start.request_id), ("X-Runtime", f"{seconds:.6f}")))
    route = request.url_rule.rule if request.url_rule else "unknown"
    metrics.note_request(request.method, route, response.status_code, seconds)
    log.info("request", method=request.method, route=route, status=response.status_code, seconds=round(seconds, 6))
    return response


def _common_headers(headers: Headers, *, api: bool, is_read: bool) -> list[tuple[str, str]]:
    """The headers that responses have by default, without those that the view has set.

    They are added in one go: ``Headers.set`` compares the name with all others for each of them.
    """
    defaults = (API_READ_DEFAULTS if is_read else API_DEFAULTS) if api else PAGE_DEFAULTS
    present = {name.lower() for name in headers.keys()}  # noqa: SIM118  # iterating yields pairs
    common = [pair for pair in (*defaults.items(), *SECURITY_HEADERS) if pair[0].lower() not in present]
    return [*common, VARIES_BY_ORIGIN] if api else common


def _request_start() -> RequestStart:
    """Return the id of the request, its own if it brought a valid one, and when it began; bind the id to log lines."""
    start: RequestStart | None = g.get("request_start")
    if start is None:
        sent_id = request.headers.get("X-Request-Id", "")
        request_id = sent_id if logs.REQUEST_ID.fullmatch(sent_id) else logs.new_request_id()
        start = g.request_start = RequestStart(request_id, time.perf_counter())
        logs.bind(request_id=request_id)
    return start


def _make_conditional(response: Response) -> None:
    """Add a weak ETag of the body, and answer 304 if the client has this version."""
    if "ETag" not in response.headers:
        if response.is_streamed or response.direct_passthrough:
            return
        response.add_etag(weak=True)
    if not any(name in request.environ for name in CONDITIONS):
        return
    # a weak ETag never matches If-Match (RFC 9110, section 13.1.1), and reads have no use for it
    environ = {name: value for name, value in request.environ.items() if name != "HTTP_IF_MATCH"}
    response.make_conditional(environ)
    del response.headers["Date"]  # Werkzeug adds one to conditional responses; the web server adds its own to all


def _add_cors_headers(headers: Headers) -> None:
    headers["Access-Control-Allow-Origin"] = "*"
    headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS
    if request.method == "OPTIONS":
        headers["Access-Control-Allow-Methods"] = CORS_METHODS
        headers["Access-Control-Allow-Headers"] = request.headers.get("Access-Control-Request-Headers", "*")
        headers["Access-Control-Max-Age"] = str(PREFLIGHT_SECONDS)


def render(error: errors.ServiceError) -> Response:
    """Render an error as the JSON response of the API."""
    if isinstance(error, errors.Malformed):
        return Response("Bad Request", 400, mimetype="text/plain")
    return Response(orjson.dumps(error.body()), error.status, error.headers, mimetype="application/json")


def as_service_error(error: Exception) -> errors.ServiceError:
    """Translate exceptions of Flask and of drivers to the errors that are rendered."""
    if isinstance(error, errors.ServiceError):
        return error
    if isinstance(error, exceptions.MethodNotAllowed):
        return errors.MethodNotAllowed(allow=", ".join(sorted({*(error.valid_methods or ()), "OPTIONS"})))
    if isinstance(error, exceptions.NotFound):
        return errors.UnknownRoute()
    if isinstance(error, exceptions.RequestEntityTooLarge):
        return errors.BodyTooLarge()
    if isinstance(error, HTTPException):
        translated = errors.ServiceError(f"{error.code} {error.name}")
        translated.status = error.code or 500
        return translated
    if isinstance(error, StaleDataError):  # another request removed the row that this one changes
        return errors.RecordNotFound()
    if _is_disk_full(error):
        log.error("the disk is full", error=str(error))
        return errors.InsufficientStorage()
    if isinstance(error, searching.TooManyWords):
        return errors.BadRequest("400 Bad request - Search query is too long")
    if deadlines.is_exceeded(error):
        log.warning("a search reached its deadline")
        return errors.SearchTooSlow()
    if isinstance(error, OperationalError) and "no such" in str(error.orig):
        log.error("the database schema is outdated: run project-service db upgrade", exc_info=error)
        return errors.ServiceError()
    if isinstance(error, OperationalError | redis.exceptions.ConnectionError):
        log.error("the database or Redis does not respond", error=str(error))
        return errors.Unavailable()
    log.error("the request failed", exc_info=error)
    return errors.ServiceError()


def _is_disk_full(error: Exception) -> bool:
    """Whether the disk of the storage, of the temporary files of uploads, or of the database is full."""
    if not isinstance(error, OperationalError):
        return isinstance(error, OSError) and error.errno in errors.DISK_FULL_ERRNOS
    driver: Any = error.orig
    is_sqlite = getattr(driver, "sqlite_errorcode", None) in SQLITE_DISK_FULL
    return is_sqlite or getattr(driver, "sqlstate", None) == POSTGRESQL_DISK_FULL


class Application(Flask):
    """Flask with our converters of URLs; ``OPTIONS`` is answered without a body."""

    request_class = Request

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.url_map.converters |= {"int": urls.Number, "path": urls.PagePath, "project_path": urls.ProjectPath}
        self.admission: Admission = PlainAdmission()

    @property
    def spool_dir(self) -> Path:
        """The directory for request bodies that do not fit into memory."""
        directory: Path = self.config["SETTINGS"].data_dir
        return directory

    @property
    def max_waiting_bodies_per_client(self) -> int:
        """How many request bodies one client address may be sending to a web process at the same time; 0: any."""
        limit: int = self.config["SETTINGS"].max_waiting_bodies
        return limit

    def after_fork(self) -> None:
        """Make a forked process open its own connections."""
        with self.app_context():
            dispose_after_fork()

    def make_default_options_response(self) -> Response:
        """Answer 204 with ``Allow``."""
        response = super().make_default_options_response()
        response.status_code = 204
        response.headers.remove("Content-Type")
        return response

    def log_exception(self, exc_info: Any) -> None:
        """Do nothing: ``as_service_error`` has logged the exception."""


def say_newest_only(limit: int) -> None:
    """Say in the header of the answer that a list was made of the newest rows only, and of how many."""

    def add(response: Response) -> Response:
        response.headers["X-Newest-Only"] = str(limit)
        return response

    after_this_request(add)
