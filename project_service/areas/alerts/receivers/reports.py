"""What the parsers of payloads return, and the rules of an integration that they follow."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from project_service.areas.alerts.models import Severity
from project_service.areas.alerts.payloads.payload_values import is_blank, items, label_of, plain_text, value_at
from project_service.areas.alerts.payloads.words import (
    OTHER_WORDS,
    RESOLVED_WORDS,
    SeverityTable,
    severity_table,
    word_of,
)
from project_service.areas.alerts.receivers.grouping import Mapping
from project_service.areas.alerts.receivers.presets import PRESETS, Preset
from project_service.kit.time_words import zone_named
from project_service.kit.times import is_unset, looks_like_time, read_time

DEFAULT_TITLE = "New: Alert"
MAX_CHARACTERS = {"title": 200, "description": 1000, "service": 100, "monitoring_tool": 100}
MAX_HOSTS_CHARACTERS = 255
MAX_SHOWN_CHARACTERS = 100  # of a value that could not be read

UnreadableTimes = dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """How an integration reads payloads: its mapping, its preset, its words and its zone.

    ``severities`` and ``resolved`` are ``None`` where those of the preset, or the default ones, apply.
    """

    mapping: Mapping = field(default_factory=dict)
    preset: Preset | None = None
    severities: SeverityTable | None = None
    resolved: frozenset[str] | None = None
    zone: dt.tzinfo | None = None

    @property
    def time_zone(self) -> dt.tzinfo:
        """The zone of times without one."""
        return self.zone or (self.preset.zone if self.preset else dt.UTC)

    def is_resolved_word(self, value: Any) -> bool:
        """Whether a value of a mapped end means "resolved"; numbers do only if they were entered."""
        return not is_blank(value) and word_of(value) in (RESOLVED_WORDS if self.resolved is None else self.resolved)


def rules_of(
    mapping: Mapping,
    preset: str | None,
    severities: dict[str, Any] | None,
    resolved: list[str] | None,
    time_zone: str | None,
) -> ReadingRules:
    """Return the rules of stored columns."""
    return ReadingRules(
        mapping,
        PRESETS.get(preset) if preset else None,
        severity_table(severities),
        None if resolved is None else frozenset(map(word_of, resolved)),
        zone_named(time_zone) if time_zone else None,
    )


NO_RULES = ReadingRules()


class AlertReport(NamedTuple):
    """An alert in a payload: what identifies it, and a function that parses the rest, which only new alerts need.

    ``is_recovery``: the alert has ended. ``unreadable_times``: values that were ignored because they are no times, with
    their paths, by field. ``started_at`` orders elements of a batch with one identity. ``raises_severity``: a
    repetition raises the severity of the open alert. ``ignores_unmatched``: a recovery without an alert is not stored.
    """

    fingerprint: str | None
    is_recovery: bool
    environment: str | None
    parse: Callable[[], ParsedAlert]
    unreadable_times: UnreadableTimes
    started_at: dt.datetime | None = None
    raises_severity: bool = False
    ignores_unmatched: bool = False


@dataclass(slots=True)
class ParsedAlert:
    """All attributes of an alert in a payload; one with ``ended_at`` is a recovery.

    ``starts_at_receipt``: the payload gives no start. ``severity_word``: the text that the severity was read from.
    ``unknown_severity``: that text, where it means none.
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
    severity_word: str | None = field(default=None, compare=False)
    unknown_severity: str | None = None


def first_time(
    payload: Any, name: str, paths: Iterable[Any], unreadable: UnreadableTimes, zone: dt.tzinfo
) -> dt.datetime | None:
    """Return the first of the values at paths that is a time; one that is not is added to ``unreadable``."""
    for path in paths:
        value = value_at(payload, path)
        moment = read_time(value, zone)
        if moment is not None:
            return moment
        if not is_unset(value):
            unreadable.setdefault(name, unreadable_time(path, value))
    return None


def mapped_end(
    payload: Any, path: list[Any], rules: ReadingRules, unreadable: UnreadableTimes, now: dt.datetime
) -> dt.datetime | None:
    """Return the end that the field mapped to it gives: a time, or the time of receipt for a word."""
    value = value_at(payload, path)
    if rules.is_resolved_word(value):
        return now
    moment = read_time(value, rules.time_zone)
    if moment is None and not is_unset(value) and looks_like_time(value):
        unreadable.setdefault("end_time", unreadable_time(path, value))
    return moment


def unreadable_time(path: Iterable[str | int], value: Any) -> dict[str, str]:
    """Return path and text of a value that was ignored because it is no time."""
    return {"path": label_of(path), "value": cut(plain_text(value) or "", MAX_SHOWN_CHARACTERS)}


def severity_of(word: Any, rules: ReadingRules, known: SeverityTable) -> Severity | None:
    """Return the severity of a word by the table of an integration, else by ``known``; ``None`` for other words."""
    text = word_of(word) if isinstance(word, str | int | float) and not isinstance(word, bool) else ""
    if rules.severities is None:
        return known.get(text) if isinstance(word, str) else None
    severity = rules.severities.get(text)
    if severity is None and isinstance(word, str):
        severity = known.get(text)
    return rules.severities.get(OTHER_WORDS) if severity is None else severity


def limited(value: Any, name: str) -> str | None:
    """Return a value as the text of an attribute, cut to its limit; ``None`` if it is blank."""
    text = plain_text(value)
    return None if text is None else cut(text, MAX_CHARACTERS[name])


def cut(text: str, limit: int) -> str:
    """Cut a text to a number of characters, dots included."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def hosts_in(value: Any) -> list[str]:
    """Return the hosts in a value, a text or nested lists, as far as the limit allows."""
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
