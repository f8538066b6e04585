"""The typed fields of services are those that requests may have."""

from __future__ import annotations

from typing import Any

import pytest

from project_service.areas.heartbeats.schemas import HeartbeatUpdateSchema
from project_service.areas.heartbeats.service import HeartbeatFields
from project_service.areas.notifications.channels.schemas import NotificationChannelCreateSchema
from project_service.areas.notifications.channels.service import ChannelFields
from project_service.areas.notifications.personal.schemas import QuietHoursSchema
from project_service.areas.notifications.personal.service import QuietHoursFields
from project_service.areas.notifications.rules.preview import TriedEvent
from project_service.areas.notifications.rules.schemas import NotificationRuleUpdateSchema, PreviewRequestSchema
from project_service.areas.notifications.rules.service import RuleFields
from project_service.areas.repositories.releases.schemas import LinkCreateSchema
from project_service.areas.repositories.releases.service import LinkValues
from project_service.areas.silences.schemas import SilenceUpdateSchema
from project_service.areas.silences.service import SilenceFields
from project_service.areas.vulnerabilities.findings.schemas import FeedbackCreateSchema
from project_service.areas.vulnerabilities.findings.service import FeedbackFields
from project_service.areas.webhooks.schemas import GroupHookUpdateSchema
from project_service.areas.webhooks.service import HookFields
from project_service.kit.http.schemas import Schema

CASES = [
    (HeartbeatUpdateSchema, HeartbeatFields),
    (NotificationChannelCreateSchema, ChannelFields),
    (QuietHoursSchema, QuietHoursFields),
    (PreviewRequestSchema, TriedEvent),
    (NotificationRuleUpdateSchema, RuleFields),
    (LinkCreateSchema, LinkValues),
    (SilenceUpdateSchema, SilenceFields),
    (FeedbackCreateSchema, FeedbackFields),
    (GroupHookUpdateSchema, HookFields),
]


@pytest.mark.parametrize(("schema", "fields"), CASES, ids=[fields.__name__ for _, fields in CASES])
def test_typed_fields_are_those_of_the_schema(schema: type[Schema], fields: Any) -> None:
    assert set(fields.__annotations__) == set(schema().fields)
