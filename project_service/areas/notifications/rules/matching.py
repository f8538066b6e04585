"""Comparison of an event with a rule (notifications reference, section 7)."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

from project_service.domain.notifications.models import SEVERITIES, NotificationEvent, NotificationRule
from project_service.domain.repositories import wildcards
from project_service.domain.silences.matching import Facts, holds_all, values_of

ANY_ENVIRONMENT = "*"
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
    if not holds_all(rule.matchers, facts_of(event)):
        return "matchers"
    if rule.active_periods and not any(is_within(period, at) for period in rule.active_periods):
        return "active_periods"
    return None


def rank(severity: str) -> int:
    """Return the order of a severity, 0 for the worst; one that was not graded counts as critical."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else 0


def facts_of(event: NotificationEvent) -> Facts:
    """Return what matchers compare."""
    return event.snapshot | {"severity": event.severity, "environment": event.environment}


def group_key(rule: NotificationRule, event: NotificationEvent) -> str:
    """Return the values that a rule groups an event by, as one text."""
    facts = facts_of(event)
    return "\x1f".join(values_of(facts, field)[0] for field in rule.group_by)


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


def _is_in_environment(wanted: str | None, environment: str | None) -> bool:
    if wanted in (None, ANY_ENVIRONMENT):
        return True
    return environment is not None and wildcards.matches(wanted or "", environment)
