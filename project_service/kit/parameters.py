"""Everything a request says, as one set of parameters.

Query, form, multipart and JSON are merged, a later place overriding an earlier one: query < body. Brackets make nested
data (``filter[environment_scope]=x``, ``scopes[]=api``). This is the only reader of requests; rules and texts are those
of the reference for common behaviour, sections 2 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import orjson
from flask import Request, g, request
from werkzeug.exceptions import RequestEntityTooLarge

from project_service.kit.errors import BadRequest, Malformed, TooLarge, UnsupportedContentType

DEEPEST = 32
MOST_KEYS = 2048
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_BODIED = ("POST", "PUT", "PATCH", "DELETE")


def parameters() -> dict[str, Any]:
    """The parameters of the current request, read once."""
    if "parameters" not in g:
        g.parameters = read(request)
    found: dict[str, Any] = g.parameters
    return found


def read(asked: Request) -> dict[str, Any]:
    """Read query and body; raises ``Malformed``, ``UnsupportedContentType`` or ``TooLarge``."""
    _refuse_broken_text(asked.query_string.decode("latin-1"))
    merged = nest(asked.args.items(multi=True))
    if asked.method in _BODIED:
        try:
            merged |= _body(asked)
        except RequestEntityTooLarge as error:
            raise TooLarge from error
    refuse_nul(merged)
    return merged


def nest(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Turn ``a[b]=1``, ``c[]=2`` and ``d[][k]=3`` into nested data; a later value of one name wins.

    Names whose parts contradict each other (``a=1&a[b]=2``) are a ``BadRequest``.
    """
    root: dict[str, Any] = {}
    for count, (name, value) in enumerate(pairs):
        if count >= MOST_KEYS:
            raise BadRequest("400 Bad request - too many parameters")
        stem, path = _split(name)
        if not path:
            root[stem] = value
        else:
            _place(root, stem, path, value)
    return root


def refuse_nul(value: Any) -> None:
    """Raise ``Malformed`` for a NUL character or half a surrogate pair anywhere in nested data."""
    if isinstance(value, str):
        if "\0" in value or not _encodable(value):
            raise Malformed
    elif isinstance(value, dict):
        for key, inner in value.items():
            refuse_nul(key)
            refuse_nul(inner)
    elif isinstance(value, list):
        for inner in value:
            refuse_nul(inner)


def _encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_broken_text(query: str) -> None:
    if "%" not in query:
        return
    from_percent = re.sub(r"%([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), query)
    try:
        from_percent.encode("latin-1").decode()
    except UnicodeDecodeError as error:
        raise Malformed from error


def _body(asked: Request) -> dict[str, Any]:
    kind = asked.mimetype
    if kind == "application/json":
        return _json(asked)
    if kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        return nest([*asked.form.items(multi=True), *asked.files.items(multi=True)])
    if asked.content_length or asked.headers.get("Transfer-Encoding"):
        if asked.get_data(cache=True):
            raise UnsupportedContentType(kind)
    return {}


def _json(asked: Request) -> dict[str, Any]:
    raw = asked.get_data(cache=True)
    if not raw.strip():
        return {}
    if _too_deep(raw):
        raise Malformed
    try:
        loaded = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Malformed from error
    return loaded if isinstance(loaded, dict) else {}


def _too_deep(raw: bytes) -> bool:
    # orjson stops by itself at 1024 levels; what follows here recurses in Python and must stop earlier
    return raw.count(b"[") + raw.count(b"{") > DEEPEST and _depth(raw) > 4 * DEEPEST


def _depth(raw: bytes) -> int:
    depth = deepest = 0
    inside = escaped = False
    for byte in raw:
        if inside:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                inside = False
        elif byte == 0x22:
            inside = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


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
    if not items or not isinstance(items[-1], dict) or (len(path) == 1 and path[0] in items[-1]):
        items.append({})
    _place(items[-1], path[0], path[1:], value)


def _contradiction(name: str) -> BadRequest:
    return BadRequest(f"400 Bad request - parameter {name} is used in two ways")
