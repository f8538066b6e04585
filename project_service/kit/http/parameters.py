"""Everything a request says, as one set of parameters.

Query, form, multipart and JSON are merged, a later place overriding an earlier one: query < body. Brackets make nested
data (``filter[environment_scope]=x``, ``scopes[]=api``); a plain name that is repeated is its last value, and for what
takes several it is all of them. This is the only reader of requests; rules and texts are those
of the reference for common behaviour, sections 2 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from flask import Request, g, request
from werkzeug.exceptions import RequestEntityTooLarge

from project_service.kit import bigint_json
from project_service.kit.http.errors import BadRequest, Malformed, TooLarge, UnsupportedContentType

DEEPEST = 32
# what happens to data recurses in Python; the reader of JSON would stop at 1024 levels only
DEEPEST_JSON = 128
MOST_KEYS = 2048
TOO_MANY = "400 Bad request - too many parameters"
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_BODIED = ("POST", "PUT", "PATCH", "DELETE")


class Repeated(str):
    """The last of the texts that were sent under one plain name (``a=1&a=2``); ``every`` has all of them."""

    __slots__ = ("every",)
    every: tuple[str, ...]

    @classmethod
    def of(cls, before: str, last: str) -> Repeated:
        """One more text of a name."""
        made = cls(last)
        made.every = (*(before.every if isinstance(before, Repeated) else (before,)), last)
        return made


def parameters() -> dict[str, Any]:
    """The parameters of the current request, read once."""
    found: dict[str, Any] | None = g.get("parameters")
    if found is None:
        found = g.parameters = read(request)
    return found


def read(asked: Request) -> dict[str, Any]:
    """Read query and body; raises ``Malformed``, ``UnsupportedContentType`` or ``TooLarge``."""
    merged = query(asked)
    if asked.method in _BODIED:
        try:
            merged |= _body(asked)
        except RequestEntityTooLarge as error:
            raise TooLarge from error
    refuse_broken(merged)
    return merged


def query(asked: Request) -> dict[str, Any]:
    """The parameters of the query alone."""
    return nest(_pairs(asked.query_string))


def header(asked: Request, name: str) -> str:
    """A header whose text is looked up somewhere, so that it has to be one; empty when there is none."""
    value = asked.headers.get(name, "")
    if value.isascii() and "\0" not in value:
        return value
    try:
        refuse_broken(value.encode("latin-1").decode())
    except UnicodeDecodeError as error:
        raise Malformed from error
    return value


def nest(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Turn ``a[b]=1``, ``c[]=2`` and ``d[][k]=3`` into nested data; texts of one plain name become ``Repeated``.

    Names whose parts contradict each other (``a=1&a[b]=2``) are a ``BadRequest``.
    """
    root: dict[str, Any] = {}
    for count, (name, value) in enumerate(pairs):
        if count >= MOST_KEYS:
            raise BadRequest(TOO_MANY)
        stem, path = _split(name)
        if path:
            _place(root, stem, path, value)
        elif isinstance(value, str) and isinstance(before := root.get(stem), str):
            root[stem] = Repeated.of(before, value)
        else:
            root[stem] = value
    return root


def refuse_broken(value: Any, depth: int = 0) -> None:
    """Raise ``Malformed`` for a NUL or half a surrogate pair anywhere in nested data, or for data nested too deeply."""
    if isinstance(value, Repeated):
        value = list(value.every)
    if isinstance(value, str):
        if "\0" in value or not _encodable(value):
            raise Malformed
    elif isinstance(value, dict | list):
        if depth == DEEPEST_JSON:
            raise Malformed
        if isinstance(value, dict):
            refuse_broken(list(value), depth)
            value = value.values()
        for inner in value:
            refuse_broken(inner, depth + 1)


def _encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _pairs(text: bytes) -> list[tuple[str, str]]:
    """The pairs of a query or of a form; percent signs that make no UTF-8 are ``Malformed``, like bytes that do not."""
    try:
        return parse_qsl(text.decode(), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError as error:
        raise Malformed from error


def _body(asked: Request) -> dict[str, Any]:
    kind = asked.mimetype
    if kind == "application/json":
        return _json(asked)
    if kind == "application/x-www-form-urlencoded":
        return nest(_pairs(asked.get_data(cache=True)))
    if kind == "multipart/form-data":
        # a part without a name is none of ours, whatever the reader's types say
        texts = [(name, value) for name, value in asked.form.items(multi=True) if isinstance(name, str)]
        files = [(name, file) for name, file in asked.files.items(multi=True) if isinstance(name, str)]
        # the multipart reader puts this character where bytes are no UTF-8; nobody sends it on purpose
        if any(REPLACEMENT in name or REPLACEMENT in value for name, value in texts):
            raise Malformed
        return nest([*texts, *files])
    if (asked.content_length or asked.headers.get("Transfer-Encoding")) and asked.get_data(cache=True):
        raise UnsupportedContentType(kind)
    return {}


def _json(asked: Request) -> dict[str, Any]:
    raw = asked.get_data(cache=True)
    if not raw.strip():
        return {}
    if bigint_json.has_too_many_values(raw):
        raise BadRequest(TOO_MANY)
    try:
        loaded = bigint_json.loads(raw)
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
    if len(path) > DEEPEST:
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
    # the next element begins where a key comes back: a[][k]=1&a[][v]=2&a[][k]=3
    if not items or not isinstance(items[-1], dict) or _has(items[-1], path):
        items.append({})
    _place(items[-1], path[0], path[1:], value)


def _has(here: Any, path: list[str]) -> bool:
    # an array inside the element goes on growing: a[][k][]=1&a[][k][]=2
    if not path:
        return True
    return bool(path[0]) and isinstance(here, dict) and path[0] in here and _has(here[path[0]], path[1:])


def _contradiction(name: str) -> BadRequest:
    return BadRequest(f"400 Bad request - parameter {name} is used in two ways")
