"""Parsing of payloads to reports, without the database (alert ingestion reference, sections 5 to 8 and 15)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from project_service.areas.alerts.models import Outcome, Severity
from project_service.areas.alerts.payloads.elements import PROMETHEUS_TOOL, is_batch, parse_element, tool_of
from project_service.areas.alerts.payloads.payload_values import is_blank, plain_text, value_at
from project_service.areas.alerts.payloads.words import PLAIN_SEVERITIES
from project_service.areas.alerts.receivers.grouping import Mapping, fingerprint_of
from project_service.areas.alerts.receivers.preset_messages import PresetMessage
from project_service.areas.alerts.receivers.presets import ALERTMANAGER, GRAFANA, PRESETS, RECOGNIZED, Preset
from project_service.areas.alerts.receivers.reports import (
    DEFAULT_TITLE,
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
from project_service.kit import clock

FIELDS = ("title", "description", "service", "monitoring_tool", "hosts", "severity")
LINKS = {"dashboardURL": "Dashboard", "panelURL": "Panel", "silenceURL": "Silence"}
RUNBOOKS = (["runbook"], ["annotations", "runbook"], ["annotations", "runbook_url"])


@dataclass(slots=True)
class ParsedRequest:
    """The alerts of a request; its outcome where it has none by intention, and what is worth saying about it."""

    reports: list[AlertReport]
    outcome: Outcome = Outcome.ACCEPTED
    notes: list[str] = field(default_factory=list)


def parse(payload: dict[str, Any], rules: ReadingRules = NO_RULES) -> ParsedRequest:
    """Parse a payload by the rules of an integration: one alert, or a batch of Alertmanager or Grafana."""
    if is_batch(payload):
        return _parse_batch(payload, rules)
    notes = []
    preset = rules.preset
    if (recognized := _recognized(payload, rules)) is not None:
        preset = recognized
        notes = [f"read as a message of {preset.name}, by its keys"]
    if preset is None or preset.reads_plain_keys:
        return ParsedRequest([parse_plain(payload, rules)])
    message = PresetMessage(payload, preset, rules)
    if (ignored := message.ignored()) is not None:
        return ParsedRequest([], ignored[0], [*notes, ignored[1]])
    variant = None if preset.is_batch else message.variant()
    if variant is None:
        note = f"read by its plain keys: it has no shape that the preset {preset.name} knows"
        return ParsedRequest([parse_plain(payload, rules)], notes=[note])
    return ParsedRequest([message.report(variant)], notes=notes)


def _recognized(payload: dict[str, Any], rules: ReadingRules) -> Preset | None:
    """Return the preset of another tool than that of the integration, if the message is known by its keys.

    That applies where the integration has no preset and does not say what recovery is. What asks to confirm a
    subscription is never an alert, however the integration reads others.
    """
    reads_plain_keys = rules.preset is None or rules.preset.reads_plain_keys
    is_open = reads_plain_keys and "end_time" not in rules.mapping
    for preset in RECOGNIZED:
        message = PresetMessage(payload, preset, rules)
        if preset is not rules.preset and message.is_recognized() and (is_open or message.asks_to_subscribe()):
            return preset
    return None


def _parse_batch(batch: dict[str, Any], rules: ReadingRules) -> ParsedRequest:
    preset = _preset_of_batch(batch, rules.preset)
    parsed = ParsedRequest([])
    left_out = 0
    for element in batch["alerts"]:
        report = None
        if not isinstance(element, dict):
            left_out += 1
        elif preset is None:
            report = parse_element(element, rules, tool_of(batch), batch)
            left_out += report is None
        else:
            message = PresetMessage(element, preset, rules)
            if (ignored := message.ignored()) is not None:
                parsed.outcome, note = ignored
                parsed.notes.append(note)
            elif is_blank(element.get("startsAt")) or not message.has("title"):
                left_out += 1
            else:
                report = message.report(preset.variants[0])
        if report is not None:
            parsed.reports.append(report)
    if parsed.reports:
        parsed.outcome = Outcome.ACCEPTED
    if left_out:
        parsed.notes.append(f"left out, without a title or a start: {left_out}")
    truncated = batch.get("truncatedAlerts")
    if isinstance(truncated, int) and truncated > 0:
        parsed.notes.append(f"{tool_of(batch)} itself left {truncated} alerts out (max_alerts)")
    return parsed


def _preset_of_batch(batch: dict[str, Any], preset: Preset | None) -> Preset | None:
    """Return the preset of the tool that sent a batch, if the integration has one for batches."""
    if preset is None or not preset.is_batch:
        return None
    return PRESETS[GRAFANA if "orgId" in batch else ALERTMANAGER]


def parse_plain(payload: dict[str, Any], rules: ReadingRules = NO_RULES) -> AlertReport:
    """Parse a payload by its plain keys; mapped fields are read from their paths unless blank there."""
    if payload.get("monitoring_tool") == PROMETHEUS_TOOL and (report := parse_element(payload, rules)) is not None:
        return report
    mapping = rules.mapping
    fingerprint = fingerprint_of(_value_of(payload, "fingerprint", mapping), payload, mapping)
    environment = plain_text(_value_of(payload, "gitlab_environment_name", mapping))
    unreadable: dict[str, dict[str, str]] = {}
    start_paths = [mapping["start_time"]["path"]] if "start_time" in mapping else []
    started_at = first_time(payload, "start_time", [*start_paths, ["start_time"]], unreadable, rules.time_zone)
    # with a mapping the chosen field alone marks resolution (specification, Alert integration)
    if "end_time" in mapping or rules.preset is not None:
        path = mapping["end_time"]["path"] if "end_time" in mapping else ["end_time"]
        ended_at = mapped_end(payload, path, rules, unreadable, clock.now())
    else:
        ended_at = first_time(payload, "end_time", [["end_time"]], unreadable, rules.time_zone)
    parse_rest = partial(_parse_plain, payload, rules, fingerprint, environment, started_at, ended_at)
    return AlertReport(fingerprint, ended_at is not None, environment, parse_rest, unreadable, started_at)


def _parse_plain(
    payload: dict[str, Any],
    rules: ReadingRules,
    fingerprint: str | None,
    environment: str | None,
    started_at: dt.datetime | None,
    ended_at: dt.datetime | None,
) -> ParsedAlert:
    values = {name: _value_of(payload, name, rules.mapping) for name in FIELDS}
    severity = severity_of(values["severity"], rules, PLAIN_SEVERITIES)
    return ParsedAlert(
        title=limited(values["title"], "title") or DEFAULT_TITLE,
        description=limited(values["description"], "description"),
        service=limited(values["service"], "service"),
        monitoring_tool=limited(values["monitoring_tool"], "monitoring_tool"),
        hosts=hosts_in(values["hosts"]),
        severity=Severity.CRITICAL if severity is None else severity,
        severity_word=plain_text(values["severity"]),
        unknown_severity=cut(plain_text(values["severity"]) or "", MAX_SHOWN_CHARACTERS) or None
        if severity is None
        else None,
        started_at=started_at or clock.now(),
        starts_at_receipt=started_at is None,
        ended_at=ended_at,
        fingerprint=fingerprint,
        environment=environment,
        payload=payload,
    )


def source_of(element: dict[str, Any]) -> str | None:
    """Return the page an alert of Prometheus or Grafana comes from, if it is an HTTP URL."""
    return _http_url(element.get("generatorURL"))


def links_of(payload: dict[str, Any]) -> dict[str, str]:
    """Return the pages of Grafana that an alert names, by their titles."""
    addresses = ((title, _http_url(payload.get(key))) for key, title in LINKS.items())
    return {title: address for title, address in addresses if address is not None}


def runbook_of(payload: dict[str, Any]) -> str | None:
    """Return the runbook: a top-level key of a plain payload, an annotation of an alert of Prometheus."""
    return next((text for path in RUNBOOKS if (text := plain_text(value_at(payload, path)))), None)


def _http_url(address: Any) -> str | None:
    return address if isinstance(address, str) and address.startswith(("http://", "https://")) else None


def _value_of(payload: dict[str, Any], name: str, mapping: Mapping) -> Any:
    if name in mapping:
        chosen = value_at(payload, mapping[name].get("path") or [])
        if chosen is False:  # a mapped value is text; in a plain key it counts as missing
            return "false"
        if not is_blank(chosen):
            return chosen
    value = payload.get(name)
    return None if is_blank(value) else value


def newest_of_each(reports: Iterable[AlertReport]) -> list[AlertReport]:
    """Leave of the reports with one identity those of its newest state.

    A firing report wins over a recovery that starts at the same time; among recoveries the last one counts.
    """
    newest: dict[str, tuple[dt.datetime, bool]] = {}
    reports = list(reports)
    for report in reports:
        if report.fingerprint is not None:
            state = (report.started_at or dt.datetime.max.replace(tzinfo=dt.UTC), not report.is_recovery)
            newest[report.fingerprint] = max(newest.get(report.fingerprint, state), state)
    return [
        report
        for report in reports
        if report.fingerprint is None or report.is_recovery is not newest[report.fingerprint][1]
    ]
