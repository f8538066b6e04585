"""What every kind of channel does: check its fields, make a request of a message, judge the answer."""

from __future__ import annotations

import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any, ClassVar
from urllib.parse import urlsplit

from project_service.areas.notifications.messages import ChannelMessage
from project_service.kit import exact_json
from project_service.kit.deliveries import DeliveryOutcome, DeliveryResult
from project_service.kit.security.outgoing_http import rules
from project_service.kit.security.outgoing_http.client import Client, RequestFailed
from project_service.kit.security.outgoing_http.rules import Blocked, Policy

USER_AGENT = f"project-service/{version('project-service')}"
TOTAL_SECONDS = 10.0
MAX_ANSWER_BYTES = 8 << 10
MAX_SHOWN_ANSWER = 500
MAX_URL_LENGTH = 2048
REPEATED = (408, 429)
MASK = "…"


@dataclass(frozen=True, slots=True)
class ChannelData:
    """What is needed of a channel while no transaction is open."""

    id: int
    name: str
    settings: dict[str, Any]
    secrets: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message on its way to a channel. ``key`` stays the same when it is repeated."""

    message: ChannelMessage
    channel: ChannelData
    key: str
    policy: Policy
    acknowledge_url: str | None = None
    resolve_url: str | None = None
    stop_url: str | None = None  # of a channel of the type e-mail
    unsubscribe_url: str | None = None  # for mail programs

    @property
    def links(self) -> list[tuple[str, str]]:
        """The names and addresses of the links, the first of which opens the page."""
        links = [("Open", self.message.url)]
        return links + ([self.action] if self.action is not None else [])

    @property
    def action(self) -> tuple[str, str] | None:
        """What the message asks for: to acknowledge alerts that are triggered, else to resolve them."""
        if self.acknowledge_url is not None:
            return "Acknowledge", self.acknowledge_url
        return None if self.resolve_url is None else ("Resolve", self.resolve_url)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request to a service."""

    url: str = field(repr=False)
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    verifies: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service answered; without ``status`` it did not."""

    status: int | None
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    is_final: bool = False
    duration_seconds: float = 0.0

    @property
    def json(self) -> dict[str, Any]:
        """The answer as a JSON object; empty if it is none."""
        try:
            value = exact_json.loads(self.text)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def header(self, name: str) -> str | None:
        """Return a header by its lower-case name."""
        return next((value for key, value in self.headers.items() if key.lower() == name), None)


class ChannelKind(ABC):
    """A kind of channel; stateless. ``fields`` are the names of settings, ``secrets`` those of secrets."""

    type: ClassVar[str]
    title: ClassVar[str]
    fields: ClassVar[tuple[str, ...]] = ()
    secrets: ClassVar[tuple[str, ...]] = ("url",)
    delivered: ClassVar[tuple[int, ...]] = (200,)
    required: ClassVar[tuple[str, ...]] = ("url",)
    needs_https: ClassVar[bool] = True
    default_rate: ClassVar[int] = 20  # messages per minute
    final_failures: ClassVar[int] = 3  # in a row, before the channel counts as failing

    @abstractmethod
    def request(self, outgoing: Outgoing) -> HttpRequest:
        """Return the request for a message."""

    def problems(self, settings: dict[str, Any], secrets: dict[str, Any], policy: Policy) -> dict[str, list[str]]:
        """Return what is wrong with the fields, by their names."""
        return url_problems("url", secrets.get("url"), policy, needs_https=self.needs_https)

    def target(self, settings: dict[str, Any], secrets: dict[str, Any]) -> str:
        """Return what people recognise the channel by, without secrets."""
        return masked_url(secrets.get("url") or "")

    def deliver(self, outgoing: Outgoing) -> DeliveryOutcome:
        """Send a message and judge the answer; nothing is sent to a channel that lacks a field."""
        configured = outgoing.channel.settings | outgoing.channel.secrets
        if missing := [name for name in self.required if not configured.get(name)]:
            error = f"the channel is incomplete: {', '.join(missing)} is missing"
            return DeliveryOutcome(DeliveryResult.FINAL, error, details=Answer(None, error=error, is_final=True))
        return self.outcome(self.send(outgoing))

    def deliver_test(self, outgoing: Outgoing) -> DeliveryOutcome:
        """Send a test, which asks nobody to do anything."""
        return self.deliver(outgoing)

    def send(self, outgoing: Outgoing) -> Answer:
        """Send a message over the network."""
        return perform(self.request(outgoing), outgoing)

    def outcome(self, answer: Answer) -> DeliveryOutcome:
        """Return what an answer means: delivered, again or final."""
        if answer.status in self.delivered and (text := self.refusal(answer)) is None:
            return DeliveryOutcome(DeliveryResult.DELIVERED, details=answer)
        if answer.status in self.delivered:
            return DeliveryOutcome(DeliveryResult.FINAL, text, details=answer)
        error = answer.error or f"HTTP {answer.status} {answer.text[:MAX_SHOWN_ANSWER]}".strip()
        is_repeated = answer.status is None or answer.status in REPEATED or answer.status >= 500
        result = DeliveryResult.AGAIN if is_repeated and not answer.is_final else DeliveryResult.FINAL
        return DeliveryOutcome(result, error, self.retry_after(answer), answer)

    def refusal(self, answer: Answer) -> str | None:
        """Return why an answer that looks like success is none."""
        return None

    def retry_after(self, answer: Answer) -> float | None:
        """Return the seconds that the service asks to wait."""
        return seconds_of(answer.header("retry-after"))

    def pause_after(self, _answer: Answer) -> float | None:
        """Return the seconds in which the service takes no further message of this channel."""
        return None


def perform(request: HttpRequest, outgoing: Outgoing) -> Answer:
    """Send a request through the guarded client; redirects are not followed."""
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": USER_AGENT,
        "Idempotency-Key": outgoing.key,
    } | dict(request.headers)
    client = Client(
        outgoing.policy,
        read_timeout=TOTAL_SECONDS,
        total_timeout=TOTAL_SECONDS,
        max_redirects=0,
        tls=None if request.verifies else _unverified_tls(),
    )
    started = time.monotonic()
    try:
        with client.request("POST", request.url, headers=headers, body=request.body) as response:
            chunk = next(response.iter_chunks(MAX_ANSWER_BYTES), b"")
            status, text = response.status, chunk.decode("utf-8", errors="replace").replace("\0", "")
            answered = dict(response.headers.items())
    except Blocked as error:
        return Answer(None, error=str(error), is_final=str(error) != rules.UNRESOLVED, duration_seconds=_since(started))
    except RequestFailed as error:
        return Answer(None, error=str(error), duration_seconds=_since(started))
    return Answer(status, text, answered, duration_seconds=_since(started))


def body_of(value: dict[str, Any]) -> bytes:
    """Return the bytes of a JSON body."""
    return exact_json.dumps(value)


def url_problems(name: str, url: Any, policy: Policy, *, needs_https: bool) -> dict[str, list[str]]:
    """Return what is wrong with a URL of a user."""
    if not url:
        return {name: ["can't be blank"]}
    if len(url) > MAX_URL_LENGTH:
        return {name: [f"is too long (maximum is {MAX_URL_LENGTH} characters)"]}
    if needs_https and urlsplit(url).scheme != "https":
        return {name: ["must begin with https://"]}
    try:
        rules.validate(url, policy)
    except Blocked as error:
        if str(error) == rules.UNRESOLVED:
            return {name: ["is not allowed: its host is unknown"]}
        return {name: ["is not allowed"]}
    return {}


def masked_url(url: str) -> str:
    """Return the host of a URL and its last characters: ``hooks.example.com/…x3Xy``."""
    parts = urlsplit(url)
    tail = f"/{MASK}{url[-4:]}" if len(parts.path) > 8 else ""
    return f"{parts.hostname or ''}{tail}"


def masked_text(text: str) -> str:
    """Return the first characters of a text."""
    return f"{text[:2]}{MASK}"


def seconds_of(value: Any) -> float | None:
    """Return a number of seconds that a service sent, as text or number."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return seconds if 0 <= seconds < 1e6 else None


def _since(started: float) -> float:
    return round(time.monotonic() - started, 3)


@cache
def _unverified_tls() -> ssl.SSLContext:
    """Return the TLS settings of channels whose owners have switched verification off."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
