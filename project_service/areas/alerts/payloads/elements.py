"""Alerts of Alertmanager and Grafana: elements of a batch (alert ingestion reference, section 8)."""

from __future__ import annotations

import datetime as dt
import re
from functools import partial
from typing import Any
from urllib.parse import unquote_to_bytes

from project_service.areas.alerts.models import Severity
from project_service.areas.alerts.payloads.payload_values import exact_text, is_blank, plain_text, value_at
from project_service.areas.alerts.payloads.words import LABEL_SEVERITIES
from project_service.areas.alerts.receivers.grouping import digest_of_object, given_fingerprint, sha1
from project_service.areas.alerts.receivers.reports import (
    MAX_CHARACTERS,
    MAX_SHOWN_CHARACTERS,
    NO_RULES,
    AlertReport,
    ParsedAlert,
    ReadingRules,
    cut,
    first_time,
    hosts_in,
    limited,
    mapped_end,
    severity_of,
)
from project_service.kit import clock, exact_json

PROMETHEUS_TOOL, GRAFANA_TOOL = "Prometheus", "Grafana"
BATCH_KEYS = frozenset(
    ("version", "groupKey", "status", "receiver", "groupLabels", "commonLabels", "commonAnnotations", "externalURL")
) | {"alerts"}
QUERY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[^?#\[\]]|\[[0-9A-Fa-f:.]+\])*\?(?:[^#]*?&)?g0\.expr=([^&#]*)")
PLAIN_FIELDS = ("description", "service", "monitoring_tool", "hosts", "severity")


def is_batch(payload: dict[str, Any]) -> bool:
    """Whether a body is a webhook of Alertmanager, or of Grafana, whose version differs."""
    if not payload.keys() >= BATCH_KEYS or not isinstance(payload["alerts"], list):
        return False
    return payload["version"] == "4" or "orgId" in payload


def tool_of(batch: dict[str, Any]) -> str:
    """Return the name of the tool that sent a batch."""
    return GRAFANA_TOOL if "orgId" in batch else PROMETHEUS_TOOL


def parse_element(
    element: dict[str, Any],
    rules: ReadingRules = NO_RULES,
    tool: str = PROMETHEUS_TOOL,
    batch: dict[str, Any] | None = None,
) -> AlertReport | None:
    """Parse one alert; ``None`` if it has no title or no start. Mapped fields are read from their paths first."""
    values = _Mapped(element, rules, batch or {})
    annotations, labels = object_in(element, "annotations"), object_in(element, "labels")
    candidates = (values.get("title"), annotations.get("title"), annotations.get("summary"), labels.get("alertname"))
    title = next((text for value in candidates if (text := plain_text(value))), None)
    unreadable: dict[str, dict[str, str]] = {}
    start_paths = [*values.paths("start_time"), ["startsAt"]]
    if title is None or all(is_blank(value_at(element, path)) for path in start_paths):
        return None
    now = clock.now()
    started_at = first_time(element, "start_time", start_paths, unreadable, rules.time_zone)
    if "end_time" in rules.mapping:
        ended_at = mapped_end(element, values.paths("end_time")[0], rules, unreadable, now)
    elif word_is(element.get("status"), "resolved"):
        ended_at = first_time(element, "end_time", [["endsAt"]], unreadable, rules.time_zone) or now
    else:
        ended_at = None
    environment = plain_text(values.get("gitlab_environment_name")) or plain_text(labels.get("gitlab_environment_name"))
    fingerprint = given_fingerprint(values.get("fingerprint")) or identity_of(element, title)
    parse = partial(_parse_rest, element, values, tool, title, fingerprint, environment, started_at, ended_at)
    return AlertReport(fingerprint, ended_at is not None, environment, parse, unreadable, started_at)


def identity_of(element: dict[str, Any], title: str) -> str:
    """Return the digest of an element's own fingerprint, else of its labels, else of its title and query."""
    if not is_blank(fingerprint := element.get("fingerprint")):
        return sha1(exact_text(fingerprint))
    labels = digest_of_object(object_in(element, "labels"))
    return labels or sha1(exact_json.dumps([title, query_of(element)]).decode())


class _Mapped:
    """The values of an element at the paths that are mapped; a path may begin at the batch, as in a sample of it."""

    def __init__(self, element: dict[str, Any], rules: ReadingRules, batch: dict[str, Any]) -> None:
        self.element, self.rules, self.batch = element, rules, batch

    def paths(self, name: str) -> list[list[Any]]:
        """The path of a field in the element, if it is mapped."""
        if name not in self.rules.mapping:
            return []
        path: list[Any] = self.rules.mapping[name].get("path") or []
        return [path[2:] if path[:1] == ["alerts"] and path[1:2] and isinstance(path[1], int) else path]

    def get(self, name: str) -> Any:
        """The value of a field; ``None`` if it is not mapped, or blank."""
        for path in self.paths(name):
            value = value_at(self.element, path)
            value = value_at(self.batch, path) if value is None else value
            return None if is_blank(value) else value
        return None


def _parse_rest(
    element: dict[str, Any],
    values: _Mapped,
    tool: str,
    title: str,
    fingerprint: str,
    environment: str | None,
    started_at: dt.datetime | None,
    ended_at: dt.datetime | None,
) -> ParsedAlert:
    plain_values = {name: values.get(name) for name in PLAIN_FIELDS}
    word = (
        object_in(element, "labels").get("severity") if plain_values["severity"] is None else plain_values["severity"]
    )
    severity = severity_of(word, values.rules, LABEL_SEVERITIES)
    description = plain_values["description"] or object_in(element, "annotations").get("description")
    return ParsedAlert(
        title=cut(title, MAX_CHARACTERS["title"]),
        description=limited(description, "description"),
        service=limited(plain_values["service"], "service"),
        monitoring_tool=limited(plain_values["monitoring_tool"], "monitoring_tool") or tool,
        hosts=hosts_in(plain_values["hosts"]),
        severity=Severity.CRITICAL if severity is None else severity,
        severity_word=plain_text(word),
        unknown_severity=cut(plain_text(word) or "", MAX_SHOWN_CHARACTERS) or None if severity is None else None,
        started_at=started_at or clock.now(),
        starts_at_receipt=started_at is None,
        ended_at=ended_at,
        fingerprint=fingerprint,
        environment=environment,
        payload=element,
    )


def word_is(value: Any, word: str) -> bool:
    """Whether a value is a word, in any case."""
    return isinstance(value, str) and value.strip().lower() == word


def query_of(element: dict[str, Any]) -> str | None:
    """Return the query of an alert of Prometheus, if it has one."""
    address = element.get("generatorURL")
    match = QUERY.match(address) if isinstance(address, str) else None
    # the same result as unquote_plus, in half the time for non-ASCII text
    return unquote_to_bytes(match[1].replace("+", " ")).decode(errors="replace") if match else None


def object_in(element: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the object under a key; an empty one if there is none."""
    value = element.get(name)
    return value if isinstance(value, dict) else {}
