"""Presets: how the messages of known monitoring tools are read, each in a file of ``preset_files``.

A file is data: paths of the fields of alerts, the marker of a recovery, words and severities, messages that are no
alerts, what to enter in the tool, and samples. A wrong word in a file is a ``PresetError`` with the names of the file
and of the key when the program starts.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from project_service.areas.alerts.models import HTTP, PROMETHEUS, Outcome, Severity
from project_service.areas.alerts.payloads.words import (
    OTHER_WORDS,
    PLAIN_SEVERITIES,
    RESOLVED_WORDS,
    SeverityTable,
    word_of,
)
from project_service.kit.time_words import zone_named

FILES = Path(__file__).with_name("preset_files")
FIELDS = (
    "title",
    "description",
    "start_time",
    "hosts",
    "service",
    "monitoring_tool",
    "severity",
    "fingerprint",
    "gitlab_environment_name",
    "runbook",
)
ALERTMANAGER, GRAFANA = "alertmanager", "grafana"
OUTCOMES = {"test": Outcome.TEST, "no alert": Outcome.IGNORED, "subscription": Outcome.SUBSCRIPTION}
AUTHENTICATION = ("bearer", "basic", "url")
STRIPPED = ("", "brackets", "lines")
VARIANT_KEYS = {"when", "map", "marker", "at", "resolved", "severity"}
KEYS = (VARIANT_KEYS - {"when"}) | {
    *("id", "name", "doc", "since", "note", "address", "auth", "batch", "recognize", "ignore", "only", "variants"),
    *("raise_severity", "unmatched_recovery", "zone", "blank", "strip_title", "enter", "samples"),
}

ValuePath = tuple[str | int, ...]


class PresetError(Exception):
    """A file of a preset is wrong; the text names the file and the key."""


class ConstantValue(NamedTuple):
    """A text in place of a path."""

    text: str


class Join(NamedTuple):
    """An identity of several values."""

    parts: tuple[ValuePath | ConstantValue, ...]


Source = tuple[ValuePath, ...] | ConstantValue | Join  # of a field: the first path with a value, a text, or a join


@dataclass(frozen=True, slots=True)
class Condition:
    """A test of the value at a path; ``words`` are in lower case."""

    path: ValuePath
    words: frozenset[str] | None = None
    exists: bool | None = None
    starts: str = ""
    ends: str = ""

    def holds(self, value: Any) -> bool:
        """Whether the value at the path fulfils it."""
        if self.exists is not None:
            return (value is not None) is self.exists
        if self.words is not None:
            return value is not None and word_of(value) in self.words
        return isinstance(value, str) and value.startswith(self.starts) and value.endswith(self.ends)


class IgnoreRule(NamedTuple):
    """Messages that are no alerts: all conditions hold."""

    when: tuple[Condition, ...]
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Variant:
    """One shape of the messages of a tool: where the fields of an alert are, and how a recovery is told.

    ``marker`` has the paths of the value that tells a recovery, ``at`` those of its time. ``severities`` has the
    severity of ``OTHER_WORDS``, too.
    """

    when: tuple[Condition, ...]
    fields: dict[str, Source]
    marker: tuple[ValuePath, ...]
    at: tuple[ValuePath, ...]
    resolved: frozenset[str]
    severities: SeverityTable | None


@dataclass(frozen=True, slots=True)
class Instruction:
    """What to enter in a tool: the name of its field and the value, with ``{{URL}}`` and the like."""

    field: str
    value: str
    format: str


@dataclass(frozen=True, slots=True)
class Preset:
    """How the messages of a monitoring tool are read."""

    id: str
    name: str
    doc: str
    since: str
    note: str
    address: str
    auth: tuple[str, ...]
    is_batch: bool
    recognized: tuple[Condition, ...]  # of messages that are read by it where an integration has no preset; empty: none
    ignored: tuple[IgnoreRule, ...]
    only: tuple[Condition, ...]
    variants: tuple[Variant, ...]
    has_shapes: bool  # a message that fits no variant is read by the generic rule
    raises_severity: bool
    ignores_unmatched: bool
    zone: dt.tzinfo
    blank: frozenset[str]
    strip_title: str  # what is cut off: leading groups in "brackets", or "lines" after the first; empty: nothing
    instructions: tuple[Instruction, ...]
    samples: dict[str, Any]

    @property
    def reads_plain_keys(self) -> bool:
        """Whether it names no field, so that messages are read by the plain keys."""
        return not any(variant.fields for variant in self.variants)


def load_presets(folder: Path = FILES) -> dict[str, Preset]:
    """Read all files of presets; raises ``PresetError``."""
    files = {path.stem: _File(path) for path in sorted(folder.glob("*.json"))}
    tables = {name: file.data.get("severity") for name, file in files.items()}
    return {name: file.preset(tables) for name, file in files.items()}


class _File:
    """Parses one file."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        try:
            self.data: dict[str, Any] = json.loads(path.read_text())
        except ValueError as error:
            raise PresetError(f"{path.name}: {error}") from error

    def preset(self, tables: dict[str, Any]) -> Preset:
        data = self.data
        self._refuse_others(data, KEYS, "")
        self._require(data.get("id") == self.name.removesuffix(".json"), "id")
        for key in ("name", "doc", "since"):
            self._require(isinstance(data.get(key), str), key)
        shapes = data.get("variants") or [{"map": data.get("map", {})}]
        self._require(data.get("address", HTTP) in (HTTP, PROMETHEUS), "address")
        self._require(set(data.get("auth", ())) <= set(AUTHENTICATION), "auth")
        self._require(data.get("unmatched_recovery", "store") in ("store", "ignore"), "unmatched_recovery")
        self._require(data.get("strip_title", "") in STRIPPED, "strip_title")
        zone = zone_named(data.get("zone", "UTC"))
        self._require(zone is not None, "zone")
        return Preset(
            id=data["id"],
            name=data["name"],
            doc=data["doc"],
            since=data["since"],
            note=data.get("note", ""),
            address=data.get("address", HTTP),
            auth=tuple(data.get("auth", ("bearer",))),
            is_batch=bool(data.get("batch")),
            recognized=self._conditions(data.get("recognize", ()), "recognize"),
            ignored=tuple(self._ignored(rule) for rule in data.get("ignore", ())),
            only=self._conditions(data.get("only", ()), "only"),
            variants=tuple(self._variant(data | shape, shape, tables) for shape in shapes),
            has_shapes="variants" in data,
            raises_severity=bool(data.get("raise_severity")),
            ignores_unmatched=data.get("unmatched_recovery") == "ignore",
            zone=zone or dt.UTC,
            blank=frozenset(data.get("blank", ())),
            strip_title=data.get("strip_title", ""),
            instructions=tuple(self._instruction(instruction) for instruction in data.get("enter", ())),
            samples=data.get("samples", {}),
        )

    def _variant(self, data: dict[str, Any], shape: dict[str, Any], tables: dict[str, Any]) -> Variant:
        self._refuse_others(shape, VARIANT_KEYS, "variants")
        fields = data.get("map", {})
        self._require(isinstance(fields, dict), "map")
        self._refuse_others(fields, set(FIELDS), "map")
        return Variant(
            when=self._conditions(shape.get("when", ()), "when"),
            fields={name: self._source(value, f"map.{name}") for name, value in fields.items()},
            marker=self._paths(data.get("marker", ()), "marker"),
            at=self._paths(data.get("at", ()), "at"),
            resolved=frozenset(map(word_of, data["resolved"])) if "resolved" in data else RESOLVED_WORDS,
            severities=self._severities(data.get("severity"), tables),
        )

    def _severities(self, stored: Any, tables: dict[str, Any]) -> SeverityTable | None:
        if isinstance(stored, str):
            self._require(isinstance(tables.get(stored), dict), "severity")
            stored = tables[stored]
        if stored is None:
            return None
        for word, name in stored.items():
            self._require(name in PLAIN_SEVERITIES, f"severity.{word}")
        return {OTHER_WORDS: Severity.CRITICAL} | {word_of(word): PLAIN_SEVERITIES[stored[word]] for word in stored}

    def _source(self, value: Any, key: str) -> Source:
        if isinstance(value, dict):
            if value.keys() == {"const"}:
                return ConstantValue(value["const"])
            self._require(value.keys() == {"join"} and key == "map.fingerprint", key)
            return Join(
                tuple(
                    ConstantValue(part["const"]) if isinstance(part, dict) else self._path(part, key)
                    for part in value["join"]
                )
            )
        return self._paths(value, key)

    def _paths(self, value: Any, key: str) -> tuple[ValuePath, ...]:
        self._require(isinstance(value, list | tuple), key)
        return tuple(self._path(path, key) for path in value)

    def _path(self, value: Any, key: str) -> ValuePath:
        self._require(isinstance(value, list) and bool(value), key)
        self._require(all(isinstance(step, str | int) for step in value), key)
        return tuple(value)

    def _conditions(self, stored: Iterable[dict[str, Any]], key: str) -> tuple[Condition, ...]:
        return tuple(self._condition(condition, key) for condition in stored)

    def _condition(self, stored: dict[str, Any], key: str) -> Condition:
        self._refuse_others(stored, {"path", "is", "exists", "starts", "ends"}, key)
        self._require(len(stored) == 2, key)
        return Condition(
            self._path(stored.get("path"), key),
            frozenset(map(word_of, stored["is"])) if "is" in stored else None,
            stored.get("exists"),
            stored.get("starts", ""),
            stored.get("ends", ""),
        )

    def _ignored(self, rule: dict[str, Any]) -> IgnoreRule:
        self._refuse_others(rule, {"when", "as", "reason"}, "ignore")
        self._require(rule.get("as") in OUTCOMES, "ignore.as")
        return IgnoreRule(self._conditions(rule["when"], "ignore.when"), OUTCOMES[rule["as"]], rule.get("reason", ""))

    def _instruction(self, stored: dict[str, Any]) -> Instruction:
        self._refuse_others(stored, {"field", "value", "format"}, "enter")
        self._require(stored.get("format", "text") in FORMATS, "enter.format")
        return Instruction(stored["field"], stored["value"], stored.get("format", "text"))

    def _refuse_others(self, found: dict[str, Any], known: set[str], key: str) -> None:
        self._require(isinstance(found, dict), key)
        for name in found:
            self._require(name in known, f"{key}.{name}" if key else name)

    def _require(self, holds: bool, key: str) -> None:
        if not holds:
            raise PresetError(f"{self.name}: {key} is wrong")


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _in_shell(text: str) -> str:
    return text.replace("'", "'\\''")


# escapes of values in what is entered in a tool, by the language it is written in
FORMATS: dict[str, Callable[[str], str]] = {"text": str, "yaml": _in_json, "json": _in_json, "shell": _in_shell}

PRESETS = load_presets()
RECOGNIZED = tuple(preset for preset in PRESETS.values() if preset.recognized)
