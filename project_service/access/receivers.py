"""The blueprint of receivers: addresses outside the API whose caller is an integration with a key of its own.

The steps are those of the alert ingestion reference, sections 1, 3 and 4: a body that can be read at all (400), a place
for receivers (404), the body within its limits (400), a receiver that is there and active (403), its key (401), then
the act. Error bodies are empty; other methods than POST are not there.

Who was let in is remembered, and not looked for again when it comes with the same key: the act itself finds out whether
the receiver still is what it was, and when it is not, all steps are taken.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import redis.exceptions
import structlog
from flask import Blueprint, Response, request
from flask.blueprints import BlueprintSetupState
from werkzeug.exceptions import RequestEntityTooLarge

from project_service.access.api import json_response
from project_service.core import instance
from project_service.core.instance import RECEIVERS_THROTTLE as THROTTLE
from project_service.kit import current, jobs, secrets
from project_service.kit.database import reading

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

    def find(self, place: Hashable) -> Receiver | None:
        """The one at a place that takes the key of this request."""
        with self._lock:
            found = self._kept.get(place)
            if found is None:
                return None
            self._kept.move_to_end(place)
        return found if secrets.same(found.token, given_key()) else None

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
    ) -> Callable[[Callable[..., Any]], Callable[..., Response]]:
        """Register a receiver. ``find`` gets the parts of the URL; ``absent`` is the answer when there is none.

        ``check`` may refuse a payload whoever sends it, but not before ``find`` has refused its address. The view
        gets the receiver and the payload, outside of any unit of work: what it stores is its own to commit. Of a
        receiver that was remembered it makes sure with what it writes, or else raises ``Outdated``.
        """

        def decorate(view: Callable[..., Any]) -> Callable[..., Response]:
            @functools.wraps(view)
            def received(**url: Any) -> Response:
                payload, refused = self._read(check)
                remembered: Remembered = current.app().extensions[REMEMBERED]
                parts = (url[name] for name in url if name not in (PROJECT, SLUG))
                place = view.__name__, url[PROJECT].lower(), *parts
                if refused is None and (known := remembered.find(place)) is not None:
                    try:
                        return json_response(view(known, payload))
                    except Outdated:
                        remembered.forget(place, known)
                with reading():
                    receiver, misled = (None, None) if refused and refused.at_once else _found(find, url)
                    refused = misled or refused
                    if (receiver is None or receiver.is_limited) and (limited := _throttled()) is not None:
                        return limited
                if refused is not None:
                    return Response(status=refused.status)
                if receiver is None or not receiver.active:
                    return Response(status=absent)
                if not secrets.same(receiver.token, given_key()):
                    return Response(status=401)
                remembered.put(place, receiver.remembered())
                return json_response(view(receiver, payload))

            received.receives = True  # type: ignore[attr-defined]  # a mark for the guard of the route table
            for rule in rules:
                endpoint = f"{view.__name__}_{rules.index(rule)}"
                self.add_url_rule(rule, endpoint, received, provide_automatic_options=False, methods=["POST"])
                self.leave_out(rule, endpoint=f"{endpoint}_other", methods=OTHER_METHODS)
            return received

        return decorate

    def leave_out(
        self, rule: str, endpoint: str = "nothing", methods: Sequence[str] = ("POST", *OTHER_METHODS)
    ) -> None:
        """Say of an address that nothing is there for these methods."""
        self.add_url_rule(rule, endpoint, _not_there, provide_automatic_options=False, methods=methods)

    def _read(self, check: Callable[[Any], None] | None) -> tuple[Any, Refused | None]:
        """The payload, or why there is none; refused requests are counted too, so that is told later."""
        try:
            payload = self.read(_body())
            if check is not None:
                check(payload)
        except Refused as error:
            return None, error
        return payload, None


def _body() -> bytes:
    try:
        return request.get_data(cache=False)
    except RequestEntityTooLarge as error:  # beyond the limit of every body, so beyond that of a payload
        raise Refused(400) from error


def given_key() -> str:
    """The key a request carries: as a bearer token, or as the password of basic authentication."""
    authorization = request.authorization
    if authorization is None or authorization.type not in BASIC_AND_BEARER:
        return ""
    return authorization.token or authorization.password or ""


def _found(find: Callable[..., Receiver | None], url: dict[str, Any]) -> tuple[Receiver | None, Refused | None]:
    """The receiver, or the refusal: whoever is refused is counted too, so that is told later."""
    try:
        return find(**url), None
    except Refused as error:
        return None, error


def _not_there(**_url: Any) -> Response:
    return Response(status=404)


_not_there.receives = True  # type: ignore[attr-defined]  # as above


def _remember_nothing(state: BlueprintSetupState) -> None:
    state.app.extensions[REMEMBERED] = Remembered()


def _throttled() -> Response | None:
    if not instance.setting(f"{THROTTLE}_enabled"):
        return None
    most, period = instance.some_settings(f"{THROTTLE}_per_period", f"{THROTTLE}_period_in_seconds")
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
