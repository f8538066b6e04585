"""The words of the form of an integration: its severity table, and the values that mean resolved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flask import request

from project_service.areas.alerts.models import AlertIntegration, Severity
from project_service.areas.alerts.payloads.words import (
    OTHER_WORDS,
    PLAIN_SEVERITIES,
    RESOLVED_WORDS,
    suggested_severity,
    word_of,
)
from project_service.areas.alerts.receivers.presets import PRESETS
from project_service.areas.alerts.receivers.reports import ParsedAlert

MAX_WORDS = 200
MAX_WORD_CHARACTERS = 100
EMPTY_ROWS = 2


@dataclass(frozen=True, slots=True)
class SeverityRow:
    """A word of payloads and the name of the severity that it means; blank if none was chosen."""

    word: str
    severity: str
    is_suggested: bool = False

    @property
    def label(self) -> str:
        """The word as users see it."""
        return "all other words" if self.word == OTHER_WORDS else self.word


def severity_rows(
    integration: AlertIntegration | None, preset_id: str | None, alerts: Iterable[ParsedAlert]
) -> list[SeverityRow]:
    """Return the rows to show: those sent, stored or of the preset, and the words of the sample with suggestions."""
    table = _posted(preset_id) if "severity_word" in request.form else _stored(integration)
    if table is None:
        table = _of_preset(preset_id)
    mapped_words = table.keys() | PLAIN_SEVERITIES.keys()
    words = dict.fromkeys(word_of(alert.severity_word) for alert in alerts if alert.severity_word)
    rows = [SeverityRow(word, name) for word, name in table.items()]
    rows += [
        SeverityRow(word, suggested_severity(word).name.lower(), is_suggested=True)
        for word in words
        if word not in mapped_words and len(word) <= MAX_WORD_CHARACTERS
    ]
    return [*rows[:MAX_WORDS], *[SeverityRow("", "")] * EMPTY_ROWS]


def posted_severities(preset_id: str | None) -> dict[str, str] | None:
    """Return the table to store; ``None`` if it is empty, or that of the preset."""
    table = _posted(preset_id)
    return None if not table or table == _of_preset(preset_id) else table


def resolved_values(text: str | None) -> list[str] | None:
    """Return the values that mean resolved, which are separated by commas or lines; ``None`` for the default ones."""
    words = [word_of(word)[:MAX_WORD_CHARACTERS] for word in (text or "").replace("\n", ",").split(",")]
    return list(dict.fromkeys(word for word in words if word))[:MAX_WORDS] or None


def default_resolved(preset_id: str | None) -> str:
    """Return the values that mean resolved where none are entered."""
    preset = PRESETS.get(preset_id or "")
    if preset is None:
        return ", ".join(sorted(RESOLVED_WORDS))
    words = {word for variant in preset.variants for word in variant.resolved}
    others = sorted(RESOLVED_WORDS - words)
    return ", ".join(sorted(words)) + (
        f"; in a field that is mapped to the end time also {', '.join(others)}" * bool(others)
    )


def _posted(preset_id: str | None) -> dict[str, str]:
    """Return the rows that were sent; where another tool was chosen, its table and the rows that users changed."""
    words, names = request.form.getlist("severity_word"), request.form.getlist("severity_value")
    pairs = zip((word_of(word)[:MAX_WORD_CHARACTERS] for word in words[:MAX_WORDS]), names, strict=False)
    table = {word: name for word, name in pairs if word and name in PLAIN_SEVERITIES}
    shown_preset = request.form.get("severities_of", preset_id or "")
    if shown_preset == (preset_id or ""):
        return table
    return _of_preset(preset_id) | dict(table.items() - _of_preset(shown_preset).items())


def _stored(integration: AlertIntegration | None) -> dict[str, str] | None:
    return integration.severity_mapping if integration is not None else None


def _of_preset(preset_id: str | None) -> dict[str, str]:
    preset = PRESETS.get(preset_id or "")
    tables = [variant.severities for variant in preset.variants if variant.severities] if preset else []
    return {word: Severity(severity).name.lower() for word, severity in tables[0].items()} if tables else {}
