"""Requests to the API of a project's Sentry server, cached for a minute (error collection reference, section 19).

Answers are cached in Redis, by setting and request. While the server fails, answers of up to ten minutes ago take the
place of current ones where the caller allows it.
"""

from __future__ import annotations

import hashlib
import re
import ssl
import time
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import orjson
import redis
from flask import current_app

from project_service.areas.error_tracking.settings.models import ErrorTrackingSetting
from project_service.domain import instance_settings
from project_service.kit.db.session import db
from project_service.kit.http.errors import ServiceError
from project_service.kit.security.outgoing_http import client, rules

FRESH_SECONDS = 60
STALE_SECONDS = 600
TOTAL_SECONDS = 10.0
CONNECT_SECONDS = 5.0
MAX_BYTES = 1 << 20
MAX_CACHED_RESPONSES = 50
MAX_PAUSE_SECONDS = 600
SUCCESSES = range(200, 205)
REFUSED_TOKEN = (401, 403)
GONE = (404, 410)
TOO_MANY = 429
LINK = re.compile(r'<[^<>]*>; *rel="(previous|next)"; *results="true"; *cursor="([^"]{1,200})"')


class SentryFailed(ServiceError):
    """The Sentry server did not answer as it should. ``code`` is the status of its answer, if there was one."""

    status = 502

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.code = code

    @property
    def advice(self) -> str:
        """The text for people: what happened, and what can be done about it."""
        sentence = f"{self.text.removesuffix('.')}."
        return f"{sentence} Sentry refuses the token." if self.code in REFUSED_TOKEN else sentence


@dataclass(frozen=True, slots=True)
class SentryResponse:
    """The JSON of an answer, the cursors of the neighbouring pages, and how many seconds ago it was given.

    ``failure`` is why there is no current one.
    """

    body: Any
    previous: str | None = None
    following: str | None = None
    age: float = 0
    failure: SentryFailed | None = None

    @property
    def notice(self) -> str | None:
        """What pages say about an answer that is not current."""
        if self.failure is None:
            return None
        minutes = max(1, round(self.age / 60))
        return f"{self.failure.advice} What is shown is from {minutes} minute{'' if minutes == 1 else 's'} ago."


class SentryClient:
    """Sends the requests for one page or request of the API, which take at most ``TOTAL_SECONDS`` together."""

    def __init__(self, api_url: str, token: str | None, cache: SentryResponseCache) -> None:
        self.api_url = api_url.rstrip("/")
        self.host = host_of(api_url)
        self._token = token
        self._deadline = time.monotonic() + TOTAL_SECONDS
        self._policy = instance_settings.outgoing_policy()
        self._cache = cache

    @classmethod
    def of(cls, setting: ErrorTrackingSetting) -> Self:
        """Return a client for the address and token of a project's settings."""
        api_url = setting.api_url or ""
        stamp = f"{api_url}:{setting.updated_at.timestamp()}"
        return cls(api_url, setting.token, SentryResponseCache(str(setting.id), stamp))

    def get(self, url: str, query: dict[str, str] | None = None, *, stale: bool = False) -> SentryResponse:
        """Read a URL; with ``stale`` an older answer takes the place of a failure. Raises ``SentryFailed``."""
        url = f"{url}?{urlencode(query)}" if query is not None else url
        cached = self._cache.read(url)
        if cached is not None and cached.age < FRESH_SECONDS:
            return cached
        try:
            answer = self.get_uncached(url)
        except SentryFailed as error:
            if cached is None or not stale or error.code in GONE:
                raise
            return SentryResponse(cached.body, cached.previous, cached.following, cached.age, error)
        self._cache.write(url, answer)
        return answer

    def get_uncached(self, url: str) -> SentryResponse:
        """Read a URL without the cache; raises ``SentryFailed``."""
        return self._request("GET", url, None)

    def put(self, url: str, value: dict[str, Any]) -> None:
        """Send a change; raises ``SentryFailed``."""
        try:
            self._request("PUT", url, orjson.dumps(value))
        finally:
            self._cache.clear()

    def _request(self, method: str, url: str, body: bytes | None) -> SentryResponse:
        if self._cache.is_paused():
            raise _status_failure(TOO_MANY)
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            raise SentryFailed("Connection to Sentry timed out")
        http = client.Client(
            self._policy,
            connect_timeout=min(CONNECT_SECONDS, seconds),
            read_timeout=seconds,
            total_timeout=seconds,
            max_redirects=0,
        )
        db.session.commit()  # no lock or connection is held while waiting for the server
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        try:
            with http.request(method, url, headers=headers, body=body) as response:
                if response.status not in SUCCESSES:
                    if response.status == TOO_MANY:
                        self._cache.pause(response.headers.get("X-Sentry-Rate-Limit-Reset", ""))
                    raise _status_failure(response.status)
                cursors = dict(LINK.findall(response.headers.get("Link", "")))
                content = _read(response)
        except rules.Blocked as error:
            raise SentryFailed(_blocked_text(error)) from error
        except client.RequestFailed as error:
            raise SentryFailed(_failure_text(error)) from error
        return SentryResponse(content, cursors.get("previous"), cursors.get("next"))


def host_of(api_url: str) -> str:
    """Return scheme, host and port of an address; empty if it cannot be read."""
    try:
        parts = urlsplit(api_url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc}"


class SentryResponseCache:
    """Cached answers, those of a setting or of a token: a hash in Redis; without Redis nothing is cached.

    Answers that were written with another ``stamp`` are not found.
    """

    def __init__(self, name: str, stamp: str = "") -> None:
        self._redis: redis.Redis = current_app.extensions["redis"]
        self._name = f"error_tracking:sentry:{name}"
        self._stamp = stamp

    def read(self, url: str) -> SentryResponse | None:
        try:
            stored: Any = self._redis.hget(self._name, self._field(url))
        except redis.RedisError:
            return None
        if stored is None:
            return None
        at, body, previous, following = orjson.loads(stored)
        age = time.time() - at
        return SentryResponse(body, previous, following, age) if age < STALE_SECONDS else None

    def write(self, url: str, answer: SentryResponse) -> None:
        value = orjson.dumps([time.time(), answer.body, answer.previous, answer.following])
        try:
            if self._redis.hlen(self._name) >= MAX_CACHED_RESPONSES:
                self.clear()
            with self._redis.pipeline(transaction=False) as pipeline:
                pipeline.hset(self._name, self._field(url), value)
                pipeline.expire(self._name, STALE_SECONDS)
                pipeline.execute()
        except redis.RedisError:
            return

    def clear(self) -> None:
        try:
            self._redis.delete(self._name)
        except redis.RedisError:
            return

    def pause(self, until: str) -> None:
        """Send nothing until a time (epoch) that the server named."""
        seconds = int(until) - int(time.time()) if until.isascii() and until.isdigit() and len(until) < 12 else 0
        if seconds > 0:
            try:
                self._redis.set(f"{self._name}:paused", 1, ex=min(seconds, MAX_PAUSE_SECONDS))
            except redis.RedisError:
                return

    def is_paused(self) -> bool:
        try:
            return bool(self._redis.exists(f"{self._name}:paused"))
        except redis.RedisError:
            return False

    def _field(self, url: str) -> str:
        return hashlib.sha256(f"{self._stamp}:{url}".encode()).hexdigest()


def _read(response: client.RemoteResponse) -> Any:
    body = bytearray()
    for chunk in response.iter_chunks():
        body += chunk
        if len(body) > MAX_BYTES:
            size = response.headers.get("Content-Length", "")
            size = size if size.isascii() and size.isdigit() else str(len(body))
            raise SentryFailed(f"Sentry API response is too big. Limit is 1 MB. Got {size} bytes.")
    if not body:
        return None
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise SentryFailed("Error when connecting to Sentry") from error


def _status_failure(status: int) -> SentryFailed:
    return SentryFailed(f"Sentry response status code: {status}", status)


def _blocked_text(error: rules.Blocked) -> str:
    if str(error) == rules.UNRESOLVED:
        return "Received SocketError when trying to connect to Sentry"
    return f"The address is blocked: {error}"


def _failure_text(error: client.RequestFailed) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return "Sentry returned invalid SSL data"
        if isinstance(cause, ConnectionRefusedError):
            return "Connection refused"
        if isinstance(cause, TimeoutError):
            return "Connection to Sentry timed out"
        cause = cause.__cause__ or cause.__context__
    is_late = client.TOO_LONG in str(error)
    return "Connection to Sentry timed out" if is_late else "Error when connecting to Sentry"
