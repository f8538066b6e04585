"""The form of a channel: the fields of its type."""

from __future__ import annotations

import secrets
from typing import Any

from wtforms import BooleanField, IntegerField, PasswordField, SelectField, StringField

from project_service.areas.notifications.kinds import KINDS
from project_service.areas.notifications.models import NotificationChannel
from project_service.kit.http.forms import Form

SECRET = {"autocomplete": "new-password"}
HINTS = {
    "email": "An address of a person who is not a member has to confirm it first.",
    "webhook": "Your program gets JSON by POST, signed if you set a token.",
    "slack": "Slack: Apps, Incoming Webhooks. Mattermost and Rocket.Chat: Integrations, Incoming Webhooks.",
    "teams": "Teams: Workflows, Post to a channel when a webhook request is received. Success means that the flow was"
    " started, not that the card was posted.",
    "discord": "Discord: Edit channel, Integrations, Webhooks.",
    "ntfy": "Subscribe to the topic in the app ntfy on your phone. Whoever knows the topic reads the messages.",
    "telegram": "Telegram: create a bot with @BotFather, add it to the chat, and find the id of the chat.",
    "pagerduty": "PagerDuty: Services, Integrations, Events API v2. Alerts and incidents only.",
}


class ChannelForm(Form):
    """A channel; an empty secret keeps the stored one unless the URL changes."""

    name = StringField("Name")
    address = StringField("E-mail address")
    url = PasswordField("URL", description="It is stored encrypted and not shown again.", render_kw=SECRET)
    signing_token = PasswordField("Signing token", description="whsec_ and 32 bytes in Base64.", render_kw=SECRET)
    enable_ssl_verification = BooleanField("Verify TLS certificates", default=True)
    username = StringField("Name of the sender (optional)")
    icon_url = StringField("URL of the sender's picture (optional)")
    channel = StringField("Channel (optional)", description="Mattermost and Rocket.Chat only.")
    body_style = SelectField(
        "Body",
        choices={"message": "A message with a card, as the templates of Teams expect", "card": "A bare card"},
        default="message",
    )
    thread_id = StringField("Id of a thread (optional)")
    server = StringField("Server", render_kw={"placeholder": "https://ntfy.sh"})
    topic = StringField("Topic")
    token = PasswordField("Token", render_kw=SECRET)
    chat_id = StringField("Id of the chat", description="A number, or @ and the name of a channel.")
    message_thread_id = StringField("Id of a topic (optional)")
    routing_key = PasswordField("Integration key", render_kw=SECRET)
    region = SelectField("Region", choices={"us": "United States", "eu": "Europe"}, default="us")
    rate_per_minute = IntegerField("Messages per minute", default=20, description="1 to 60. What exceeds it waits.")
    enabled = BooleanField("Enabled", default=True)

    def shown(self, type_: str) -> list[Any]:
        """Return the fields of a type, in their order."""
        kind = KINDS[type_]
        own = [name for name in (*kind.secrets, *kind.fields) if name in self]
        return [self[name] for name in ("name", *own, "rate_per_minute", "enabled")]

    def fields(self, type_: str) -> dict[str, Any]:
        """Return what the service takes; secrets that are empty are left out."""
        kind = KINDS[type_]
        values = {name: self[name].data for name in kind.fields if name in self}
        values |= {name: self[name].data for name in kind.secrets if name in self and self[name].data}
        rate = 0 if self.rate_per_minute.data is None else self.rate_per_minute.data
        return values | {"name": self.name.data or "", "rate_per_minute": rate, "enabled": self.enabled.data}


def new_form(type_: str) -> ChannelForm:
    """Return the form of a new channel, with a topic that nobody guesses."""
    topic = f"alerts-{secrets.token_hex(6)}" if type_ == "ntfy" else None
    kind = KINDS[type_]
    data = {"name": kind.title.split(",")[0], "topic": topic, "rate_per_minute": kind.default_rate}
    return ChannelForm(formdata=None, data=data)


def form_of(channel: NotificationChannel) -> ChannelForm:
    """Return the form of a stored channel, without its secrets."""
    plain = {name: getattr(channel, name) for name in ("name", "rate_per_minute", "enabled")}
    return ChannelForm(formdata=None, data=plain | channel.settings)
