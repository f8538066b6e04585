"""The URLs that programs call (heartbeats reference, section 2): without authentication, the key is the right."""

from __future__ import annotations

import re

from flask import Blueprint, Response, request

from project_service.areas.heartbeats import queries
from project_service.domain import rate_limits
from project_service.domain.heartbeats import pings
from project_service.domain.heartbeats.models import FAIL, PING_PATH, START, SUCCESS
from project_service.domain.heartbeats.pings import MAX_BODY_BYTES, Ping
from project_service.domain.rate_limits import LimitExceeded, RateLimit
from project_service.kit.db.session import db, reading, unit_of_work
from project_service.kit.http import responses

CALLS = RateLimit("heartbeat_call", 60)
KEY = re.compile(r"[0-9a-f]{32}")
EXIT_STATUS = re.compile(r"\d{1,10}")
MAX_EXIT_STATUS = 255
MAX_SHOWN_CHARACTERS = 200  # of the user agent
METHODS = ["GET", "HEAD", "POST"]

calls = Blueprint("heartbeat_calls", __name__)


@calls.errorhandler(Exception)
def _render(error: Exception) -> Response:
    """Answer with plain text: callers are scripts."""
    refusal = responses.as_service_error(error)
    text = {503: "unavailable, try again", 507: "no room left"}.get(refusal.status, "error")
    return _answer(text, refusal.status)


@calls.route(f"{PING_PATH}<key>", methods=METHODS)
@calls.route(f"{PING_PATH}<key>/<status>", methods=METHODS)
def receive_call(key: str, status: str = "0") -> Response:
    """Record a call; the second segment is an exit status, ``fail`` or ``start``."""
    with reading():
        heartbeat_id = db.session.scalar(queries.with_key(key)) if KEY.fullmatch(key) else None
    ping = _ping(status)
    if heartbeat_id is None or (ping is None and not EXIT_STATUS.fullmatch(status)):
        return _answer("not found", 404)
    if ping is None:
        return _answer("invalid exit status", 400)
    try:
        with unit_of_work():
            rate_limits.count_in_unit(CALLS.counter(heartbeat_id))
            heartbeat = db.session.scalar(pings.with_id(heartbeat_id))
            if heartbeat is None:  # deleted a moment ago
                return _answer("not found", 404)
            pings.record(heartbeat, ping)
    except LimitExceeded as error:
        response = _answer("too many requests", 429)
        response.headers["Retry-After"] = str(rate_limits.seconds_of(error.wait))
        return response
    return _answer("OK", 200)


def _ping(status: str) -> Ping | None:
    """Return what was called; ``None`` for a segment that is no exit status."""
    word, exit_status = status if status in (FAIL, START) else SUCCESS, None
    if status not in (FAIL, START):
        if not EXIT_STATUS.fullmatch(status) or int(status) > MAX_EXIT_STATUS:
            return None
        word, exit_status = (SUCCESS if int(status) == 0 else FAIL), int(status)
    return Ping(
        word,
        exit_status=exit_status,
        body=request.stream.read(MAX_BODY_BYTES),
        method=request.method,
        remote_address=request.remote_addr,
        user_agent=(request.user_agent.string or "")[:MAX_SHOWN_CHARACTERS] or None,
    )


def _answer(text: str, status: int) -> Response:
    return Response(text, status, {"Cache-Control": "no-store"}, mimetype="text/plain")
