"""Parsing of payloads to attributes of alerts, without the database (alert ingestion reference, sections 4 to 8)."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from project_service.areas.alerts.models import Severity
from project_service.kit import bigint_json, clock
from project_service.kit.times import read_time

DEFAULT_TITLE = "New: Alert"
DEFAULT_SOURCE = "Generic Alert Endpoint"
MAX_CHARACTERS = {"title": 200, "description": 1000, "service": 100, "monitoring_tool": 100}
MAX_HOSTS_CHARACTERS = 255
MAX_PAYLOAD_BYTES = 1 << 20
MAX_NESTING_LEVELS = 100
NESTED = (dict, list)  # faster for isinstance() than dict | list
PROMETHEUS_TOOL = "Prometheus"
BATCH_KEYS = frozenset(
    ("version", "groupKey", "status", "receiver", "groupLabels", "commonLabels", "commonAnnotations", "externalURL")
) | {"alerts"}
MAX_ALERTS_IN_BATCH = 100
# repetitions of an alert differ in these keys, so a generated fingerprint excludes them (section 6)
VOLATILE = ("start_time", "end_time", "hosts")
PLAIN_SEVERITIES = {severity.name.lower(): severity for severity in Severity}
PROMETHEUS_SEVERITIES = {
    word: severity
    for severity, words in {
        Severity.CRITICAL: "critical s1 p1 emergency fatal",
        Severity.HIGH: "high s2 p2 major page",
        Severity.MEDIUM: "medium s3 p3 error alert",
        Severity.LOW: "low s4 p4 warn warning minor",
        Severity.INFO: "info s5 p5 debug information notice",
    }.items()
    for word in words.split()
}
QUERY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[^?#\[\]]|\[[0-9A-Fa-f:.]+\])*\?(?:[^#]*?&)?g0\.expr=([^&#]*)")
Mapping = dict[str, dict[str, Any]]


class Unreadable(Exception):
    """The body is not a JSON object, or too large or too deeply nested."""


class MalformedPayload(Unreadable):
    """The body is not JSON."""


class AlertReport(NamedTuple):
    """An alert in a payload: what identifies it, and a function that parses the rest, which only new alerts need.

    ``is_recovery``: the alert has ended.
    """

    fingerprint: str | None
    is_recovery: bool
    environment: str | None
    parse: Callable[[], ParsedAlert]


@dataclass(slots=True)
class ParsedAlert:
    """All attributes of an alert in a payload; one with ``ended_at`` is a recovery."""

    title: str
    payload: dict[str, Any]
    started_at: dt.datetime
    severity: Severity = Severity.CRITICAL
    description: str | None = None
    service: str | None = None
    monitoring_tool: str | None = None
    hosts: list[str] = field(default_factory=list)
    fingerprint: str | None = None
    environment: str | None = None
    ended_at: dt.datetime | None = None


def read(body: bytes) -> dict[str, Any]:
    """Parse a body; an empty one is an empty object.

    An integer with more digits than Python parses is kept as text, so that the alert is not lost.
    """
    if not body.strip():
        return {}
    if bigint_json.has_too_many_values(body):
        raise Unreadable
    try:
        payload = bigint_json.loads(body, too_long=str)
    except ValueError as error:
        raise MalformedPayload from error
    if not isinstance(payload, dict) or depth_exceeds(payload, MAX_NESTING_LEVELS):
        raise Unreadable
    if len(body) > MAX_PAYLOAD_BYTES and len(bigint_json.dumps(payload)) > MAX_PAYLOAD_BYTES:
        raise Unreadable
    return payload


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


def is_batch(payload: dict[str, Any]) -> bool:
    """Whether a body is a webhook of Alertmanager (section 8.1)."""
    return payload.get("version") == "4" and payload.keys() >= BATCH_KEYS and isinstance(payload["alerts"], list)


def parse_plain(payload: dict[str, Any], mapping: Mapping | None = None) -> AlertReport:
    """Parse a payload of an HTTP endpoint; mapped fields are read from their paths unless blank there."""
    if payload.get("monitoring_tool") == PROMETHEUS_TOOL and (report := parse_prometheus(payload)) is not None:
        return report
    mapping = mapping or {}
    fingerprint = _fingerprint(_value_of(payload, "fingerprint", mapping), payload)
    environment = _plain_text(_value_of(payload, "gitlab_environment_name", mapping))
    ended_at = _end(payload, mapping)
    parse = partial(_parse_plain, payload, mapping, fingerprint, environment, ended_at)
    return AlertReport(fingerprint, ended_at is not None, environment, parse)


def _parse_plain(
    payload: dict[str, Any],
    mapping: Mapping,
    fingerprint: str | None,
    environment: str | None,
    ended_at: dt.datetime | None,
) -> ParsedAlert:
    values = {name: _value_of(payload, name, mapping) for name in FIELDS}
    return ParsedAlert(
        title=_text(values["title"], MAX_CHARACTERS["title"]) or DEFAULT_TITLE,
        description=_text(values["description"], MAX_CHARACTERS["description"]),
        service=_text(values["service"], MAX_CHARACTERS["service"]),
        monitoring_tool=_text(values["monitoring_tool"], MAX_CHARACTERS["monitoring_tool"]),
        hosts=_hosts(values["hosts"]),
        severity=_severity(values["severity"]),
        started_at=_start(payload, mapping) or clock.now(),
        ended_at=ended_at,
        fingerprint=fingerprint,
        environment=environment,
        payload=payload,
    )


def parse_batch(payload: dict[str, Any]) -> list[AlertReport]:
    """Parse the alerts of a webhook of Alertmanager; elements without a title or a start are skipped."""
    elements = payload["alerts"][:MAX_ALERTS_IN_BATCH]
    reports = (parse_prometheus(element) for element in elements if isinstance(element, dict))
    return [one for one in reports if one is not None]


def parse_prometheus(element: dict[str, Any]) -> AlertReport | None:
    """Parse one alert of Prometheus (section 8.2)."""
    annotations, labels = _object(element, "annotations"), _object(element, "labels")
    candidates = (annotations.get("title"), annotations.get("summary"), labels.get("alertname"))
    title = next((text for value in candidates if (text := _plain_text(value))), None)
    if title is None or _blank(element.get("startsAt")):
        return None
    fingerprint = sha1(f"{element['startsAt']}/{title}/{query_of(element) or ''}")
    is_recovery = str(element.get("status", "")).lower() == "resolved"
    environment = _plain_text(labels.get("gitlab_environment_name"))
    return AlertReport(
        fingerprint,
        is_recovery,
        environment,
        partial(_parse_prometheus, element, title, fingerprint, environment, is_recovery),
    )


def _parse_prometheus(
    element: dict[str, Any], title: str, fingerprint: str, environment: str | None, is_recovery: bool
) -> ParsedAlert:
    word = _object(element, "labels").get("severity")
    return ParsedAlert(
        title=_cut(title, MAX_CHARACTERS["title"]),
        description=_text(_object(element, "annotations").get("description"), MAX_CHARACTERS["description"]),
        monitoring_tool=PROMETHEUS_TOOL,
        severity=PROMETHEUS_SEVERITIES.get(str(word).lower(), Severity.CRITICAL),
        started_at=read_time(element["startsAt"]) or clock.now(),
        ended_at=(read_time(element.get("endsAt")) or clock.now()) if is_recovery else None,
        fingerprint=fingerprint,
        environment=environment,
        payload=element,
    )


def query_of(element: dict[str, Any]) -> str | None:
    """Return the query of an alert of Prometheus, if it has one."""
    return _query_in(element.get("generatorURL"))


def source_of(element: dict[str, Any]) -> str | None:
    """Return the page an alert of Prometheus comes from, if it is an HTTP URL."""
    address = element.get("generatorURL")
    return address if isinstance(address, str) and address.startswith(("http://", "https://")) else None


def runbook_of(payload: dict[str, Any]) -> str | None:
    """Return the runbook: a top-level key of a plain payload, an annotation of an alert of Prometheus."""
    return _plain_text(payload.get("runbook")) or _plain_text(_object(payload, "annotations").get("runbook"))


def storable(text: str) -> str:
    """Replace NUL, which PostgreSQL does not store in text."""
    return text.replace("\0", "\ufffd")


def sha1(text: str) -> str:
    """Return the digest stored as a fingerprint; it identifies, it does not protect."""
    return hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


FIELDS = (
    "title",
    "description",
    "service",
    "monitoring_tool",
    "hosts",
    "severity",
)


def _value_of(payload: dict[str, Any], name: str, mapping: Mapping) -> Any:
    if name in mapping and not _blank(chosen := _chosen(payload, name, mapping)):
        return chosen
    value = payload.get(name)
    return None if _blank(value) else value


def _chosen(payload: dict[str, Any], name: str, mapping: Mapping) -> Any:
    return value_at(payload, mapping[name].get("path") or [])


def value_at(payload: Any, path: list[Any]) -> Any:
    """Return the value at a path of keys and indexes, ``None`` if the path does not exist."""
    here = payload
    for step in path:
        if isinstance(here, dict) and isinstance(step, str):
            here = here.get(step)
        elif isinstance(here, list) and isinstance(step, int) and not isinstance(step, bool) and 0 <= step < len(here):
            here = here[step]
        else:
            return None
    return here if path else None


def _start(payload: dict[str, Any], mapping: Mapping) -> dt.datetime | None:
    chosen = _chosen(payload, "start_time", mapping) if "start_time" in mapping else None
    return read_time(chosen) or read_time(payload.get("start_time"))


def _end(payload: dict[str, Any], mapping: Mapping) -> dt.datetime | None:
    # with a mapping the chosen field alone marks resolution (specification, Alert integration)
    chosen = _chosen(payload, "end_time", mapping) if "end_time" in mapping else payload.get("end_time")
    return read_time(chosen, epoch=True)


def _blank(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or value is False or value == [] or value == {}


def _plain_text(value: Any) -> str | None:
    return None if _blank(value) else storable(_exact_text(value))


def _exact_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else bigint_json.dumps(value, sort_keys=True).decode()


def _text(value: Any, limit: int) -> str | None:
    text = _plain_text(value)
    return None if text is None else _cut(text, limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def _hosts(value: Any) -> list[str]:
    hosts: list[str] = []
    left = MAX_HOSTS_CHARACTERS
    for item in _items(value):
        text = _plain_text(item)
        if text is None:
            continue
        if left <= 0:
            break
        hosts.append(text[:left])
        left -= len(text)
    return hosts


def _items(value: Any) -> Iterator[Any]:
    """Yield the items of nested lists; any other value is an item itself."""
    if isinstance(value, list):
        for item in value:
            yield from _items(item)
    else:
        yield value


def _severity(value: Any) -> Severity:
    word = value.strip().lower() if isinstance(value, str) else ""
    return PLAIN_SEVERITIES.get(word, Severity.CRITICAL)


def _fingerprint(value: Any, payload: dict[str, Any]) -> str | None:
    if isinstance(value, dict):
        return _digest_of_object(value)
    text = "".join(_exact_text(item) for item in _items(value))
    if not _blank(text):
        return sha1(text)
    return _digest_of_object({key: inner for key, inner in payload.items() if key not in VOLATILE})


def _digest_of_object(value: dict[str, Any]) -> str | None:
    pairs = sorted(flatten(value), key=lambda pair: pair[0])
    if all(_blank(inner) for _, inner in pairs):
        return None
    return hashlib.sha1(bigint_json.dumps(pairs, sort_keys=True), usedforsecurity=False).hexdigest()


def flatten(value: Any, prefix: str = "") -> list[tuple[str, Any]]:
    """Return dotted keys and their values; arrays are one value."""
    if not isinstance(value, dict):
        return [(prefix, value)]
    return [
        pair for key, inner in value.items() for pair in flatten(inner, f"{prefix}.{key}" if prefix else str(key))
    ] or [(prefix, {})]


def _object(element: dict[str, Any], name: str) -> dict[str, Any]:
    found = element.get(name)
    return found if isinstance(found, dict) else {}


def _query_in(address: Any) -> str | None:
    found = QUERY.match(address) if isinstance(address, str) else None
    # the same result as unquote_plus, in half the time for non-ASCII text
    return unquote_to_bytes(found[1].replace("+", " ")).decode(errors="replace") if found else None
