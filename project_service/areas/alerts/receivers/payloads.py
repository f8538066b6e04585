"""Parsing of payloads to attributes of alerts, without the database (alert ingestion reference, sections 4 to 8)."""

from __future__ import annotations

import codecs
import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from project_service.areas.alerts.models import Severity
from project_service.areas.alerts.receivers.grouping import Mapping, fingerprint_of, sha1
from project_service.areas.alerts.receivers.payload_values import is_blank, items, label_of, plain_text, value_at
from project_service.kit import clock, exact_json
from project_service.kit.times import is_unset, read_time

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
MAX_SHOWN_CHARACTERS = 100  # of a value that could not be read
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


class Unreadable(Exception):
    """The body is not a JSON object, or too large or too deeply nested."""


class MalformedPayload(Unreadable):
    """The body is not JSON."""


class AlertReport(NamedTuple):
    """An alert in a payload: what identifies it, and a function that parses the rest, which only new alerts need.

    ``is_recovery``: the alert has ended. ``unreadable_times``: values that were ignored because they are no times, with
    their paths, by field.
    """

    fingerprint: str | None
    is_recovery: bool
    environment: str | None
    parse: Callable[[], ParsedAlert]
    unreadable_times: dict[str, dict[str, str]]


@dataclass(slots=True)
class ParsedAlert:
    """All attributes of an alert in a payload; one with ``ended_at`` is a recovery.

    ``starts_at_receipt``: the payload gives no start. ``unknown_severity``: the text in place of a severity.
    """

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
    starts_at_receipt: bool = False
    unknown_severity: str | None = None


def read(body: bytes) -> dict[str, Any]:
    """Parse a body; an empty one is an empty object. A byte order mark before it says how its text is encoded.

    An integer with more digits than Python parses is kept as text, so that the alert is not lost.
    """
    body = _without_byte_order_mark(body)
    if not body.strip():
        return {}
    if exact_json.has_too_many_values(body):
        raise Unreadable
    try:
        payload = exact_json.loads(body, too_long=str)
    except ValueError as error:
        raise MalformedPayload from error
    if not isinstance(payload, dict) or depth_exceeds(payload, MAX_NESTING_LEVELS):
        raise Unreadable
    if len(body) > MAX_PAYLOAD_BYTES and len(exact_json.dumps(payload)) > MAX_PAYLOAD_BYTES:
        raise Unreadable
    return payload


def _without_byte_order_mark(body: bytes) -> bytes:
    """Return a body as UTF-8 without a byte order mark; programs on Windows send UTF-8 or UTF-16 with one."""
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return body.decode("utf-16").encode()
        except UnicodeError as error:
            raise MalformedPayload from error
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


def is_batch(payload: dict[str, Any]) -> bool:
    """Whether a body is a webhook of Alertmanager (alert ingestion reference, section 8.1)."""
    return payload.get("version") == "4" and payload.keys() >= BATCH_KEYS and isinstance(payload["alerts"], list)


def parse_plain(payload: dict[str, Any], mapping: Mapping | None = None) -> AlertReport:
    """Parse a payload of an HTTP endpoint; mapped fields are read from their paths unless blank there."""
    if payload.get("monitoring_tool") == PROMETHEUS_TOOL and (report := parse_prometheus(payload)) is not None:
        return report
    mapping = mapping or {}
    fingerprint = fingerprint_of(_value_of(payload, "fingerprint", mapping), payload, mapping)
    environment = plain_text(_value_of(payload, "gitlab_environment_name", mapping))
    unreadable: dict[str, dict[str, str]] = {}
    start_paths = [mapping["start_time"]["path"]] if "start_time" in mapping else []
    started_at = _first_time(payload, "start_time", [*start_paths, ["start_time"]], unreadable)
    # with a mapping the chosen field alone marks resolution (alert ingestion reference, section 7)
    end_path = mapping["end_time"]["path"] if "end_time" in mapping else ["end_time"]
    ended_at = _first_time(payload, "end_time", [end_path], unreadable)
    parse = partial(_parse_plain, payload, mapping, fingerprint, environment, started_at, ended_at)
    return AlertReport(fingerprint, ended_at is not None, environment, parse, unreadable)


def _first_time(
    payload: dict[str, Any], field: str, paths: list[list[Any]], unreadable: dict[str, dict[str, str]]
) -> dt.datetime | None:
    """Return the first of the values at paths that is a time; one that is not is added to ``unreadable``."""
    for path in paths:
        value = value_at(payload, path)
        moment = read_time(value)
        if moment is not None:
            return moment
        if not is_unset(value):
            unreadable.setdefault(field, _unreadable(path, value))
    return None


def _unreadable(path: list[Any], value: Any) -> dict[str, str]:
    text = plain_text(value) or ""
    return {"path": label_of(path), "value": _cut(text, MAX_SHOWN_CHARACTERS)}


def _parse_plain(
    payload: dict[str, Any],
    mapping: Mapping,
    fingerprint: str | None,
    environment: str | None,
    started_at: dt.datetime | None,
    ended_at: dt.datetime | None,
) -> ParsedAlert:
    values = {name: _value_of(payload, name, mapping) for name in FIELDS}
    severity = _severity(values["severity"])
    return ParsedAlert(
        title=_text(values["title"], MAX_CHARACTERS["title"]) or DEFAULT_TITLE,
        description=_text(values["description"], MAX_CHARACTERS["description"]),
        service=_text(values["service"], MAX_CHARACTERS["service"]),
        monitoring_tool=_text(values["monitoring_tool"], MAX_CHARACTERS["monitoring_tool"]),
        hosts=_hosts(values["hosts"]),
        severity=Severity.CRITICAL if severity is None else severity,
        unknown_severity=_text(values["severity"], MAX_SHOWN_CHARACTERS) if severity is None else None,
        started_at=started_at or clock.now(),
        starts_at_receipt=started_at is None,
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
    """Parse one alert of Prometheus (alert ingestion reference, section 8.2)."""
    annotations, labels = _object(element, "annotations"), _object(element, "labels")
    candidates = (annotations.get("title"), annotations.get("summary"), labels.get("alertname"))
    title = next((text for value in candidates if (text := plain_text(value))), None)
    if title is None or is_blank(element.get("startsAt")):
        return None
    fingerprint = sha1(f"{element['startsAt']}/{title}/{query_of(element) or ''}")
    is_recovery = str(element.get("status", "")).lower() == "resolved"
    environment = plain_text(labels.get("gitlab_environment_name"))
    unreadable: dict[str, dict[str, str]] = {}
    started_at = _first_time(element, "start_time", [["startsAt"]], unreadable)
    ended_at = _first_time(element, "end_time", [["endsAt"]], unreadable) if is_recovery else None
    parse = partial(_parse_prometheus, element, title, fingerprint, environment, started_at)
    return AlertReport(
        fingerprint,
        is_recovery,
        environment,
        partial(parse, (ended_at or clock.now()) if is_recovery else None),
        unreadable,
    )


def _parse_prometheus(
    element: dict[str, Any],
    title: str,
    fingerprint: str,
    environment: str | None,
    started_at: dt.datetime | None,
    ended_at: dt.datetime | None,
) -> ParsedAlert:
    word = _object(element, "labels").get("severity")
    return ParsedAlert(
        title=_cut(title, MAX_CHARACTERS["title"]),
        description=_text(_object(element, "annotations").get("description"), MAX_CHARACTERS["description"]),
        monitoring_tool=PROMETHEUS_TOOL,
        severity=PROMETHEUS_SEVERITIES.get(str(word).lower(), Severity.CRITICAL),
        started_at=started_at or clock.now(),
        starts_at_receipt=started_at is None,
        ended_at=ended_at,
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
    return plain_text(payload.get("runbook")) or plain_text(_object(payload, "annotations").get("runbook"))


FIELDS = (
    "title",
    "description",
    "service",
    "monitoring_tool",
    "hosts",
    "severity",
)


def _value_of(payload: dict[str, Any], name: str, mapping: Mapping) -> Any:
    if name in mapping:
        chosen = _chosen(payload, name, mapping)
        if chosen is False:  # a mapped value is text; in a plain key it counts as missing
            return "false"
        if not is_blank(chosen):
            return chosen
    value = payload.get(name)
    return None if is_blank(value) else value


def _chosen(payload: dict[str, Any], name: str, mapping: Mapping) -> Any:
    return value_at(payload, mapping[name].get("path") or [])


def _text(value: Any, limit: int) -> str | None:
    text = plain_text(value)
    return None if text is None else _cut(text, limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def _hosts(value: Any) -> list[str]:
    hosts: list[str] = []
    left = MAX_HOSTS_CHARACTERS
    for item in items(value):
        text = plain_text(item)
        if text is None:
            continue
        if left <= 0:
            break
        hosts.append(text[:left])
        left -= len(text)
    return hosts


def _severity(value: Any) -> Severity | None:
    """Return the severity that a value names; ``None`` if it names none."""
    return PLAIN_SEVERITIES.get(value.strip().lower()) if isinstance(value, str) else None


def _object(element: dict[str, Any], name: str) -> dict[str, Any]:
    found = element.get(name)
    return found if isinstance(found, dict) else {}


def _query_in(address: Any) -> str | None:
    found = QUERY.match(address) if isinstance(address, str) else None
    # the same result as unquote_plus, in half the time for non-ASCII text
    return unquote_to_bytes(found[1].replace("+", " ")).decode(errors="replace") if found else None
