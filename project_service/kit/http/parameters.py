"""The parameters of a request, merged from query and body.

Form, multipart and JSON bodies override the query. Brackets make nested data (``filter[environment_scope]=x``,
``scopes[]=api``); a repeated plain name has its last value, and all of them for arrays. This is the only module that
parses requests; rules and texts are those of the common reference, sections 2 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from flask import Request, g, request
from werkzeug.exceptions import RequestEntityTooLarge

from project_service.kit import exact_json
from project_service.kit.http.errors import BadRequest, BodyTooLarge, Malformed, UnsupportedContentType

MAX_BRACKET_DEPTH = 32
# data is processed by recursive functions; the JSON parser itself allows 1024 levels
MAX_JSON_DEPTH = 128
MAX_KEYS = 2048
TOO_MANY_PARAMETERS = "400 Bad request - too many parameters"
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_BODIED = ("POST", "PUT", "PATCH", "DELETE")


class Repeated(str):
    """The last value of a repeated plain name (``a=1&a=2``); ``every`` has all of them."""

    __slots__ = ("every",)
    every: tuple[str, ...]

    @classmethod
    def of(cls, before: str, last: str) -> Repeated:
        """Add a value of the same name."""
        repeated = cls(last)
        repeated.every = (*(before.every if isinstance(before, Repeated) else (before,)), last)
        return repeated


def parameters() -> dict[str, Any]:
    """Return the parameters of the current request, parsed once."""
    parsed: dict[str, Any] | None = g.get("parameters")
    if parsed is None:
        parsed = g.parameters = read(request)
    return parsed


def read(request: Request) -> dict[str, Any]:
    """Parse query and body; raises ``Malformed``, ``UnsupportedContentType`` or ``BodyTooLarge``."""
    merged = query(request)
    if request.method in _BODIED:
        try:
            merged |= _body(request)
        except RequestEntityTooLarge as error:
            raise BodyTooLarge from error
    refuse_malformed(merged)
    return merged


def query(request: Request) -> dict[str, Any]:
    """Parse the query alone."""
    return nest(_pairs(request.query_string))


def header(request: Request, name: str) -> str:
    """Return a header, empty if absent; raise ``Malformed`` if it is not valid text."""
    value = request.headers.get(name, "")
    if value.isascii() and "\0" not in value:
        return value
    try:
        refuse_malformed(value.encode("latin-1").decode())
    except UnicodeDecodeError as error:
        raise Malformed from error
    return value


def nest(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Turn ``a[b]=1``, ``c[]=2`` and ``d[][k]=3`` into nested data; texts of one plain name become ``Repeated``.

    Names whose parts contradict each other (``a=1&a[b]=2``) are a ``BadRequest``.
    """
    root: dict[str, Any] = {}
    for count, (name, value) in enumerate(pairs):
        if count >= MAX_KEYS:
            raise BadRequest(TOO_MANY_PARAMETERS)
        stem, path = _split(name)
        if path:
            _place(root, stem, path, value)
        elif isinstance(value, str) and isinstance(before := root.get(stem), str):
            root[stem] = Repeated.of(before, value)
        else:
            root[stem] = value
    return root


def refuse_malformed(value: Any, depth: int = 0) -> None:
    """Raise ``Malformed`` for a NUL or half a surrogate pair anywhere in nested data, or for data nested too deeply."""
    if isinstance(value, Repeated):
        value = list(value.every)
    if isinstance(value, str):
        if "\0" in value or not _encodable(value):
            raise Malformed
    elif isinstance(value, dict | list):
        if depth == MAX_JSON_DEPTH:
            raise Malformed
        if isinstance(value, dict):
            refuse_malformed(list(value), depth)
            value = value.values()
        for inner in value:
            refuse_malformed(inner, depth + 1)


def _encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _pairs(text: bytes) -> list[tuple[str, str]]:
    """Parse a query or form; raise ``Malformed`` unless it is UTF-8 when percent-decoded."""
    if text.count(b"&") >= MAX_KEYS:
        raise BadRequest(TOO_MANY_PARAMETERS)
    try:
        return parse_qsl(text.decode(), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError as error:
        raise Malformed from error


def _body(request: Request) -> dict[str, Any]:
    kind = request.mimetype
    if kind == "application/json":
        return _json(request)
    if kind == "application/x-www-form-urlencoded":
        return nest(_pairs(request.get_data(cache=True)))
    if kind == "multipart/form-data":
        # parts without a name are ignored; Werkzeug's types do not mention them
        texts = [(name, value) for name, value in request.form.items(multi=True) if isinstance(name, str)]
        files = [(name, file) for name, file in request.files.items(multi=True) if isinstance(name, str)]
        # Werkzeug puts this character in place of bytes that are not UTF-8
        if any(REPLACEMENT in name or REPLACEMENT in value for name, value in texts):
            raise Malformed
        return nest([*texts, *files])
    if (request.content_length or request.headers.get("Transfer-Encoding")) and request.get_data(cache=True):
        raise UnsupportedContentType(kind)
    return {}


def _json(request: Request) -> dict[str, Any]:
    raw = request.get_data(cache=True)
    if not raw.strip():
        return {}
    if exact_json.has_too_many_values(raw):
        raise BadRequest(TOO_MANY_PARAMETERS)
    try:
        loaded = exact_json.loads(raw)
    except ValueError as error:
        raise Malformed from error
    return loaded if isinstance(loaded, dict) else {}


def _split(name: str) -> tuple[str, list[str]]:
    stem, bracket, rest = name.partition("[")
    if not bracket or not stem:
        return name, []
    path = _BRACKETS.findall(bracket + rest)
    if "".join(f"[{part}]" for part in path) != bracket + rest:
        return name, []
    if len(path) > MAX_BRACKET_DEPTH:
        raise BadRequest("400 Bad request - parameters are nested too deeply")
    return stem, path


def _place(here: dict[str, Any], name: str, path: list[str], value: Any) -> None:
    if not path:
        here[name] = value
    elif path[0]:
        inner = here.setdefault(name, {})
        if not isinstance(inner, dict):
            raise _contradiction(name)
        _place(inner, path[0], path[1:], value)
    else:
        items = here.setdefault(name, [])
        if not isinstance(items, list):
            raise _contradiction(name)
        _append(items, name, path[1:], value)


def _append(items: list[Any], name: str, path: list[str], value: Any) -> None:
    if not path:
        items.append(value)
        return
    if not path[0]:
        raise BadRequest(f"400 Bad request - parameter {name} is an array of arrays")
    # a repeated key begins the next element: a[][k]=1&a[][v]=2&a[][k]=3
    if not items or not isinstance(items[-1], dict) or _has(items[-1], path):
        items.append({})
    _place(items[-1], path[0], path[1:], value)


def _has(here: Any, path: list[str]) -> bool:
    # an array inside the element is extended: a[][k][]=1&a[][k][]=2
    if not path:
        return True
    return bool(path[0]) and isinstance(here, dict) and path[0] in here and _has(here[path[0]], path[1:])


def _contradiction(name: str) -> BadRequest:
    return BadRequest(f"400 Bad request - parameter {name} is used in two ways")
