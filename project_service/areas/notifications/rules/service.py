"""Create, change and delete rules (notifications reference, section 7)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack
from zoneinfo import available_timezones

from sqlalchemy import func, select

from project_service.access import audit
from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.areas.notifications.channels.queries import usable_channels
from project_service.areas.notifications.models import PAGERDUTY
from project_service.areas.notifications.owners import column_of, kind_of, owned_by
from project_service.areas.notifications.routing import reminders
from project_service.areas.notifications.rules import queries
from project_service.domain.accounts.users import ACTIVE, user_by
from project_service.domain.namespaces import Namespace
from project_service.domain.notifications.models import ALERT, ISSUE, SUBJECTS, NotificationRule
from project_service.domain.projects import Project
from project_service.domain.silences.matching import FIELDS
from project_service.kit.db.locking import delete_locked
from project_service.kit.db.session import db
from project_service.kit.http.errors import BadParameters, Invalid

RuleOwner = Project | Namespace
MAX_RULES = 50
MAX_NAME_LENGTH = 100
MAX_TARGETS = MAX_MATCHERS = 10
MAX_PERIODS = 7
MAX_VALUE_LENGTH = 255
WAIT_SECONDS, INTERVAL_SECONDS, REPEAT_SECONDS = (0, 300), (30, 86_400), (3600, 604_800)
TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
PATH = re.compile(r"payload\.[^.\s]+(\.[^.\s]+)*")
TARGETS = {"channel": "id", "members": "access_level", "user": "username"}  # type and what names it
UNAUDITED = ("project_id", "group_id")
CHECKED = ("name", "events", "targets", "matchers", "active_periods", "group_wait", "group_interval", "repeat_interval")
NULLABLE = ("min_severity", "environment", "repeat_interval")
OPTIONAL_TEXTS = ("min_severity", "environment")


class RuleFields(TypedDict, total=False):
    """What may be given of a rule; ``group_wait`` and the intervals are seconds."""

    name: str | None
    enabled: bool | None
    events: Sequence[str] | None
    min_severity: str | None
    environment: str | None
    integration_ids: Sequence[int] | None
    matchers: Sequence[dict[str, Any]] | None
    targets: Sequence[dict[str, Any]] | None
    group_by: Sequence[str] | None
    group_wait: int | None
    group_interval: int | None
    repeat_interval: int | None
    active_periods: Sequence[dict[str, Any]] | None


def create_rule(owner: RuleOwner, **fields: Unpack[RuleFields]) -> NotificationRule:
    """Create a rule of a project or group."""
    if queries.number_of_rules(owner) >= MAX_RULES:
        raise Invalid(base=f"Maximum number of notification rules ({MAX_RULES}) exceeded")
    rule = NotificationRule(
        enabled=True,
        integration_ids=[],
        matchers=[],
        group_by=[],
        group_wait=5,
        group_interval=300,
        active_periods=[],
        **{column_of(owner): owner.id},
    )
    with db.session.no_autoflush:
        _assign(owner, rule, fields)
    db.session.add(rule)
    db.session.flush()
    audit.record("notification_rule_created", owner, f"Created notification rule {rule.name}")
    return rule


def update_rule(owner: RuleOwner, rule: NotificationRule, **fields: Unpack[RuleFields]) -> NotificationRule:
    """Change a rule; what waits in its groups stays there."""
    if not fields:
        raise BadParameters("No parameters provided")
    before = audit.settings_of(rule, UNAUDITED)
    planned = (rule.enabled, rule.repeat_interval)
    with db.session.no_autoflush:
        _assign(owner, rule, fields)
    db.session.flush()
    if planned != (rule.enabled, rule.repeat_interval):
        reminders.restart(rule)
    audit.record_changes("notification_rule", owner, before, audit.settings_of(rule, UNAUDITED))
    return rule


def delete_rule(owner: RuleOwner, rule: NotificationRule) -> None:
    """Remove a rule; what waits in its groups is dropped."""
    audit.record("notification_rule_destroyed", owner, f"Destroyed notification rule {rule.name}")
    delete_locked(rule)


def _assign(owner: RuleOwner, rule: NotificationRule, fields: Mapping[str, Any]) -> None:
    """Set what is given, or raise ``Invalid`` with everything that is wrong."""
    values = {name: value for name, value in fields.items() if value is not None or name in NULLABLE}
    for name in OPTIONAL_TEXTS:
        if name in values:
            values[name] = values[name] or None
    if "active_periods" in values:
        values["active_periods"] = [_period(period) for period in values["active_periods"]]
    if "targets" in values:
        values["targets"] = [_target(target) for target in values["targets"]]
    problems = _problems(owner, rule, {name: getattr(rule, name) for name in CHECKED} | values)
    checked = CHECKED if rule.id is None else {*values, *(("targets",) if "events" in values else ())}
    if problems := {name: texts for name, texts in problems.items() if name in checked}:
        raise Invalid(**problems)
    for name, value in values.items():
        setattr(rule, name, value)


def _period(given: dict[str, Any]) -> dict[str, Any]:
    days = sorted(set(given.get("days") or range(1, 8)))
    return {"time_zone": given["time_zone"], "days": days, "from": given["starts"], "to": given["ends"]}


def _target(given: dict[str, Any]) -> dict[str, Any]:
    if given["type"] not in TARGETS:
        raise BadParameters("targets does not have a valid value")
    name = TARGETS[given["type"]]
    return {"type": given["type"], name: given.get(name)}


def _problems(owner: RuleOwner, rule: NotificationRule, values: dict[str, Any]) -> dict[str, list[str]]:
    problems = {
        "name": _name_problems(owner, rule, values["name"]),
        "events": [] if values["events"] else ["is empty"],
        "targets": _target_problems(owner, values["targets"], values["events"] or ()),
        "matchers": _matcher_problems(values["matchers"]),
        "active_periods": _period_problems(values["active_periods"]),
        "group_wait": _range_problems(values["group_wait"], *WAIT_SECONDS),
        "group_interval": _range_problems(values["group_interval"], *INTERVAL_SECONDS),
        "repeat_interval": _range_problems(values["repeat_interval"], *REPEAT_SECONDS),
    }
    return {name: texts for name, texts in problems.items() if texts}


def _name_problems(owner: RuleOwner, rule: NotificationRule, name: str) -> list[str]:
    if not (name or "").strip():
        return ["can't be blank"]
    if len(name) > MAX_NAME_LENGTH:
        return [f"is too long (maximum is {MAX_NAME_LENGTH} characters)"]
    same = select(NotificationRule.id).where(
        owned_by(NotificationRule, owner), func.lower(NotificationRule.name) == name.lower()
    )
    if rule.id is not None:
        same = same.where(NotificationRule.id != rule.id)
    return ["has already been taken"] if db.session.scalar(same) is not None else []


def _target_problems(owner: RuleOwner, targets: Sequence[dict[str, Any]], events: Sequence[str]) -> list[str]:
    if not targets:
        return ["is empty"]
    if len(targets) > MAX_TARGETS:
        return [f"must be at most {MAX_TARGETS}"]
    channels = {row.id: row for row in db.session.scalars(usable_channels(owner))}
    problems = []
    for target in targets:
        if target["type"] == "channel":
            channel = channels.get(target["id"])
            if channel is None:
                problems.append(f"channel {target['id']} does not exist")
            elif channel.type == PAGERDUTY and any(SUBJECTS[event] not in (ALERT, ISSUE) for event in events):
                problems.append("a PagerDuty channel takes alerts and incidents only")
        elif target["type"] == "members":
            if target["access_level"] is None:
                problems.append("access_level is missing")
        elif (problem := _user_problem(owner, target["username"] or "")) is not None:
            problems.append(problem)
    return problems


def _user_problem(owner: RuleOwner, username: str) -> str | None:
    user = user_by(username) if username and not username.isdigit() else None
    if user is None or user.state != ACTIVE:
        return f"user {username} does not exist"
    if isinstance(owner, Project) and not allowed(Caller.of(user), Ability.READ_ALERTS, owner):
        return f"user {username} cannot read alerts of this {kind_of(owner)}"
    return None


def _matcher_problems(matchers: Sequence[dict[str, Any]]) -> list[str]:
    if len(matchers) > MAX_MATCHERS:
        return [f"must be at most {MAX_MATCHERS}"]
    problems = []
    for matcher in matchers:
        if matcher["field"] not in FIELDS and not PATH.fullmatch(matcher["field"]):
            problems.append(f"{matcher['field']} is not a field")
        if len(matcher["value"]) > MAX_VALUE_LENGTH:
            problems.append(f"value is too long (maximum is {MAX_VALUE_LENGTH} characters)")
    return problems


def _period_problems(periods: Sequence[dict[str, Any]]) -> list[str]:
    if len(periods) > MAX_PERIODS:
        return [f"must be at most {MAX_PERIODS}"]
    problems = []
    for period in periods:
        if period["time_zone"] not in available_timezones():
            problems.append("time_zone is not included in the list")
        if not (TIME.fullmatch(period["from"]) and TIME.fullmatch(period["to"])):
            problems.append("from and to must be times such as 08:00")
    return problems


def _range_problems(value: int | None, least: int, most: int) -> list[str]:
    return [] if value is None or least <= value <= most else [f"must be from {least} to {most}"]
