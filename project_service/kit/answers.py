"""How answers look whatever their content: errors rendered, headers set, conditional reads, CORS, wrong methods.

The reference for common behaviour, sections 9, 14 and 15.
"""

from __future__ import annotations

import hashlib
import re
import time
from typing import Any

import orjson
import redis.exceptions
import structlog
from flask import Flask, Response, g, request
from flask.typing import ResponseReturnValue
from sqlalchemy.exc import OperationalError
from werkzeug import exceptions
from werkzeug.exceptions import HTTPException

from project_service.kit import errors, logs, metrics, urls
from project_service.kit.database import dispose_after_fork

EXPOSED = (
    "Link, X-Total, X-Total-Pages, X-Per-Page, X-Page, X-Next-Page, X-Prev-Page, X-Request-Id, ETag, "
    "Retry-After, RateLimit-Limit, RateLimit-Observed, RateLimit-Remaining, RateLimit-Reset"
)
PREFLIGHT_SECONDS = "7200"
PAGE_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: https:; font-src 'self'; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
)
API_POLICY = "default-src 'none'; frame-ancestors 'none'"
VALIDATORS = re.compile(r'(?:W/)?"([^"]*)"')

log = structlog.get_logger(__name__)


def is_api() -> bool:
    """Whether the current request is for the API."""
    return request.path.startswith(urls.API)


def before() -> Response | None:
    """Give the request its id, and answer what needs no route: old API versions and preflights."""
    g.began = time.perf_counter()
    given = request.headers.get("X-Request-Id", "")
    g.request_id = given if logs.REQUEST_ID.fullmatch(given) else logs.new_request_id()
    logs.bind(request_id=g.request_id)
    if is_api() and request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
        return Response(status=200)
    return None


def after(response: Response) -> Response:
    """Set the headers every answer has, and turn a known answer into 304."""
    api = is_api()
    headers = response.headers
    if api and response.status_code == 200 and request.method in ("GET", "HEAD"):
        _revalidate(response)
    headers.setdefault("Cache-Control", "no-cache" if api else "no-store")
    headers["X-Frame-Options"] = "SAMEORIGIN"
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Referrer-Policy"] = "strict-origin-when-cross-origin"
    headers.setdefault("Content-Security-Policy", API_POLICY if api else PAGE_POLICY)
    headers["X-Request-Id"] = g.get("request_id", "")
    seconds = time.perf_counter() - g.get("began", time.perf_counter())
    headers["X-Runtime"] = f"{seconds:.6f}"
    if api:
        headers["Vary"] = "Origin"
        if "Origin" in request.headers:
            _open_to_all_origins(headers)
    route = request.url_rule.rule if request.url_rule else "unknown"
    metrics.note_request(request.method, route, response.status_code, seconds)
    log.info("request", method=request.method, route=route, status=response.status_code, seconds=round(seconds, 6))
    return response


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
    if isinstance(error, OperationalError) and "no such" in str(error.orig):
        log.error("the database is not at the newest version: run project-service db upgrade", exc_info=error)
        return errors.ServiceError()
    if isinstance(error, OperationalError | redis.exceptions.ConnectionError):
        log.error("a part of the service does not answer", error=str(error))
        return errors.Unavailable()
    log.error("the request failed", exc_info=error)
    return errors.ServiceError()


class Application(Flask):
    """Flask, but ``OPTIONS`` is answered without a body, and no page has an address of the API."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.url_map.converters |= {"path": urls.PagePath, "project_path": urls.ProjectPath}

    def after_fork(self) -> None:
        """Have this process open connections of its own."""
        with self.app_context():
            dispose_after_fork()

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
    response.headers.setdefault("Cache-Control", "max-age=0, private, must-revalidate")
    if response.is_streamed or response.direct_passthrough:
        return
    if "ETag" not in response.headers:
        tagged(response)
    wanted = request.headers.get("If-None-Match", "")
    if not wanted:
        return
    tag = response.headers["ETag"].removeprefix('W/"').removesuffix('"')
    if wanted.strip() == "*" or tag in VALIDATORS.findall(wanted):
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
