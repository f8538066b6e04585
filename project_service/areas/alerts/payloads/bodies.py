"""Bodies of requests to receivers: JSON objects within limits (alert ingestion reference, section 4)."""

from __future__ import annotations

import codecs
import json
import re
from typing import Any

from project_service.kit import exact_json

MAX_PAYLOAD_BYTES = 1 << 20
MAX_NESTING_LEVELS = 100
FORM_START = re.compile(rb"[\w.%+-]{1,64}=")
NESTED = (dict, list)  # faster for isinstance() than dict | list
NOT_AN_OBJECT = "not a JSON object"
TOO_DEEP = f"more than {MAX_NESTING_LEVELS} levels of objects and lists"
TOO_LARGE = "more than 1 MiB"
MULTIPART = "a form with parts: choose application/json in the tool"
FORM = "a form: choose JSON as the format in the tool"


class Unreadable(Exception):
    """The body is not a JSON object, or too large or too deeply nested; the text says so in plain words."""


class MalformedPayload(Unreadable):
    """The body is not JSON."""


def read(body: bytes) -> dict[str, Any]:
    """Parse a body; an empty one is an empty object, a text that holds an object is that object.

    A byte order mark says how the text is encoded. Control characters in strings are accepted, half a surrogate pair is
    replaced, and an integer with more digits than Python parses is kept as text, so that the alert is not lost.
    """
    body = _without_byte_order_mark(body)
    if not body.strip():
        return {}
    if exact_json.has_too_many_values(body):
        raise Unreadable(TOO_LARGE)
    payload = _parse(body)
    if isinstance(payload, str):
        payload = _parse(payload.encode("utf-8", "replace"), payload)
    if not isinstance(payload, dict):
        raise Unreadable(NOT_AN_OBJECT)
    if depth_exceeds(payload, MAX_NESTING_LEVELS):
        raise Unreadable(TOO_DEEP)
    if len(body) > MAX_PAYLOAD_BYTES and len(exact_json.dumps(payload)) > MAX_PAYLOAD_BYTES:
        raise Unreadable(TOO_LARGE)
    return payload


def _parse(body: bytes, otherwise: str | None = None) -> Any:
    """Parse JSON; with ``otherwise``, return that for what is no JSON."""
    try:
        return exact_json.loads(body, too_long=str, lenient=True)
    except ValueError as error:
        if otherwise is not None:
            return otherwise
        raise MalformedPayload(_reason(body, error)) from error


def _reason(body: bytes, error: ValueError) -> str:
    """Say in plain words why a body is no JSON, with the line."""
    if body.lstrip().startswith(b"--"):
        return f"not JSON: {MULTIPART}"
    if FORM_START.match(body):
        return f"not JSON: {FORM}"
    if isinstance(error, UnicodeDecodeError):
        line = body.count(b"\n", 0, error.start) + 1
        return f"not JSON: a byte that is not UTF-8 in line {line}"
    if isinstance(error, json.JSONDecodeError):
        text = error.msg[:1].lower() + error.msg[1:]
        return f"not JSON: {text} in line {error.lineno}, column {error.colno}"
    return "not JSON: a number that is none, or nested too deeply"


def _without_byte_order_mark(body: bytes) -> bytes:
    """Return a body as UTF-8 without a byte order mark; programs on Windows send UTF-8 or UTF-16 with one."""
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return body.decode("utf-16").encode()
        except UnicodeError as error:
            raise MalformedPayload("not JSON: UTF-16 that is damaged") from error
    return body.removeprefix(codecs.BOM_UTF8)


def depth_exceeds(value: Any, limit: int) -> bool:
    """Whether objects and arrays are nested more deeply than ``limit``; the value itself is level 1."""
    level = [value]
    for _ in range(limit):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, NESTED)
        ]
        if not level:
            return False
    return True
