"""Schemas of rules, as clients see them."""

from __future__ import annotations

from project_service.areas.notifications.rules.matching import GROUPED_BY
from project_service.domain.notifications.models import KINDS, SEVERITIES
from project_service.domain.silences.matching import OPERATORS
from project_service.kit.http import fields
from project_service.kit.http.schemas import Nested, Schema


class NotificationRuleSchema(Schema):
    """A rule."""

    id = fields.Integer()
    scope = fields.Computed(lambda rule: "project" if rule.project_id is not None else "group", type="string")
    name = fields.String()
    enabled = fields.Boolean()
    events = fields.Computed(lambda rule: rule.events, type="array")
    min_severity = fields.String()
    environment = fields.String()
    integration_ids = fields.Computed(lambda rule: rule.integration_ids, type="array")
    matchers = fields.Computed(lambda rule: rule.matchers, type="array")
    targets = fields.Computed(lambda rule: rule.targets, type="array")
    group_by = fields.Computed(lambda rule: rule.group_by, type="array")
    group_wait = fields.Integer()
    group_interval = fields.Integer()
    repeat_interval = fields.Integer()
    active_periods = fields.Computed(lambda rule: rule.active_periods, type="array")
    created_at = fields.Moment()
    updated_at = fields.Moment()


class MatcherSchema(Schema):
    """A condition on one field."""

    field = fields.String(required=True, allow_blank=False)
    operator = fields.String(required=True, choices=OPERATORS)
    value = fields.String(required=True)


class TargetSchema(Schema):
    """Who is told: a channel, the members with at least a role, or a user."""

    type = fields.String(required=True, allow_blank=False)
    id = fields.Integer()
    access_level = fields.Integer(choices=(10, 20, 30, 40, 50))
    username = fields.String()


class PeriodSchema(Schema):
    """Hours of some days of the week, in which a rule is active."""

    time_zone = fields.String(default="UTC")
    days = fields.Array(fields.Integer(choices=range(1, 8)))
    starts = fields.String(required=True, data_key="from")
    ends = fields.String(required=True, data_key="to")


class NotificationRuleUpdateSchema(Schema):
    """Changes of a rule."""

    name = fields.String()
    enabled = fields.Boolean()
    events = fields.Array(fields.String(choices=KINDS))
    min_severity = fields.String(choices=("", *SEVERITIES))
    environment = fields.String()
    integration_ids = fields.Array(fields.Integer())
    matchers = fields.Array(Nested(MatcherSchema))
    targets = fields.Array(Nested(TargetSchema))
    group_by = fields.Array(fields.String(choices=GROUPED_BY))
    group_wait = fields.Integer()
    group_interval = fields.Integer()
    repeat_interval = fields.Integer(metadata={"description": "Seconds until a reminder of what is still open."})
    active_periods = fields.Array(Nested(PeriodSchema))


class NotificationRuleCreateSchema(NotificationRuleUpdateSchema):
    """A new rule."""

    name = fields.String(required=True, allow_blank=False)
    events = fields.Array(fields.String(choices=KINDS), required=True)
    targets = fields.Array(Nested(TargetSchema), required=True)


class PreviewRequestSchema(Schema):
    """An event to be tried: an alert, or its parts."""

    alert_iid = fields.Integer()
    event = fields.String(choices=KINDS, default="alert_triggered")
    severity = fields.String(choices=("critical", "high", "medium", "low", "info", "unknown"), default="critical")
    environment = fields.String()
    title = fields.String(default="")
    payload = fields.Hash()


class RuleMatchSchema(Schema):
    """A rule that an event would match, with who would be told."""

    rule_id = fields.Integer()
    rule_name = fields.String()
    targets = fields.Array(fields.String())


class RuleMismatchSchema(Schema):
    """A rule that an event would not match, with the condition that does not hold."""

    rule_id = fields.Integer()
    because = fields.String()


class PreviewSchema(Schema):
    """What would follow from an event; nothing is sent."""

    silenced_by = fields.Array(fields.Integer())
    matches = fields.Array(Nested(RuleMatchSchema))
    not_matching = fields.Array(Nested(RuleMismatchSchema))
