"""Paths of existing rows for every rule of the live route table.

A placeholder is filled from the list before it: for ``/projects/<project>/issues/<iid>`` the lists
``/projects`` and ``/projects/1/issues`` are read. New routes are included without registration.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from flask import Flask
from werkzeug.routing import Rule

from project_service.kit.http.urls import API_PREFIX

PART = re.compile(r"<(?:\w+:)?(\w+)>")
# what a row may be called by in the paths below its list, the name of the part itself first
NAMES = ("id", "iid", "key", "tag_name", "name", "path", "full_path", "slug", "uuid")
# answered by hand or by a library, beside the views of areas
BESIDE = {"document", "api-docs", "static", "error_collector"}
FIRST_AND_LAST = 2
# parts of paths whose list has another address, and the name of a row in it
LISTED_ELSEWHERE = {"/files": ("/tree", "path"), "/blobs": ("/tree", "id")}
# parts that are in no list, as ``sample_data`` stores them
FIXED = {"secret": "f" * 32, "filename": "till.txt"}
# parameters without which a route answers 400, by the end of its path
NEEDED_QUERIES = {
    "/avatar": "?email=ada@example.org",
    "/search": "?scope=issues&search=till",
    "/compare": "?from=main&to=main",
    "/merge_base": "?refs[]=main&refs[]=main",
    "/files/<file_path>": "?ref=main",
    "/blame": "?ref=main",
    "/variables/effective": "?environment=production&protected=false",
    "/tracked_findings/export": "?format=csv",
}

Read = Callable[[str], Any]


def api_rules(app: Flask, *methods: str) -> list[tuple[str, str, Rule]]:
    """Method, path below ``/api/v4`` and rule of every operation of the API, of these methods or of all."""
    found = []
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith(API_PREFIX) and rule.endpoint.partition(".")[0] not in BESIDE:
            known = sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
            path = rule.rule.removeprefix(API_PREFIX)
            found += [(method, path, rule) for method in known if not methods or method in methods]
    return found


def addresses(path: str, read: Read) -> list[str]:
    """Paths of things that are there for the path of a rule; none where a list has no rows, or there is no list.

    ``read`` answers the JSON of an address, ``None`` when there is none.
    """
    found = [""]
    for segment in path.strip("/").split("/"):
        part = PART.fullmatch(segment)
        if part is None:
            found = [f"{address}/{segment}" for address in found]
        else:
            named = [(address, value) for address in found for value in _values(address, part[1], read)]
            found = [f"{address}/{quote(str(value), safe='')}" for address, value in named]
    needed = next((query for end, query in NEEDED_QUERIES.items() if path.endswith(end)), "")
    return [f"{address}{needed}" for address in found]


def _values(address: str, part: str, read: Read) -> Iterator[Any]:
    if part in FIXED:
        yield FIXED[part]
        return
    below, _, last = address.rpartition("/")
    other, part = LISTED_ELSEWHERE.get(f"/{last}", (f"/{last}", part))
    rows = read(f"{below}{other}")
    rows = rows if isinstance(rows, list) else []
    for row in rows[:FIRST_AND_LAST] + rows[FIRST_AND_LAST:][-FIRST_AND_LAST:]:
        name = next((name for name in (part, *NAMES) if isinstance(row.get(name), str | int)), None)
        if name is not None:
            yield row[name]


def survey(app: Flask, client: Any) -> dict[str, tuple[int, Any]]:
    """Status and JSON of every address that can be read, as this client reads it."""
    responses: dict[str, tuple[int, Any]] = {}

    def read(address: str) -> Any:
        if address not in responses:
            response = client.get(address)
            responses[address] = response.status_code, response.json if response.is_json else response.data
        status, found = responses[address]
        return found if status == 200 else None

    for _method, path, _rule in api_rules(app, "GET"):
        for address in addresses(path, read):
            read(address)
    return responses


# what a filter is asked for where its kind does not tell
SAMPLES = {"weight": "1", "requested_hosted_plan": "gold", "milestone": "Opening", "scope": "all"}


def variations(document: dict[str, Any], path: str, known: dict[str, Any]) -> list[str]:
    """The queries that a list is asked with: none, each filter with its first and last value, and each order both ways.

    ``known`` has ids by the names of parameters.
    """
    operation = document["paths"][API_PREFIX + PART.sub(r"{\1}", path)]["get"]
    asked = {part["name"]: part["schema"] for part in operation.get("parameters", []) if part["in"] == "query"}
    orders = {name: asked.pop(name)["enum"] for name in ("order_by", "sort") if name in asked}
    pairs = [()] + [
        ((name, value),)
        for name, schema in asked.items()
        if name not in ("page", "per_page")
        for name, value in _values_of(document, name, schema, known)
    ]
    pairs += [tuple(zip(orders, values, strict=True)) for values in itertools.product(*orders.values()) if orders]
    return [urlencode(pair) for pair in pairs]


def _values_of(document: dict[str, Any], name: str, schema: dict[str, Any], known: dict[str, Any]) -> Iterator[Any]:
    schema = _resolved(document, schema)
    kinds = {"boolean": ["true"], "integer": [1], "number": [1], "string": ["till"]}
    dates = {"date": ["2020-01-01"], "date-time": ["2020-01-01T00:00:00Z"]}
    if schema.get("type") == "object":
        for inner, kind in schema["properties"].items():
            for below, value in _values_of(document, inner, kind, known):
                first, bracket, rest = below.partition("[")
                yield f"{name}[{first}]{bracket}{rest}", value
    elif schema.get("type") == "array":
        for _, value in _values_of(document, name, schema["items"], known):
            yield f"{name}[]", value
    else:
        given = known.get(name, SAMPLES.get(name))
        values = [given] if given is not None else schema.get("enum") or dates.get(schema.get("format", ""))
        values = values or kinds[schema.get("type", "string")]
        yield from ((name, value) for value in dict.fromkeys((values[0], values[-1])))


class _Offers(HTMLParser):
    """What the links and forms of a page say that it can be asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fields: list[tuple[str, str]] = []
        self._reads, self._select = False, ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._reads = has.get("method", "get").lower() == "get"
        elif tag == "a" and "?" in has.get("href", ""):
            self.links.append(has["href"])
        elif self._reads and tag == "select":
            self._select = has["name"]
        elif self._reads and tag == "option":
            self.fields.append((self._select, has.get("value", "")))
        elif self._reads and tag == "input" and has.get("name"):
            self.fields.append((has["name"], has.get("value") or "till"))


def offered(address: str, page: str) -> list[str]:
    """The queries that a page offers for itself in its links and forms, and none."""
    offers = _Offers()
    offers.feed(page)
    links = [urlsplit(link) for link in offers.links]
    own = [link.query for link in links if link.path in ("", address)]
    return list(dict.fromkeys(["", *own, *(urlencode([field]) for field in offers.fields)]))


def body_of(document: dict[str, Any], method: str, path: str) -> dict[str, Any]:
    """The least that an operation takes, by the API's own document: what is required, and of alternatives one."""
    operation = document["paths"][API_PREFIX + PART.sub(r"{\1}", path)][method.lower()]
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = _resolved(document, content["schema"])
        names = [*schema.get("required", [])]
        for rule in schema.get("allOf", []):
            one_of = rule.get("anyOf") or rule.get("oneOf")
            names += one_of[0]["required"] if one_of else []
        return {name: _sample(_resolved(document, schema["properties"][name])) for name in names}
    return {}


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        found: Any = document
        for name in schema["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        schema = found
    return schema


def _sample(schema: dict[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("format") == "binary":
        return b"{}"
    kinds = {"integer": 1, "boolean": True, "array": [], "object": {}, "number": 1}
    return kinds.get(schema.get("type", "string"), "sample")


def sent(body: dict[str, Any]) -> dict[str, Any]:
    """How a body travels: as a form where it carries a file, else in JSON."""
    if not any(isinstance(value, bytes) for value in body.values()):
        return {"json": body}
    return {
        "data": {name: (io.BytesIO(value), name) if isinstance(value, bytes) else value for name, value in body.items()}
    }
