"""What the views of the application tell the web server, by their marks and by the headers of a request."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

import structlog
from flask import Flask
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import HTTPException
from werkzeug.http import parse_cookie
from werkzeug.routing import RequestRedirect

from project_service.kit.http.clients.admission import (
    CODE,
    GIT,
    OUTGOING,
    READ,
    READ_METHODS,
    SEARCH,
    WRITE,
    RequestSender,
    Work,
)
from project_service.kit.http.clients.proxies import TrustedProxies
from project_service.kit.http.errors import ServiceError
from project_service.kit.http.urls import RawPaths

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment

MAX_BODY_BYTES = 10 << 20
# without a token, key or session in the headers or the query: enough for forms, and for an error event of usual size
MAX_ANONYMOUS_BODY_BYTES = 1 << 20
CREDENTIAL_HEADERS = ("HTTP_PRIVATE_TOKEN", "HTTP_AUTHORIZATION", "HTTP_X_SENTRY_AUTH")
CREDENTIAL_PARAMETERS = ("private_token", "access_token", "sentry_key")
# parameters of the query that compare texts in the database, with a value
SEARCHES = re.compile(r"(?:^|&)(?:search|search_title|query|q|text)(?:\[\])?=[^&]")
MAX_BODY_KEY = "project_service.max_body_bytes"  # of the environment
MAX_CACHED_PATHS = 256  # clients that send often, such as monitoring tools, use few addresses

log = structlog.get_logger(__name__)


class ViewAdmission:
    """Reads the marks of the views of a Flask application.

    The marks are those of ``guards.mark_for_server``, ``runs_git``, ``body_bytes``, a fixed limit in place of
    ``MAX_BODY_BYTES``, and ``body_limit``, a function that authenticates the sender and returns a limit. It is called
    in the context of the request.
    """

    def __init__(self, app: Flask, proxies: TrustedProxies, endings: Container[str]) -> None:
        self._app = app
        self._proxies = proxies
        self._paths = RawPaths(self._ask_view, endings)
        self._asking = TrustedProxies(self._paths, proxies.networks)
        self._routes = app.url_map.bind("localhost")
        self._endpoint_of = functools.lru_cache(MAX_CACHED_PATHS)(self._find_endpoint)
        self._work_of_view = functools.cache(self._find_work)

    def work_of(self, environ: WSGIEnvironment) -> Work:
        """Return what the view of a request does."""
        method = environ["REQUEST_METHOD"]
        path = self._paths.path_of(environ)
        endpoint = "" if path is None else self._endpoint_of(path, method)
        kind = WRITE if method not in READ_METHODS else SEARCH if _searches(environ) else READ
        return self._work_of_view(endpoint, kind, self._credential_of(environ) is not None)

    def sender_of(self, environ: WSGIEnvironment) -> RequestSender:
        """Return the presented credential and the address of the client."""
        return RequestSender(self._credential_of(environ), self._proxies.share_of(environ))

    def max_body_bytes(self, environ: WSGIEnvironment) -> int:
        """Authenticate the sender of a large body, and return the limit of the view for it."""
        copied = dict(environ)
        try:
            self._asking(copied, _start_nothing)
        except (
            ServiceError,
            HTTPException,
            SQLAlchemyError,
        ) as error:  # the application, which is called next, answers with the same error
            log.info("no larger body is received", reason=type(error).__name__)
        limit: int = copied.get(MAX_BODY_KEY, MAX_BODY_BYTES)
        return limit

    def _ask_view(self, environ: WSGIEnvironment, _start: Any) -> Iterable[bytes]:
        with self._app.request_context(environ) as context:
            view = self._app.view_functions.get(context.request.endpoint or "")
            ask: Callable[[], int] | None = getattr(view, "body_limit", None)
            if ask is not None:
                environ[MAX_BODY_KEY] = ask()
        return ()

    def _find_endpoint(self, path: str, method: str) -> str:
        try:
            rule, _ = self._routes.match(path.encode("latin-1").decode(errors="replace"), method, return_rule=True)
        except (HTTPException, RequestRedirect):
            return ""
        endpoint: str = rule.endpoint
        return endpoint

    def _find_work(self, endpoint: str, kind: str, has_credential: bool) -> Work:
        view: Any = self._app.view_functions.get(endpoint)
        if getattr(view, "runs_git", False):
            kind = GIT
        elif getattr(view, "reads_repository", False):
            kind = CODE
        elif getattr(view, "sends_requests", False):
            kind = OUTGOING
        is_small = not has_credential and kind != GIT  # a fetch of many refs has a large request
        return Work(
            kind,
            MAX_ANONYMOUS_BODY_BYTES if is_small else getattr(view, "body_bytes", MAX_BODY_BYTES),
            getattr(view, "is_long", False),
            has_credential and hasattr(view, "body_limit"),
        )

    def _credential_of(self, environ: WSGIEnvironment) -> str | None:
        """Return a digest of the token, key or session that a request presents."""
        credential = next((environ[name] for name in CREDENTIAL_HEADERS if environ.get(name)), None)
        if credential is None and (query := environ.get("QUERY_STRING")):
            values = parse_qs(query) if any(name in query for name in CREDENTIAL_PARAMETERS) else {}
            credential = next((values[name][0] for name in CREDENTIAL_PARAMETERS if name in values), None)
        if credential is None and (cookies := environ.get("HTTP_COOKIE")):
            credential = parse_cookie(cookies).get(self._app.config["SESSION_COOKIE_NAME"])
        return (
            hashlib.blake2b(credential.encode("latin-1", "replace"), digest_size=16).hexdigest() if credential else None
        )


def _searches(environ: WSGIEnvironment) -> bool:
    """Whether the query of a request asks for a search of texts."""
    query = environ.get("QUERY_STRING", "")
    return bool(query) and SEARCHES.search(unquote(query)) is not None


def _start_nothing(*_response: Any) -> Any:
    """Take the status of a response that nobody reads: a malformed path has the default limit."""
