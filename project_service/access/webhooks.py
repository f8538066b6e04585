"""Blueprint of receivers: URLs for webhooks of monitoring tools, authenticated with the key of an integration.

The order of the checks is that of the alert ingestion reference, sections 1, 3 and 4: malformed JSON (400), the project
and route (404), the rate limit (429), limits of the body (400), an active receiver (403), its key (401). Bodies of
errors are empty; other methods than POST answer 404.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import structlog
from flask import Blueprint, Response, request
from sqlalchemy.exc import DBAPIError
from werkzeug.exceptions import RequestEntityTooLarge

from project_service.access.api import json_response
from project_service.domain import instance_settings, rate_limits
from project_service.domain.instance_settings import RECEIVERS_THROTTLE
from project_service.domain.rate_limits import RateLimit
from project_service.kit.db.session import is_deadlock, reading, unit_of_work
from project_service.kit.security import tokens

OTHER_METHODS = (
    "GET",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "REPORT",
    "SEARCH",
)
# some tools send the key only after they were asked for it
CHALLENGE = {"WWW-Authenticate": 'Basic realm="alerts"'}
TOO_LARGE = "more than 1 MiB"
INACTIVE, WRONG_KEY, NO_KEY = "an inactive integration", "the key is wrong", "no key was sent"
MAX_ATTEMPTS = 4  # of a transaction that the database ends to resolve a deadlock

log = structlog.get_logger(__name__)


class WebhookReceiver(Protocol):
    """The integration that a URL belongs to."""

    @property
    def token(self) -> str:
        """The key that the caller must send."""

    @property
    def active(self) -> bool:
        """Whether it accepts requests."""

    @property
    def throttled(self) -> bool | None:
        """Whether the instance limits the requests of receivers; loaded with the receiver, most instances do not."""

    @property
    def rate_limit_subject(self) -> str | int:
        """What its requests are counted under."""


class WebhookRefused(Exception):
    """A request is answered with a status and an empty body.

    ``reason`` says why, for the log of the integration. ``precedes_lookup``: the same status also where there is no
    such project.
    """

    def __init__(self, status: int, reason: str = "", *, precedes_lookup: bool = False) -> None:
        super().__init__(status)
        self.status = status
        self.reason = reason
        self.precedes_lookup = precedes_lookup


class ReceiverBlueprint(Blueprint):
    """The receivers of one area.

    ``read`` parses a body into a payload or raises ``WebhookRefused``. ``refused`` gets each refused request: its
    receiver, the refusal and the body.
    """

    def __init__(
        self,
        name: str,
        import_name: str,
        read: Callable[[bytes], Any],
        refused: Callable[[Any, WebhookRefused, bytes], None],
    ) -> None:
        super().__init__(name, import_name)
        self.read = read
        self.refused = refused

    def receive(
        self,
        *rules: str,
        find: Callable[..., WebhookReceiver | None],
        absent: int = 403,
        check: Callable[[Any], None] | None = None,
    ) -> Callable[[Callable[[Any, Any], Any]], Callable[..., Response]]:
        """Register a receiver for URL rules.

        ``find`` gets the parts of the URL, returns the receiver or ``None`` (answered with ``absent``) and raises
        ``WebhookRefused`` where there is no project. ``check`` may refuse a payload before the key is compared. The
        decorated function gets the receiver and the payload; it runs in a unit of work, which is repeated after a
        deadlock, and returns what is answered as JSON.
        """

        def decorate(act: Callable[[Any, Any], Any]) -> Callable[..., Response]:
            def view(**url: Any) -> Response:
                body, payload, refusal = self._read_payload(check)
                with reading():
                    try:
                        receiver = find(**url)
                    except WebhookRefused as error:
                        receiver = None
                        refusal = refusal if refusal is not None and refusal.precedes_lookup else error
                    if receiver is not None and receiver.throttled and (limited := _over_limit(receiver)) is not None:
                        self.refused(receiver, WebhookRefused(429, "too many requests"), body)
                        return limited
                refusal = refusal or _refusal_of(receiver, absent)
                if refusal is not None:
                    if receiver is not None:
                        self.refused(receiver, refusal, body)
                    return Response(status=refusal.status, headers=CHALLENGE if refusal.status == 401 else None)
                return json_response(in_unit_of_work(lambda: act(receiver, payload)))

            for number, rule in enumerate(rules):
                endpoint = f"{act.__name__}_{number}"
                self.add_url_rule(rule, endpoint, view, provide_automatic_options=False, methods=["POST"])
                self.answer_not_found(rule, endpoint=f"{endpoint}_other", methods=OTHER_METHODS)
            return view

        return decorate

    def answer_not_found(
        self, rule: str, endpoint: str = "nothing", methods: Sequence[str] = ("POST", *OTHER_METHODS)
    ) -> None:
        """Answer these methods of a URL rule with 404 and an empty body."""
        self.add_url_rule(rule, endpoint, _not_found, provide_automatic_options=False, methods=methods)

    def _read_payload(self, check: Callable[[Any], None] | None) -> tuple[bytes, Any, WebhookRefused | None]:
        """Return body and payload, or why there is none: refused requests count against the rate limit, too."""
        body = b""
        try:
            body = request.get_data(cache=True)  # the log keeps it, too
            payload = self.read(body)
            if check is not None:
                check(payload)
        except RequestEntityTooLarge:  # larger than the bodies of all URLs, so larger than a payload may be
            return body, None, WebhookRefused(400, TOO_LARGE)
        except WebhookRefused as error:
            return body, None, error
        return body, payload, None


def _refusal_of(receiver: WebhookReceiver | None, absent: int) -> WebhookRefused | None:
    """Return why a readable request is refused; ``None`` if it is not."""
    if receiver is None or not receiver.active:
        return WebhookRefused(absent, INACTIVE)
    key = sent_key()
    if not tokens.same(receiver.token, key):
        return WebhookRefused(401, WRONG_KEY if key else NO_KEY)
    return None


def sent_key() -> str:
    """Return the key of the current request: a bearer token, or the password of basic authentication."""
    try:
        authorization = request.authorization
    except ValueError:  # basic authentication that is not base64
        return ""
    if authorization is None or authorization.type not in ("bearer", "basic"):
        return ""
    return authorization.token or authorization.password or ""


def _not_found(**_url: Any) -> Response:
    return Response(status=404)


def in_unit_of_work(act: Callable[[], Any], is_transient: Callable[[Exception], bool] = is_deadlock) -> Any:
    """Run a function in a unit of work, again when the database has ended its transaction to resolve a deadlock."""
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            with unit_of_work():
                return act()
        except DBAPIError as error:
            if not is_transient(error):
                raise
            log.info("the transaction of a webhook is repeated", error=str(error))
    with unit_of_work():
        return act()


def _over_limit(receiver: WebhookReceiver) -> Response | None:
    """Count the request; the answer when there were too many."""
    limit, seconds = instance_settings.some_settings(
        f"{RECEIVERS_THROTTLE}_per_period", f"{RECEIVERS_THROTTLE}_period_in_seconds"
    )
    wait = rate_limits.count(RateLimit("receiver", limit, seconds).counter(receiver.rate_limit_subject))
    if wait is None:
        return None
    headers = {"Retry-After": str(rate_limits.seconds_of(wait))}
    return Response("Retry later", 429, headers, mimetype="text/plain")
