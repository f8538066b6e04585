"""How answers look whatever their content: errors rendered, headers set, conditional reads, CORS, wrong methods.

The reference for common behaviour, sections 9, 14 and 15.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import redis.exceptions
import structlog
from flask import Flask, Response, request
from flask.typing import ResponseReturnValue
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm.exc import StaleDataError
from werkzeug import exceptions
from werkzeug.datastructures import Headers
from werkzeug.exceptions import HTTPException
from werkzeug.http import HTTP_STATUS_CODES

from project_service.kit import logs, metrics
from project_service.kit.db.session import dispose_after_fork
from project_service.kit.http import errors, kept, urls
from project_service.kit.http.requests import Request

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

EXPOSED = (
    "Link, X-Total, X-Total-Pages, X-Per-Page, X-Page, X-Next-Page, X-Prev-Page, X-Request-Id, ETag, "
    "Retry-After, RateLimit-Limit, RateLimit-Observed, RateLimit-Remaining, RateLimit-Reset"
)
PREFLIGHT_SECONDS = "7200"
# of the environment of a request
BEGUN, FOUND, FAILED = "project_service.begun", "project_service.kept", "project_service.failed"
# what all answers have, and nothing else says: it is added, where setting it would mean to look for it first
SAFEGUARDS = (
    ("X-Frame-Options", "SAMEORIGIN"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
)
FOR_ALL_ORIGINS = ("Vary", "Origin")
PAGE_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: https:; font-src 'self'; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
)
API_POLICY = "default-src 'none'; frame-ancestors 'none'"
# what all answers have where nothing else is said
USUAL = (("Cache-Control", "no-store"), ("Content-Security-Policy", PAGE_POLICY))
USUAL_OF_API = (("Cache-Control", "no-cache"), ("Content-Security-Policy", API_POLICY))
USUAL_OF_READS = (("Cache-Control", "max-age=0, private, must-revalidate"), ("Content-Security-Policy", API_POLICY))
USUAL_OF_JSON = (("Content-Type", "application/json"), *USUAL, *SAFEGUARDS)
# what SQLite says when it cannot write, or has no room for what it shares among processes; the code of PostgreSQL
FULL_SQLITE, FULL_POSTGRES = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE), "53100"
ADDRESSES = frozenset({"location", "content-location"})  # which are made absolute
VALIDATORS = re.compile(r'(?:W/)?"([^"]*)"')

log = structlog.get_logger(__name__)


class Begun(NamedTuple):
    """When a request began, by ``time.perf_counter``, and the id it has in all layers."""

    request_id: str
    moment: float


def is_api() -> bool:
    """Whether the current request is for the API."""
    return request.path.startswith(urls.API)


def before() -> Response | None:
    """Give the request its id, and answer what needs no route: old API versions, preflights, what failed before."""
    begin(request.environ)
    failed: Exception | None = request.environ.pop(FAILED, None)
    if failed is not None:
        raise failed
    if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers and is_api():
        return Response(status=200)
    return None


def after(response: Response) -> Response:
    """Set the headers every answer has, and turn a known answer into 304."""
    api = is_api()
    headers = response.headers
    read = api and response.status_code == 200 and request.method in ("GET", "HEAD")
    usual = (USUAL_OF_READS if read else USUAL_OF_API) if api else USUAL
    said = {name for name, _ in headers}
    for name, value in usual:
        if name not in said:
            headers.add(name, value)
    begun = begin(request.environ)
    seconds = time.perf_counter() - begun.moment
    for name, value in (*SAFEGUARDS, ("X-Request-Id", begun.request_id), ("X-Runtime", f"{seconds:.6f}")):
        headers.add(name, value)
    if api:
        headers.add(*FOR_ALL_ORIGINS)
        if "Origin" in request.headers:
            _open_to_all_origins(headers)
    route = request.url_rule.rule if request.url_rule else "unknown"
    kept.answers().keep(response, route)
    if read:
        _revalidate(response)
    _note(request.method, route, response.status_code, seconds)
    return response


class Answer(Response):
    """A response whose headers go out as they are, where nothing in them depends on the request.

    Werkzeug copies them first, and looks at each while it does: that takes as long as to find the route.
    """

    def get_wsgi_headers(self, environ: WSGIEnvironment) -> Headers:
        """The headers as they go out."""
        said = {name.lower() for name, _ in self.headers}
        if self.status_code == 200 and "content-length" in said and said.isdisjoint(ADDRESSES):
            return self.headers
        return super().get_wsgi_headers(environ)


class KnownAnswers:
    """A WSGI layer: what was kept is the answer, and the application is not even asked.

    Pages have sessions, and other origins headers of their own: to these the application answers with what was kept.
    """

    def __init__(self, application: WSGIApplication, known: kept.Answers) -> None:
        self.application = application
        self.known = known

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer with 304 whoever has the answer already."""
        begin(environ)
        found = environ[FOUND] = self.known.find(environ)
        if found is None or not found.tag or "HTTP_ORIGIN" in environ:
            return self.application(environ, start_response)
        if is_known(environ.get("HTTP_IF_NONE_MATCH", ""), found.tag):
            headers = [pair for pair in found.headers if pair[0].lower() != "content-type"]
            return send(environ, start_response, (304, headers, b""), found.route)
        return send(environ, start_response, (200, found.headers, found.body), found.route)


def send(
    environ: WSGIEnvironment,
    start_response: StartResponse,
    answer: tuple[int, Iterable[tuple[str, str]], bytes],
    route: str,
) -> Iterable[bytes]:
    """Send status, headers and body in front of Flask, with what ``after`` adds to each answer of its own."""
    status, headers, body = answer
    begun = begin(environ)
    seconds = time.perf_counter() - begun.moment
    of_this = [*headers, ("X-Request-Id", begun.request_id), ("X-Runtime", f"{seconds:.6f}")]
    if body:
        of_this.append(("Content-Length", str(len(body))))
    start_response(f"{status} {HTTP_STATUS_CODES[status].upper()}", of_this)
    _note(environ["REQUEST_METHOD"], route, status, seconds)
    return [body] if body else []


def known() -> Response | None:
    """What was kept of the answer to this request, where it takes the application to complete it."""
    found: kept.Kept | None = request.environ.get(FOUND)
    if found is None:
        return None
    response = Response(found.body)
    response.headers.clear()
    response.headers.extend(pair for pair in found.headers if pair not in (*SAFEGUARDS, FOR_ALL_ORIGINS))
    return response


def is_known(wanted: str, tag: str) -> bool:
    """Whether ``If-None-Match`` names a validator."""
    return bool(wanted) and (wanted.strip() == "*" or _bare(tag) in VALIDATORS.findall(wanted))


def _bare(tag: str) -> str:
    return tag.removeprefix('W/"').removesuffix('"')


def begin(environ: WSGIEnvironment) -> Begun:
    """When a request began and what its id is: its own if it brought one, which lines of the log have, too."""
    found: Begun | None = environ.get(BEGUN)
    if found is None:
        given = environ.get("HTTP_X_REQUEST_ID", "")
        request_id = given if logs.REQUEST_ID.fullmatch(given) else logs.new_request_id()
        found = environ[BEGUN] = Begun(request_id, time.perf_counter())
        logs.bind(request_id=request_id)
    return found


def _note(method: str, route: str, status: int, seconds: float) -> None:
    metrics.note_request(method, route, status, seconds)
    log.info("request", method=method, route=route, status=status, seconds=round(seconds, 6))


def render(error: errors.ServiceError) -> Response:
    """The answer to an error raised anywhere below."""
    if isinstance(error, errors.Malformed):
        return Response("Bad Request", 400, mimetype="text/plain")
    return Response(orjson.dumps(error.body()), error.status, error.headers, mimetype="application/json")


def as_service_error(error: Exception) -> errors.ServiceError:
    """Translate what the framework or a driver raises into the family that is rendered."""
    if isinstance(error, errors.ServiceError):
        return error
    if isinstance(error, exceptions.MethodNotAllowed):
        return errors.MethodNotAllowed(allow=", ".join(sorted({*(error.valid_methods or ()), "OPTIONS"})))
    if isinstance(error, exceptions.NotFound):
        return errors.UnknownRoute()
    if isinstance(error, exceptions.RequestEntityTooLarge):
        return errors.TooLarge()
    if isinstance(error, HTTPException):
        translated = errors.ServiceError(f"{error.code} {error.name}")
        translated.status = error.code or 500
        return translated
    if isinstance(error, StaleDataError):  # somebody removed the row that this request was about to change
        return errors.RecordNotFound()
    if _is_for_lack_of_room(error):
        log.error("there is no room left on the disk", error=str(error))
        return errors.NoRoom()
    if isinstance(error, OperationalError) and "no such" in str(error.orig):
        log.error("the database is not at the newest version: run project-service db upgrade", exc_info=error)
        return errors.ServiceError()
    if isinstance(error, OperationalError | redis.exceptions.ConnectionError):
        log.error("a part of the service does not answer", error=str(error))
        return errors.Unavailable()
    log.error("the request failed", exc_info=error)
    return errors.ServiceError()


def _is_for_lack_of_room(error: Exception) -> bool:
    """Whether a disk was full: that of the storage, of the temporary files (where uploads wait), or of the database."""
    if not isinstance(error, OperationalError):
        return isinstance(error, OSError) and error.errno in errors.FULL
    driver: Any = error.orig
    return (
        getattr(driver, "sqlite_errorcode", None) in FULL_SQLITE or getattr(driver, "sqlstate", None) == FULL_POSTGRES
    )


class Application(Flask):
    """Flask, but ``OPTIONS`` is answered without a body, and no page has an address of the API."""

    request_class = Request
    url_map_class = urls.Routes
    url_map: urls.Routes

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.url_map.converters |= {"int": urls.Number, "path": urls.PagePath, "project_path": urls.ProjectPath}

    def after_fork(self) -> None:
        """Have this process open connections of its own."""
        with self.app_context():
            dispose_after_fork()

    def ensure_sync(self, func: Any) -> Any:
        """The function itself: none here is a coroutine, and each request would ask that of a dozen of them."""
        return func

    def make_default_options_response(self) -> Response:
        """204 with ``Allow``."""
        response = super().make_default_options_response()
        response.status_code = 204
        response.headers.remove("Content-Type")
        return response

    def log_exception(self, exc_info: Any) -> None:
        """Nothing: ``as_service_error`` has logged it."""


def handle(error: Exception) -> ResponseReturnValue:
    """The error handler of the API."""
    return render(as_service_error(error))


def tagged(response: Response) -> Response:
    """The answer with its validator, which changes with every change of the body."""
    tag = hashlib.blake2b(response.get_data(), digest_size=16).hexdigest()
    response.headers["ETag"] = f'W/"{tag}"'
    return response


def _revalidate(response: Response) -> None:
    if response.is_streamed or response.direct_passthrough:
        return
    if "ETag" not in response.headers:
        tagged(response)
    if is_known(request.headers.get("If-None-Match", ""), response.headers["ETag"]):
        response.status_code = 304
        response.set_data(b"")
        response.headers.pop("Content-Type", None)
        response.headers.pop("Content-Length", None)


def _open_to_all_origins(headers: Any) -> None:
    headers["Access-Control-Allow-Origin"] = "*"
    headers["Access-Control-Expose-Headers"] = EXPOSED
    if request.method == "OPTIONS":
        headers["Access-Control-Allow-Methods"] = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
        headers["Access-Control-Allow-Headers"] = request.headers.get("Access-Control-Request-Headers", "*")
        headers["Access-Control-Max-Age"] = PREFLIGHT_SECONDS
