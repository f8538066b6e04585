"""The blueprint of receivers: addresses outside the API whose caller is an integration with a key of its own.

The steps are those of the alert ingestion reference, sections 1, 3 and 4: a body that can be read at all (400), a place
for receivers (404), the body within its limits (400), a receiver that is there and active (403), its key (401), then
the act. Error bodies are empty; other methods than POST are not there.

Who was let in is remembered. When it comes again with the same key a layer in front of Flask goes straight to the act,
which finds out whether the receiver still is what it was; when it is not, or the body is out of the ordinary, all steps
are taken.
"""

from __future__ import annotations

import io
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import redis.exceptions
import structlog
from flask import Blueprint, Flask, Response, request
from flask.blueprints import BlueprintSetupState
from werkzeug.datastructures import Authorization
from werkzeug.exceptions import RequestEntityTooLarge

from project_service.access.api import json_response
from project_service.domain import instance_settings
from project_service.domain.instance_settings import RECEIVERS_THROTTLE as THROTTLE
from project_service.kit import bigint_json, jobs
from project_service.kit.db.session import reading
from project_service.kit.http import current, responses
from project_service.kit.security import secrets

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

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
BASIC_AND_BEARER = ("bearer", "basic")
MOST_DIGITS = 18  # of the length of a body
MOST_REMEMBERED, REMEMBERED = 1000, "remembered_receivers"
PROJECT, SLUG = "project", "slug"  # parts of URLs: in any case, and whatever it says

log = structlog.get_logger(__name__)


class Receiver(Protocol):
    """What a request is received by: it has a key, and may be switched off."""

    @property
    def token(self) -> str:
        """The key."""

    @property
    def active(self) -> bool:
        """Whether it takes anything in."""

    @property
    def is_limited(self) -> bool | None:
        """Whether requests of receivers are counted; read along with the receiver, for most are not."""

    def remembered(self) -> Receiver | None:
        """The same for later requests, which the view makes sure of; nothing where it is to be looked for again."""


class Refused(Exception):
    """A request that is answered with a bare status; ``at_once`` whatever there is at its address."""

    def __init__(self, status: int, *, at_once: bool = False) -> None:
        super().__init__(status)
        self.status = status
        self.at_once = at_once


class Outdated(Exception):
    """A receiver that was remembered no longer is what it was, so that nothing was done."""


class Remembered:
    """The receivers that let somebody in last, each at its place."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Receiver] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, place: Hashable, key: str) -> Receiver | None:
        """The one at a place that takes this key."""
        with self._lock:
            found = self._kept.get(place)
            if found is None:
                return None
            self._kept.move_to_end(place)
        return found if secrets.same(found.token, key) else None

    def put(self, place: Hashable, receiver: Receiver | None) -> None:
        """Remember it in place of another; of too many the one is forgotten that came last the longest ago."""
        with self._lock:
            self._kept.pop(place, None)
            if receiver is not None:
                self._kept[place] = receiver
            if len(self._kept) > MOST_REMEMBERED:
                self._kept.popitem(last=False)

    def forget(self, place: Hashable, outdated: Receiver) -> None:
        """Forget it, unless another has taken its place: nobody comes as far with it again."""
        with self._lock:
            if self._kept.get(place) is outdated:
                del self._kept[place]


class Reception:
    """The view of the receivers of one kind, as Flask calls it: it takes all steps."""

    receives = True  # a mark for the guard of the route table

    def __init__(
        self,
        act: Callable[[Any, Any], Any],
        read: Callable[[bytes], Any],
        find: Callable[..., Receiver | None],
        absent: int,
        check: Callable[[Any], None] | None,
    ) -> None:
        self.act = act
        self._read = read
        self._find = find
        self._absent = absent
        self._check = check

    def __call__(self, **url: Any) -> Response:
        """Answer a request for the address that says ``url``."""
        payload, refused = self._read_payload()
        with reading():
            receiver, misled = (None, None) if refused and refused.at_once else self._look_for(url)
            refused = misled or refused
            if (receiver is None or receiver.is_limited) and (limited := _throttled()) is not None:
                return limited
        if refused is not None:
            return Response(status=refused.status)
        if receiver is None or not receiver.active:
            return Response(status=self._absent)
        if not secrets.same(receiver.token, given_key()):
            return Response(status=401)
        remembered_of(current.app()).put(self.place(url), receiver.remembered())
        return json_response(self.act(receiver, payload))

    def place(self, url: Mapping[str, Any]) -> Hashable:
        """What tells an address from all others, however it is written."""
        parts = (url[name] for name in url if name not in (PROJECT, SLUG))
        return self, url[PROJECT].lower(), *parts

    def payload(self, body: bytes) -> Any:
        """What a body says; raises ``Refused``."""
        payload = self._read(body)
        if self._check is not None:
            self._check(payload)
        return payload

    def _read_payload(self) -> tuple[Any, Refused | None]:
        """The payload, or why there is none; refused requests are counted too, so that is told later."""
        try:
            return self.payload(_body()), None
        except Refused as error:
            return None, error

    def _look_for(self, url: dict[str, Any]) -> tuple[Receiver | None, Refused | None]:
        """The receiver, or the refusal, for the same reason."""
        try:
            return self._find(**url), None
        except Refused as error:
            return None, error


class Known(NamedTuple):
    """A request of somebody who was let in before: where it leads, and who takes it in."""

    reception: Reception
    route: str
    place: Hashable
    receiver: Receiver
    length: int  # of the body


class KnownReceivers:
    """A WSGI layer: from whoever was let in before more is taken in, and the application is not even asked.

    To begin and to end a request there takes longer than to take in an alert. To the application is left whoever is not
    known, or no longer, or sends what cannot be taken in, and all requests unless ``is_ready``; and what fails here is
    raised there, where all errors are logged and answered.
    """

    def __init__(self, application: WSGIApplication, app: responses.Application, is_ready: Callable[[], bool]) -> None:
        self.application = application
        self.app = app
        self.is_ready = is_ready

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Take in what a known receiver is sent."""
        try:
            known = self._find(environ)
            told = None if known is None else self._take_in(known, environ)
        except Exception as error:  # noqa: BLE001  # as told above
            environ[responses.FAILED] = error
            known = None
        if known is None or told is None:
            return self.application(environ, start_response)
        return responses.send(environ, start_response, (200, responses.USUAL_OF_JSON, told), known.route)

    def _find(self, environ: WSGIEnvironment) -> Known | None:
        found = self.app.url_map.find(environ)
        if found is None:
            return None
        rule, url = found
        reception, length = self.app.view_functions[rule.endpoint], self._length(environ)
        if not isinstance(reception, Reception) or length is None or not self.is_ready():
            return None
        place = reception.place(url)
        receiver = remembered_of(self.app).find(place, key_of(environ))
        return None if receiver is None else Known(reception, rule.rule, place, receiver, length)

    def _length(self, environ: WSGIEnvironment) -> int | None:
        """How long the body is, if that is told and any may be as long."""
        told = environ.get("CONTENT_LENGTH", "")
        if not told.isdecimal() or len(told) > MOST_DIGITS or "HTTP_TRANSFER_ENCODING" in environ:
            return None
        return length if (length := int(told)) <= self.app.config["MAX_CONTENT_LENGTH"] else None

    def _take_in(self, known: Known, environ: WSGIEnvironment) -> bytes | None:
        """What is answered; nothing if the application is to take all steps, with the same body."""
        body = environ["wsgi.input"].read(known.length)
        try:
            if len(body) == known.length:
                with self.app.app_context(), current.serving(environ):
                    return bigint_json.dumps(known.reception.act(known.receiver, known.reception.payload(body)))
        except (Outdated, Refused) as error:
            if isinstance(error, Outdated):
                remembered_of(self.app).forget(known.place, known.receiver)
        environ["wsgi.input"] = io.BytesIO(body)
        return None


class ReceiverBlueprint(Blueprint):
    """The receivers of one area. ``read`` turns a body into a payload or raises ``Refused``."""

    def __init__(self, name: str, import_name: str, read: Callable[[bytes], Any]) -> None:
        super().__init__(name, import_name)
        self.read = read
        self.record(_remember_nothing)

    def receive(
        self,
        *rules: str,
        find: Callable[..., Receiver | None],
        absent: int = 403,
        check: Callable[[Any], None] | None = None,
    ) -> Callable[[Callable[..., Any]], Reception]:
        """Register a receiver. ``find`` gets the parts of the URL; ``absent`` is the answer when there is none.

        ``check`` may refuse a payload whoever sends it, but not before ``find`` has refused its address. The decorated
        function is the act: it gets the receiver and the payload, outside of any unit of work, and what it stores is
        its own to commit. Of a receiver that was remembered it makes sure with what it writes, or else raises
        ``Outdated``; then there is no request of Flask's, only what ``current.environ`` says.
        """

        def decorate(act: Callable[..., Any]) -> Reception:
            reception = Reception(act, self.read, find, absent, check)
            for rule in rules:
                endpoint = f"{act.__name__}_{rules.index(rule)}"
                self.add_url_rule(rule, endpoint, reception, provide_automatic_options=False, methods=["POST"])
                self.leave_out(rule, endpoint=f"{endpoint}_other", methods=OTHER_METHODS)
            return reception

        return decorate

    def leave_out(
        self, rule: str, endpoint: str = "nothing", methods: Sequence[str] = ("POST", *OTHER_METHODS)
    ) -> None:
        """Say of an address that nothing is there for these methods."""
        self.add_url_rule(rule, endpoint, _not_there, provide_automatic_options=False, methods=methods)


def _body() -> bytes:
    try:
        return request.get_data(cache=False)
    except RequestEntityTooLarge as error:  # beyond the limit of every body, so beyond that of a payload
        raise Refused(400) from error


def given_key() -> str:
    """The key that the current request carries."""
    return key_of(current.request().environ)


def key_of(environ: WSGIEnvironment) -> str:
    """The key of a request: a bearer token, or the password of basic authentication."""
    try:
        authorization = Authorization.from_header(environ.get("HTTP_AUTHORIZATION"))
    except ValueError:  # for basic authentication in other letters than base64 has
        return ""
    if authorization is None or authorization.type not in BASIC_AND_BEARER:
        return ""
    return authorization.token or authorization.password or ""


def remembered_of(app: Flask) -> Remembered:
    """Who is remembered by this process."""
    found: Remembered = app.extensions[REMEMBERED]
    return found


def _not_there(**_url: Any) -> Response:
    return Response(status=404)


_not_there.receives = True  # type: ignore[attr-defined]  # as above


def _remember_nothing(state: BlueprintSetupState) -> None:
    state.app.extensions[REMEMBERED] = Remembered()


def _throttled() -> Response | None:
    if not instance_settings.setting(f"{THROTTLE}_enabled"):
        return None
    most, period = instance_settings.some_settings(f"{THROTTLE}_per_period", f"{THROTTLE}_period_in_seconds")
    window = int(time.time()) // period
    key = f"project-service:throttle:{secrets.digest(request.path)}:{window}"
    try:
        connection = jobs.connect()
        count = int(connection.incr(key))
        if count == 1:
            connection.expire(key, period)
    except redis.exceptions.RedisError as error:
        log.warning("requests cannot be counted; the limit is not applied", error=str(error))
        return None
    if count <= most:
        return None
    left = period - int(time.time()) % period
    return Response("Retry later", 429, {"Retry-After": str(left)}, mimetype="text/plain")
