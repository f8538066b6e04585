"""Comparison of an event with a rule (notifications reference, section 7)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from project_service.domain.notifications.models import SEVERITIES, NotificationEvent, NotificationRule
from project_service.domain.repositories import wildcards

ANY_ENVIRONMENT = "*"
PAYLOAD = "payload."
FIELDS = ("title", "severity", "environment", "service", "monitoring_tool", "host", "integration", "fingerprint")
OPERATORS = ("is", "is_not", "matches", "not_matches")
GROUPED_BY = ("environment", "service", "severity", "title", "integration")


def mismatch(rule: NotificationRule, event: NotificationEvent, at: dt.datetime) -> str | None:
    """Return the first condition of a rule that an event does not meet; ``None`` if it meets all."""
    if event.kind not in rule.events:
        return "events"
    if rule.min_severity is not None and rank(event.severity) > rank(rule.min_severity):
        return "min_severity"
    if not _is_in_environment(rule.environment, event.environment):
        return "environment"
    if rule.integration_ids and event.snapshot.get("integration_id") not in rule.integration_ids:
        return "integration_ids"
    if not all(holds(matcher, event) for matcher in rule.matchers):
        return "matchers"
    if rule.active_periods and not any(is_within(period, at) for period in rule.active_periods):
        return "active_periods"
    return None


def rank(severity: str) -> int:
    """Return the order of a severity, 0 for the worst; one that was not graded counts as critical."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else 0


def holds(matcher: dict[str, Any], event: NotificationEvent) -> bool:
    """Whether a matcher holds for an event; of several values, such as hosts, one is enough."""
    values = values_of(event, matcher["field"])
    operator, wanted = matcher["operator"], matcher["value"]
    if operator in ("is", "is_not"):
        if matcher["field"] == "severity":
            wanted = wanted.lower()
        found = wanted in values
    else:
        found = any(_matches(wanted.casefold(), value.casefold()) for value in values)
    return found if operator in ("is", "matches") else not found


def values_of(event: NotificationEvent, field: str) -> Sequence[str]:
    """Return the values of a field of matchers and groups, at least one; what is missing is the empty text."""
    if field.startswith(PAYLOAD):
        return _texts(_at(event.snapshot.get("payload"), field.removeprefix(PAYLOAD).split(".")))
    if field == "severity":
        return [event.severity]
    if field == "environment":
        return [event.environment or ""]
    return _texts(event.snapshot.get("hosts" if field == "host" else field))


def group_key(rule: NotificationRule, event: NotificationEvent) -> str:
    """Return the values that a rule groups an event by, as one text."""
    return "\x1f".join(values_of(event, field)[0] for field in rule.group_by)


def is_within(period: dict[str, Any], at: dt.datetime) -> bool:
    """Whether a moment is in a weekly period, which may go over midnight and then belongs to the day it begins."""
    local = at.astimezone(ZoneInfo(period["time_zone"]))
    minute, begin, end = f"{local:%H:%M}", period["from"], period["to"]
    today, yesterday = local.isoweekday(), (local - dt.timedelta(days=1)).isoweekday()
    if begin < end:
        return today in period["days"] and begin <= minute < end
    if begin == end:
        return today in period["days"]
    return (today in period["days"] and minute >= begin) or (yesterday in period["days"] and minute < end)


def _matches(pattern: str, value: str) -> bool:
    return wildcards.matches(pattern, value) or (not value and pattern.strip("*") == "")


def _is_in_environment(wanted: str | None, environment: str | None) -> bool:
    if wanted in (None, ANY_ENVIRONMENT):
        return True
    return environment is not None and wildcards.matches(wanted or "", environment)


def _at(value: Any, path: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_at(item, path) for item in value]
    if not path:
        return value
    return _at(value.get(path[0]), path[1:]) if isinstance(value, dict) else None


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)] or [""]
    return ["" if value is None or isinstance(value, dict) else str(value)]
