"""The blueprint of the pages: the same steps as the API, with a browser session in place of a token."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import structlog
from flask import (
    Blueprint,
    Flask,
    Request,
    current_app,
    g,
    make_response,
    redirect,
    render_template,
    request,
    url_for,
)
from flask import Response as FlaskResponse
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface, SessionMixin
from flask_wtf.csrf import CSRFProtect
from itsdangerous import BadSignature
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.wrappers import Response

from project_service.access import guards, identity
from project_service.access.page_parts.saved_messages import say_saved
from project_service.domain import project_visits
from project_service.domain.projects import Project
from project_service.kit import clock, logs
from project_service.kit.db.session import reading, unit_of_work
from project_service.kit.http import urls
from project_service.kit.http.clients.view_admission import MAX_ANONYMOUS_BODY_BYTES
from project_service.kit.http.errors import ServiceError, Unauthorized
from project_service.kit.http.parameters import parameters
from project_service.kit.security import key_ring

SIGN_IN = "sessions.sign_in"  # endpoint
PASSWORD_PAGE, TWO_FACTOR_PAGE = "profile_pages.show_password", "two_factor_pages.show_two_factor"  # endpoints
# title and advice of error pages by status
ERROR_TEXTS = {
    400: ("That cannot be read", "Something in the address or the form is not as it should be. Go back and try again."),
    401: ("Sign in first", "This page is for people who are signed in."),
    403: ("You may not do that", "Ask a maintainer or owner of the project or group to give you a higher role."),
    404: ("Page not found", "There is nothing here, or it is hidden from you. Check the address."),
    405: ("That cannot be done here", "Go back and use the buttons of the page."),
    413: ("Too large", "What you sent is larger than this server takes."),
    429: ("Too many requests", "Wait a minute and try again."),
    500: (
        "Something went wrong",
        "It is our fault, and it has been logged. Try again, or show the operator the number below.",
    ),
    503: ("Not available", "A part of the service does not answer at the moment. Try again in a minute."),
    507: ("No room left", "The disk of this server is full. Tell the operator, and try again when there is room."),
}
COOKIE_REFRESH_INTERVAL = dt.timedelta(minutes=5)
csrf = CSRFProtect()
log = structlog.get_logger(__name__)
View = Callable[..., Any]


class CookieSession(SecureCookieSession):
    """The data of the session cookie and when it was signed."""

    signed_at: dt.datetime | None = None


class CookieSessions(SecureCookieSessionInterface):
    """Flask's sessions in signed cookies, for pages only."""

    session_class = CookieSession

    def open_session(self, app: Flask, request: Request) -> Any:
        """Read the cookie, if there is one; the API has no sessions."""
        if request.path.startswith(urls.API):
            return self.make_null_session(app)
        cookie = request.cookies.get(self.get_cookie_name(app))
        if not cookie:
            return self.session_class()
        lifetime = int(app.permanent_session_lifetime.total_seconds())
        try:
            data, signed_at = self.get_signing_serializer(app).loads(cookie, max_age=lifetime, return_timestamp=True)
        except BadSignature:
            return self.session_class()
        opened = self.session_class(data)
        opened.signed_at = signed_at
        return opened

    def should_set_cookie(self, app: Flask, session: SessionMixin) -> bool:
        """Whether to send the cookie: an unchanged one only after some minutes or a rotation of keys."""
        signed_at = getattr(session, "signed_at", None)
        is_recent = signed_at is not None and clock.now() - signed_at < COOKIE_REFRESH_INTERVAL
        is_recent = is_recent and not app.config["SECRET_KEY_FALLBACKS"]
        return session.modified if is_recent else super().should_set_cookie(app, session)

    def get_signing_serializer(self, app: Flask) -> Any:
        """Return the serializer that reads and signs cookies with the current keys."""
        sign_with(app, key_ring.keyring())
        return super().get_signing_serializer(app)


def sign_with(app: Flask, keyring: key_ring.KeyRing) -> None:
    """Sign cookies and form tokens with these keys, so that all processes agree after a rotation."""
    app.config["SECRET_KEY"] = keyring.signing_key
    app.config["SECRET_KEY_FALLBACKS"] = keyring.signing_key_fallbacks
    app.config["WTF_CSRF_SECRET_KEY"] = [*reversed(keyring.signing_key_fallbacks), keyring.signing_key]


class PageBlueprint(Blueprint):
    """The pages of one area."""

    def add_url_rule(
        self, rule: str, endpoint: str | None = None, view_func: Any = None, *args: Any, **options: Any
    ) -> None:
        """Register a page behind the steps of a request; raise ``Unguarded`` for a page that names no ability."""
        ability = guards.ability_of(view_func, rule)
        guards.mark_for_server(view_func, options)
        view = guards.mark(self._handle(view_func), ability=ability)
        super().add_url_rule(rule, endpoint or view_func.__name__, view, *args, **options)

    def signed_in(self, view: View) -> View:
        """Require a user: redirect anonymous browsers to the sign-in page, which leads back here."""

        @functools.wraps(view)
        def checked(*args: Any, **url: Any) -> Any:
            if identity.caller().user_id is None and is_for_programs():
                raise Unauthorized
            if identity.caller().user_id is None:
                return redirect(
                    url_for(SIGN_IN, next=request.full_path.rstrip("?") if request.method == "GET" else None)
                )
            return view(*args, **url)

        return guards.mark(checked, needs_user=True)

    allow = staticmethod(guards.allow)  # load the subject of the URL and check the ability

    def for_programs(self, view: View) -> View:
        """Let programs use this view with an access token in place of session and form token; errors are JSON."""
        return guards.mark(view, for_programs=True)

    def with_expired_password(self, view: View) -> View:
        """Serve this view also to users who have to set a new password first; they are sent there from all others."""
        return guards.mark(view, with_expired_password=True)

    def without_two_factor(self, view: View) -> View:
        """Serve this view also to users who have to set up two-factor authentication first."""
        return guards.mark(view, without_two_factor=True)

    def own_transactions(self, view: View) -> View:
        """Run this view in a unit that only reads; what it writes it puts into units of work of its own."""
        return guards.mark(view, own_transactions=True)

    def large_body(self, max_bytes: Callable[[], int | None]) -> Callable[[View], View]:
        """Set the maximum size of the body in bytes, see ``ApiBlueprint.large_body``."""
        return lambda view: guards.mark(view, max_body_bytes=max_bytes)

    def _handle(self, view: View) -> View:
        max_body_bytes = getattr(view, "max_body_bytes", None)
        own_transactions = getattr(view, "own_transactions", False)

        @functools.wraps(view)
        def handle(**url: Any) -> Any:
            writing = request.method not in identity.READ_METHODS
            if is_for_programs():
                identity.refuse_unknown_sender(request, ())
            if is_for_programs() and identity.token_of(request, parameters()) is not None:
                with reading():
                    g.caller = identity.sudo(request, identity.by_token(request, ()))
                with unit_of_work(write=writing):
                    return view(**url)
            if not writing:
                return _read(view, url)
            _authenticate_sender(max_body_bytes)
            parameters()  # malformed text is refused before anything uses it
            csrf.protect()
            with reading():
                g.caller = identity.by_session()
            if (step := _next_step(view)) is not None:
                return redirect(url_for(step))
            with reading() if own_transactions else unit_of_work(write=max_body_bytes is None):
                response = make_response(view(**url))
            if identity.caller().user_id is not None:
                say_saved(view.__name__, response.status_code)
            return response

        if max_body_bytes is None:
            return handle
        return guards.mark(handle, body_limit=lambda: _body_limit(max_body_bytes))


def _read(view: View, url: dict[str, Any]) -> FlaskResponse:
    parameters()
    with reading():
        g.caller = identity.by_session()
        if (step := _next_step(view)) is not None:
            return make_response(redirect(url_for(step)))
        response = make_response(view(**url))
        _note_visit(response.status_code)
        return response


def _note_visit(status: int) -> None:
    """Remember the project of a page that a user has opened; on a full disk the page is answered without it."""
    user_id, project = identity.caller().user_id, g.get("subject")
    if status != 200 or user_id is None or not isinstance(project, Project):
        return
    try:
        if not project_visits.is_noted(user_id, project.id):
            project_visits.note_visit(user_id, project.id)
    except SQLAlchemyError as error:
        log.warning("the visit of a project was not stored", error=str(error))


def _next_step(view: View) -> str | None:
    """Return the endpoint that the caller has to visit before this view, if there is one."""
    if identity.caller().password_expired:
        return None if hasattr(view, "with_expired_password") else PASSWORD_PAGE
    if identity.caller().lacks_two_factor:
        return None if hasattr(view, "without_two_factor") else TWO_FACTOR_PAGE
    return None


def _authenticate_sender(max_body_bytes: Callable[[], int | None] | None) -> None:
    """Refuse anonymous senders of large bodies, and of requests that programs send too, before the body is read."""
    is_large = identity.is_large(request, MAX_ANONYMOUS_BODY_BYTES)
    if max_body_bytes is None and not is_large and not is_for_programs():
        return
    limit = _body_limit(max_body_bytes)
    if max_body_bytes is not None:
        request.max_content_length = limit


def _body_limit(max_body_bytes: Callable[[], int | None] | None) -> int:
    """Return how large a body of the browser's user may be; raise ``Unauthorized`` for an anonymous one."""
    with reading():
        if identity.by_session().user_id is None:
            raise Unauthorized
        return guards.in_bytes(max_body_bytes)


def error_page(error: ServiceError) -> FlaskResponse:
    """Render the page of an error; anonymous users are sent to the sign-in page where signing in could help."""
    if "caller" not in g and error.status < 500:  # the request failed before authentication
        with reading():
            g.caller = identity.by_session()
    if error.status in (401, 404) and request.method == "GET" and _is_page() and identity.caller().user_id is None:
        return make_response(redirect(url_for(SIGN_IN, next=request.full_path.rstrip("?"))))
    title, advice = error.page_text or ERROR_TEXTS.get(error.status, ERROR_TEXTS[500 if error.status >= 500 else 400])
    html = render_template(
        "errors/show.html", status=error.status, title=title, advice=advice, request_id=logs.request_id()
    )
    return make_response(html, error.status, error.headers)


def is_for_programs() -> bool:
    """Whether the view of the current request is for programs too."""
    return getattr(current_app.view_functions.get(request.endpoint or ""), "for_programs", False)


def _is_page() -> bool:
    return isinstance(current_app.blueprints.get(request.blueprint or ""), PageBlueprint)


def back_to(address: str | None, otherwise: str) -> Response:
    """Redirect to an address that a form carries, if it is a page of this server, or else to ``otherwise``."""
    return redirect(address if address and is_local_path(address) else otherwise)


def is_local_path(address: str) -> bool:
    """Whether an address is a path on this server: no scheme, no host, no leading ``//`` or backslashes."""
    parts = urlsplit(address)
    return (
        not parts.scheme
        and not parts.netloc
        and address.startswith("/")
        and not address.startswith(("//", "/\\"))
        and "\\" not in address
        and address.isprintable()
    )
