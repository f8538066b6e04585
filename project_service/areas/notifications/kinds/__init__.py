"""Kinds of channels: what is sent to each, and what answers mean (notifications reference, section 5)."""

from __future__ import annotations

from project_service.areas.notifications.kinds.base import Answer, ChannelData, ChannelKind, Outgoing
from project_service.areas.notifications.kinds.chats import Discord, Slack, Teams
from project_service.areas.notifications.kinds.email import Email
from project_service.areas.notifications.kinds.pager import PagerDuty
from project_service.areas.notifications.kinds.phones import Ntfy, Telegram
from project_service.areas.notifications.kinds.webhook import Webhook

KINDS: dict[str, ChannelKind] = {
    kind.type: kind for kind in (Email(), Webhook(), Slack(), Teams(), Discord(), Ntfy(), Telegram(), PagerDuty())
}

__all__ = ["KINDS", "Answer", "ChannelData", "ChannelKind", "Outgoing"]
