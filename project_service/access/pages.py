"""The blueprint of the pages: the same steps as the API, with a browser session in place of a token."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

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
from werkzeug.wrappers import Response

from project_service.access import guards, identity
from project_service.access.abilities import Ability
from project_service.kit import clock, logs
from project_service.kit.db.session import reading, unit_of_work
from project_service.kit.http import urls
from project_service.kit.http.errors import ServiceError, Unauthorized
from project_service.kit.http.parameters import parameters
from project_service.kit.security import key_ring

SIGN_IN = "sessions.sign_in"
TEXTS = {
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
SIGNED_AGAIN_AFTER = dt.timedelta(minutes=5)
csrf = CSRFProtect()
View = Callable[..., Any]


class CookieSession(SecureCookieSession):
    """What a browser carries, and when that was signed."""

    signed_at: dt.datetime | None = None


class CookieSessions(SecureCookieSessionInterface):
    """Flask's sessions in signed cookies, for pages; whoever sends no cookie costs no look for keys."""

    session_class = CookieSession

    def open_session(self, app: Flask, request: Request) -> Any:
        """Read the cookie, if there is one; the API knows no sessions."""
        if request.path.startswith(urls.API):
            return self.make_null_session(app)
        # whoever sends none at all, as monitors do, needs nothing read
        cookie = request.cookies.get(self.get_cookie_name(app)) if "HTTP_COOKIE" in request.environ else None
        if not cookie:
            return self.session_class()
        lifetime = int(app.permanent_session_lifetime.total_seconds())
        try:
            said, signed_at = self.get_signing_serializer(app).loads(cookie, max_age=lifetime, return_timestamp=True)
        except BadSignature:
            return self.session_class()
        found = self.session_class(said)
        found.signed_at = signed_at
        return found

    def should_set_cookie(self, app: Flask, session: SessionMixin) -> bool:
        """Whether to send it again: as Flask does, but not with every page, which would cost a twentieth of it.

        As long as keys of before count, it may be signed with one of these.
        """
        signed_at = getattr(session, "signed_at", None)
        is_new = signed_at is not None and clock.now() - signed_at < SIGNED_AGAIN_AFTER
        is_new = is_new and not app.config["SECRET_KEY_FALLBACKS"]
        return session.modified if is_new else super().should_set_cookie(app, session)

    def get_signing_serializer(self, app: Flask) -> Any:
        """What reads and signs cookies, with the keys as they are now."""
        sign_with(app, key_ring.keyring())
        return super().get_signing_serializer(app)


def sign_with(app: Flask, keyring: key_ring.KeyRing) -> None:
    """Have cookies and form tokens signed with these keys: after a rotation every process reads what another signed."""
    app.config["SECRET_KEY"] = keyring.signing_key
    app.config["SECRET_KEY_FALLBACKS"] = keyring.signing_key_fallbacks
    app.config["WTF_CSRF_SECRET_KEY"] = [*reversed(keyring.signing_key_fallbacks), keyring.signing_key]


class PageBlueprint(Blueprint):
    """The pages of one area."""

    def add_url_rule(
        self, rule: str, endpoint: str | None = None, view_func: Any = None, *args: Any, **options: Any
    ) -> None:
        """Register a page behind the steps of a request; a page that names no ability does not register."""
        guards.check_guarded(view_func)
        super().add_url_rule(rule, endpoint or view_func.__name__, self._answer(view_func), *args, **options)

    def signed_in(self, view: View) -> View:
        """Somebody has to be signed in; a browser is sent to the sign-in page and comes back afterwards."""

        @functools.wraps(view)
        def checked(*args: Any, **url: Any) -> Any:
            if identity.caller().user_id is None and is_for_programs():
                raise Unauthorized
            if identity.caller().user_id is None:
                return redirect(
                    url_for(SIGN_IN, next=request.full_path.rstrip("?") if request.method == "GET" else None)
                )
            return view(*args, **url)

        checked.needs_user = True  # type: ignore[attr-defined]  # a mark for the guard of the route table
        return checked

    def allow(self, ability: Ability) -> Callable[[View], View]:
        """Find what the URL is about, judge, hide."""
        return guards.allow(ability)

    def for_programs(self, view: View) -> View:
        """What programs send to as well: with an access token in place of session and form token; refusals in JSON."""
        view.for_programs = True  # type: ignore[attr-defined]  # a mark that ``_answer`` and the renderer of errors read
        return view

    def large_body(self, largest: Callable[[], int | None]) -> Callable[[View], View]:
        """A form whose files may be large, as ``ApiBlueprint.large_body`` has it."""

        def decorate(view: View) -> View:
            view.largest_body = largest  # type: ignore[attr-defined]  # a mark that ``_answer`` reads
            return view

        return decorate

    def _answer(self, view: View) -> View:
        largest_body = getattr(view, "largest_body", None)

        @functools.wraps(view)
        def answered(**url: Any) -> Any:
            writing = request.method not in identity.READ_METHODS
            if is_for_programs() and identity.token_of(request, parameters()) is not None:
                with reading():
                    g.caller = identity.sudo(request, identity.by_token(request, ()))
                with unit_of_work(write=writing):
                    return view(**url)
            if not writing:
                return _read(view, url)
            _ask_first(largest_body)
            parameters()  # broken text is refused before anything looks for it or stores it
            csrf.protect()
            with reading():
                g.caller = identity.by_session()
            with unit_of_work(write=largest_body is None):
                return view(**url)

        return answered


def _read(view: View, url: dict[str, Any]) -> FlaskResponse:
    parameters()
    with reading():
        g.caller = identity.by_session()
        return make_response(view(**url))


def _ask_first(largest_body: Callable[[], int | None] | None) -> None:
    """Whoever sends a large body, or what programs send too, hears that nobody is signed in before anything else."""
    if largest_body is None and not is_for_programs():
        return
    with reading():
        if identity.by_session().user_id is None:
            raise Unauthorized
        if largest_body is not None:
            guards.admit(largest_body())


def error_page(error: ServiceError) -> FlaskResponse:
    """What people see of a refusal. Whoever is not signed in may find more after signing in."""
    if "caller" not in g and error.status < 500:  # refused before any page had asked who it is
        with reading():
            g.caller = identity.by_session()
    if error.status in (401, 404) and request.method == "GET" and _is_page() and identity.caller().user_id is None:
        return make_response(redirect(url_for(SIGN_IN, next=request.full_path.rstrip("?"))))
    title, advice = TEXTS.get(error.status, TEXTS[500 if error.status >= 500 else 400])
    html = render_template(
        "errors/show.html", status=error.status, title=title, advice=advice, request_id=logs.request_id()
    )
    return make_response(html, error.status, error.headers)


def is_for_programs() -> bool:
    """Whether what the current request is for answers programs."""
    return getattr(current_app.view_functions.get(request.endpoint or ""), "for_programs", False)


def _is_page() -> bool:
    return isinstance(current_app.blueprints.get(request.blueprint or ""), PageBlueprint)


def back_to(address: str | None, otherwise: str) -> Response:
    """Go where a form says people came from, if that is a page of ours; never anywhere else."""
    return redirect(address if address and is_ours(address) else otherwise)


def is_ours(address: str) -> bool:
    """Whether an address is a path on this server: no scheme, no host, no tricks with slashes and backslashes."""
    parts = urlsplit(address)
    return (
        not parts.scheme
        and not parts.netloc
        and address.startswith("/")
        and not address.startswith(("//", "/\\"))
        and "\\" not in address
        and address.isprintable()
    )
