"""Reading of messages by the preset of their tool (``presets``)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection
from functools import partial
from typing import Any

from project_service.areas.alerts.models import Outcome, Severity
from project_service.areas.alerts.payloads.payload_values import exact_text, is_blank, items, plain_text, value_at
from project_service.areas.alerts.payloads.words import (
    OTHER_WORDS,
    PLACEHOLDERS,
    PLAIN_SEVERITIES,
    RESOLVED_WORDS,
    word_of,
)
from project_service.areas.alerts.receivers.grouping import digest_of_object, fingerprint_of, joined, sha1
from project_service.areas.alerts.receivers.presets import (
    Condition,
    ConstantValue,
    Join,
    Preset,
    ValuePath,
    Variant,
)
from project_service.areas.alerts.receivers.reports import (
    DEFAULT_TITLE,
    MAX_CHARACTERS,
    MAX_SHOWN_CHARACTERS,
    AlertReport,
    ParsedAlert,
    ReadingRules,
    UnreadableTimes,
    cut,
    hosts_in,
    limited,
    severity_of,
    unreadable_time,
)
from project_service.kit import clock
from project_service.kit.times import is_unset, looks_like_time, read_time

REASONS = {
    Outcome.TEST: "test message of {}",
    Outcome.IGNORED: "a message with which {} reports no alert",
    Outcome.SUBSCRIPTION: "{} asks to confirm a subscription",
}
LEADING_BRACKETS = re.compile(r"\A(?:\s*\[[^\]]*\])+\s*")


class PresetMessage:
    """A message of a tool, or an element of its batch, and the preset that it is read by."""

    def __init__(self, payload: dict[str, Any], preset: Preset, rules: ReadingRules) -> None:
        self.payload, self.preset, self.rules = payload, preset, rules
        self._texts: dict[str, Any] = {}  # texts that are JSON objects, parsed once

    def is_recognized(self) -> bool:
        """Whether the message has the keys by which its tool is known."""
        return all(self._holds(condition) for condition in self.preset.recognized)

    def ignored(self) -> tuple[Outcome, str] | None:
        """Return the outcome and the reason if this is no alert."""
        for rule in self.preset.ignored:
            if all(self._holds(condition) for condition in rule.when):
                return rule.outcome, rule.reason or REASONS[rule.outcome].format(self.preset.name)
        if all(self._holds(condition) for condition in self.preset.only):
            return None
        return Outcome.IGNORED, REASONS[Outcome.IGNORED].format(self.preset.name)

    def asks_to_subscribe(self) -> bool:
        """Whether the message asks to confirm a subscription."""
        ignored = self.ignored()
        return ignored is not None and ignored[0] == Outcome.SUBSCRIPTION

    def variant(self) -> Variant | None:
        """Return the shape of the message; ``None`` if it is none that the preset knows."""
        for variant in self.preset.variants:
            if all(self._holds(condition) for condition in variant.when) and (
                self.preset.has_shapes or not variant.fields or self._has_any(variant)
            ):
                return variant
        return None

    def report(self, variant: Variant) -> AlertReport:
        """Parse the alert of a message of this shape."""
        reading = _Reading(self, variant)
        now = clock.now()
        unreadable: UnreadableTimes = {}
        started_at = reading.start(unreadable)
        ended_at = reading.end(unreadable, now)
        return AlertReport(
            fingerprint=reading.fingerprint(),
            is_recovery=ended_at is not None,
            environment=plain_text(reading.value("gitlab_environment_name")),
            parse=partial(reading.parse, started_at, ended_at),
            unreadable_times=unreadable,
            started_at=started_at,
            raises_severity=self.preset.raises_severity and ended_at is None,
            ignores_unmatched=self.preset.ignores_unmatched,
        )

    def has(self, name: str) -> bool:
        """Whether a field has a value in the first shape of the preset."""
        return _Reading(self, self.preset.variants[0]).value(name) is not None

    def at(self, path: ValuePath | list[Any]) -> Any:
        """Return the value at a path."""
        return value_at(self.payload, path, self._texts)

    def present(self, path: ValuePath | list[Any]) -> Any:
        """Return the value at a path; ``None`` if it is blank or a placeholder that was not filled in."""
        value = self.at(path)
        if isinstance(value, list):
            return value if any(not self._is_blank(item) for item in items(value)) else None
        return None if self._is_blank(value) else value

    def _is_blank(self, value: Any) -> bool:
        if not isinstance(value, str):
            return is_blank(value)
        text = value.strip()
        return not text or text in self.preset.blank or PLACEHOLDERS.fullmatch(text) is not None

    def _holds(self, condition: Condition) -> bool:
        return condition.holds(self.at(condition.path))

    def _has_any(self, variant: Variant) -> bool:
        sources = (source for source in variant.fields.values() if isinstance(source, tuple))
        paths = (path for source in sources if not isinstance(source, ConstantValue | Join) for path in source)
        return any(self.present(path) is not None for path in paths)


class _Reading:
    """The fields of an alert in a message of one shape; what is mapped replaces the paths of the preset."""

    def __init__(self, message: PresetMessage, variant: Variant) -> None:
        self.message, self.variant, self.rules = message, variant, message.rules
        self.fields = dict(variant.fields)
        for name, entry in self.rules.mapping.items():
            others = variant.fields.get(name, ((name,),)) if name != "end_time" else ()
            rest = () if isinstance(others, ConstantValue | Join) else others
            self.fields[name] = (tuple(entry.get("path") or ()), *rest)

    def value(self, name: str) -> Any:
        """Return the value of a field, by its plain key if the preset does not name it."""
        source = self.fields.get(name, ((name,),))
        if isinstance(source, ConstantValue):
            return source.text
        if isinstance(source, Join):
            return None
        for path in source:
            value = self.message.present(path)
            if value is None:
                continue
            if isinstance(value, list) and "*" in path and name != "hosts":
                return next(item for item in items(value) if not is_blank(item))
            return value
        return None

    def start(self, unreadable: UnreadableTimes) -> dt.datetime | None:
        """Return the first start that is a time."""
        source = self.fields.get("start_time", (("start_time",),))
        for path in source if not isinstance(source, ConstantValue | Join) else ():
            value = self.message.present(path)
            if (moment := read_time(value, self.rules.time_zone)) is not None:
                return moment
            if not is_unset(value):
                unreadable.setdefault("start_time", unreadable_time(path, value))
        return None

    def end(self, unreadable: UnreadableTimes, now: dt.datetime) -> dt.datetime | None:
        """Return the end that the marker tells: its own time, or the time beside it for a word."""
        words = self.variant.resolved if self.rules.resolved is None else self.rules.resolved
        paths = self.variant.marker
        mapped = self.fields.get("end_time")
        if mapped is not None and not isinstance(mapped, ConstantValue | Join):
            paths = mapped
            words = words | RESOLVED_WORDS if self.rules.resolved is None else words
        for path in paths:
            value = self.message.present(path)
            if value is None:
                continue
            if word_of(value) in words:
                return self._end_beside(now)
            moment = read_time(value, self.rules.time_zone)
            if moment is None and not is_unset(value) and looks_like_time(value) and path in self.variant.at:
                unreadable.setdefault("end_time", unreadable_time(path, value))
            return moment
        return None

    def _end_beside(self, now: dt.datetime) -> dt.datetime:
        times = (read_time(self.message.present(path), self.rules.time_zone) for path in self.variant.at)
        return next((moment for moment in times if moment is not None), now)

    def fingerprint(self) -> str | None:
        """Return the identity: a digest of one value, or of several joined."""
        source = self.fields.get("fingerprint")
        if source is None:
            return fingerprint_of(self.message.payload.get("fingerprint"), self.message.payload, self.rules.mapping)
        if isinstance(source, Join):
            texts = [
                part.text if isinstance(part, ConstantValue) else self.message.present(part) for part in source.parts
            ]
            paths = [
                text for text, part in zip(texts, source.parts, strict=True) if not isinstance(part, ConstantValue)
            ]
            return None if all(is_blank(text) for text in paths) else joined(texts)
        value = self.value("fingerprint")
        if value is None:
            labels = self.message.payload.get("labels") if self.message.preset.is_batch else None
            return digest_of_object(labels) if isinstance(labels, dict) else None
        if isinstance(value, list):
            return joined(value)
        return digest_of_object(value) if isinstance(value, dict) else sha1(exact_text(value))

    def parse(self, started_at: dt.datetime | None, ended_at: dt.datetime | None) -> ParsedAlert:
        """Return all attributes."""
        word, severity = self._severity()
        title = plain_text(self.value("title")) or DEFAULT_TITLE
        if self.message.preset.strip_title == "brackets":
            title = LEADING_BRACKETS.sub("", title) or title
        elif self.message.preset.strip_title == "lines":
            title = title.strip().splitlines()[0]
        return ParsedAlert(
            title=cut(title, MAX_CHARACTERS["title"]),
            description=limited(self.value("description"), "description"),
            service=limited(self.value("service"), "service"),
            monitoring_tool=limited(self.value("monitoring_tool"), "monitoring_tool"),
            hosts=hosts_in(self._hosts()),
            severity=Severity.CRITICAL if severity is None else severity,
            severity_word=word,
            unknown_severity=cut(word or "", MAX_SHOWN_CHARACTERS) or None if severity is None else None,
            started_at=started_at or clock.now(),
            starts_at_receipt=started_at is None,
            ended_at=ended_at,
            fingerprint=self.fingerprint(),
            environment=plain_text(self.value("gitlab_environment_name")),
            payload=self.message.payload,
        )

    def _hosts(self) -> list[Any]:
        hosts = items(self.value("hosts"))
        return [host for host in hosts if not (isinstance(host, str) and PLACEHOLDERS.fullmatch(host.strip()))]

    def _severity_word(self, table: Collection[str]) -> Any:
        """Return the severity; "None" is no placeholder that was not filled in where it is a word of the table."""
        source = self.fields.get("severity", (("severity",),))
        if isinstance(source, ConstantValue | Join):
            return self.value("severity")
        values = (self.message.at(path) for path in source)
        word = next((value for value in values if not is_blank(value)), None)
        return word if word_of(word) in table else self.value("severity")

    def _severity(self) -> tuple[str | None, Severity | None]:
        table = PLAIN_SEVERITIES if self.variant.severities is None else self.variant.severities
        value = self._severity_word({*table, *(self.rules.severities or ())})
        severity = severity_of(value, self.rules, table)
        if severity is None and self.rules.severities is None:
            severity = table.get(word_of(value)) if not is_blank(value) else None
            severity = table.get(OTHER_WORDS) if severity is None else severity
        return plain_text(value), severity
