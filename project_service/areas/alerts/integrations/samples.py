"""The sample payload of the form of an integration: its fields, and the alerts it would create."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from flask import request

from project_service.areas.alerts import queries
from project_service.areas.alerts.integrations import service as integrations
from project_service.areas.alerts.integrations.forms import IntegrationForm
from project_service.areas.alerts.integrations.path_suggestions import suggested_fields
from project_service.areas.alerts.integrations.word_tables import posted_severities, resolved_values, severity_rows
from project_service.areas.alerts.models import HTTP, AlertIntegration
from project_service.areas.alerts.payloads import payload_mapping
from project_service.areas.alerts.payloads.elements import PROMETHEUS_TOOL, is_batch
from project_service.areas.alerts.payloads.payload_values import label_of
from project_service.areas.alerts.receivers import grouping
from project_service.areas.alerts.receivers.grouping import Mapping
from project_service.areas.alerts.receivers.presets import PRESETS, ConstantValue, Join, Preset
from project_service.areas.alerts.receivers.reports import ParsedAlert, ReadingRules, rules_of
from project_service.domain.projects import Project


@dataclass(frozen=True, slots=True)
class Sample:
    """The parsed sample of a form: its fields, the mapping, the alerts it would create, or its problem."""

    fields: list[payload_mapping.SampleField] = field(default_factory=list)
    chosen: dict[str, str] = field(default_factory=dict)
    alerts: list[ParsedAlert] | None = None
    unreadable_times: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    grouping: str = field(default_factory=lambda: grouping.description_of({}))
    has_fingerprint: bool = False
    is_new_environment: bool = False  # the alert names an environment that the project does not have
    problem: str | None = None
    has_changed: bool = False
    left_out_after: int | None = None  # how many fields are offered, when that is not all of them
    suggested: frozenset[str] = frozenset()  # the targets whose fields were chosen by the names of keys


def read_sample(
    project: Project, form: IntegrationForm, integration: AlertIntegration | None, *, shows_rows: bool = True
) -> Sample:
    """Parse the sample of a submitted form, or of the stored integration; a preset has one of its own.

    ``shows_rows``: the suggested rows of the severity table are shown with it, so that they hold when it is saved.
    """
    preset = PRESETS.get(form.preset_id or "")
    if not sample_text(form).strip() and preset is not None and preset.samples:
        form.payload_example.data = json.dumps(preset.samples["firing"], indent=2, ensure_ascii=False)
    text = sample_text(form)
    if not text.strip():
        return Sample()
    try:
        payload = payload_mapping.read_sample(text)
    except payload_mapping.Unusable as error:
        return Sample(problem=str(error))
    mappable = payload_mapping.mappable(payload)
    fields = payload_mapping.fields_of(mappable, payload_mapping.MAX_FIELDS + 1)
    offered = fields[: payload_mapping.MAX_FIELDS]
    has_changed = request.method == "POST" and text != parsed_text()
    stored = integration.mapping if integration is not None else {}
    chosen = payload_mapping.chosen_of(stored) if request.method == "GET" else {} if has_changed else chosen_fields()
    suggested = _suggested(payload, offered) if not chosen and _asks_for_suggestions(form) else {}
    chosen = chosen or suggested
    mapped = payload_mapping.mapping_of(mappable, chosen)
    parsed = integrations.parsed_for(form.integration_type, payload, _rules(form, integration, mapped))
    alerts = None if parsed is None else [report.parse() for report in parsed.reports]
    if alerts and shows_rows and (severities := _with_suggestions(form, integration, alerts)) is not None:
        parsed = integrations.parsed_for(form.integration_type, payload, _rules(form, integration, mapped, severities))
        alerts = None if parsed is None else [report.parse() for report in parsed.reports]
    reports = None if parsed is None else parsed.reports
    first = alerts[0] if alerts else None
    environment = first.environment if first else None
    has_own_fingerprint = payload_mapping.has_fingerprint(mappable, mapped)
    is_known = is_batch(payload) or (
        first is not None and first.monitoring_tool == PROMETHEUS_TOOL and "labels" in first.payload
    )
    return Sample(
        list(dict.fromkeys([*offered, *payload_mapping.mapped_fields(mappable, chosen).values()])),
        chosen,
        alerts,
        unreadable_times=reports[0].unreadable_times if reports else {},
        notes=parsed.notes if parsed is not None else [],
        grouping=grouping_text(preset, mapped, given=has_own_fingerprint, is_batch_alert=is_known),
        has_fingerprint=has_own_fingerprint
        or "fingerprint" in mapped
        or is_known
        or bool(first and preset and first.fingerprint),
        is_new_environment=environment is not None and not queries.has_environment(project, environment),
        problem=integrations.NO_BATCH if reports is None else None,
        has_changed=has_changed and bool(parsed_text()),
        left_out_after=len(offered) if len(fields) > len(offered) else None,
        suggested=frozenset(suggested),
    )


def _asks_for_suggestions(form: IntegrationForm) -> bool:
    """Whether a sample of no known tool is parsed for the first time, or taken from the log of requests."""
    preset = PRESETS.get(form.preset_id or "")
    is_first = "request" in request.args if request.method == "GET" else "parse" in request.form and not parsed_text()
    return is_first and form.integration_type == HTTP and (preset is None or preset.reads_plain_keys)


def _suggested(payload: dict[str, Any], fields: list[payload_mapping.SampleField]) -> dict[str, str]:
    return {} if is_batch(payload) else suggested_fields(payload, fields)


def _with_suggestions(
    form: IntegrationForm, integration: AlertIntegration | None, alerts: list[ParsedAlert]
) -> dict[str, str] | None:
    """Return the severity table with the suggested rows; ``None`` if nothing is suggested."""
    rows = severity_rows(integration, form.preset_id, alerts)
    table = {row.word: row.severity for row in rows if row.word and row.severity}
    return table if any(row.is_suggested for row in rows) else None


def _rules(
    form: IntegrationForm,
    integration: AlertIntegration | None,
    mapped: Mapping,
    suggested: dict[str, str] | None = None,
) -> ReadingRules:
    """Return the rules that the form would store; those of the integration before it is submitted."""
    if request.method == "GET" and integration is not None:
        severities, resolved = integration.severity_mapping, integration.resolved_values
    else:
        severities, resolved = posted_severities(form.preset_id), resolved_values(form.resolved_words.data)
    return rules_of(mapped, form.preset_id, suggested or severities, resolved, form.time_zone.data)


def grouping_text(
    preset: Preset | None, mapped: Mapping, *, given: bool | None = None, is_batch_alert: bool = False
) -> str:
    """Say in one sentence how the alerts of an integration are grouped."""
    if is_batch_alert or (preset is not None and preset.is_batch):
        return grouping.OF_BATCHES
    if preset is None or "fingerprint" in mapped or not (text := described(preset, "fingerprint")):
        return grouping.description_of(mapped, is_given=given)
    return f"Alerts are grouped by {text}, as the preset of {preset.name} says."


def described(preset: Preset, target: str) -> str:
    """Say where a preset takes a field from; nothing if it names none."""
    if target == "end_time":
        return ", else ".join(dict.fromkeys(label_of(path) for variant in preset.variants for path in variant.marker))
    texts: dict[str, None] = {}
    for variant in preset.variants:
        source = variant.fields.get(target, ())
        if isinstance(source, ConstantValue):
            texts[f"“{source.text}”"] = None
        elif isinstance(source, Join):
            parts = (part.text if isinstance(part, ConstantValue) else label_of(part) for part in source.parts)
            texts[" and ".join(parts)] = None
        else:
            texts |= dict.fromkeys(label_of(path) for path in source)
    return ", else ".join(texts)


def sample_text(form: IntegrationForm) -> str:
    """The sample in the form, with line breaks as they are stored."""
    return (form.payload_example.data or "").replace("\r\n", "\n")


def parsed_text() -> str:
    """The sample at the time its fields were parsed, sent as a hidden field."""
    return request.form.get("parsed_example", "").replace("\r\n", "\n")


def chosen_fields() -> dict[str, str]:
    """The fields of the sample that are mapped, by target."""
    names = {target: request.form.get(f"map_{target}", "") for target in payload_mapping.TARGETS}
    return {target: key for target, key in names.items() if key}
