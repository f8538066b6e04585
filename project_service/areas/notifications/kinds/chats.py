"""Channels of chats: Slack and what accepts its format, Microsoft Teams, Discord."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from project_service.areas.notifications.kinds import escaping
from project_service.areas.notifications.kinds.base import (
    Answer,
    ChannelKind,
    HttpRequest,
    Outgoing,
    body_of,
    seconds_of,
)
from project_service.areas.notifications.messages import (
    ACKNOWLEDGED,
    ENDED,
    OPEN,
    ChannelMessage,
    cut_characters,
    plain,
)
from project_service.kit.security.outgoing_http.rules import Policy

COLORS = {"critical": 0x8B2615, "high": 0xC0341D, "medium": 0xFCA429, "low": 0xFDBC60, "info": 0x418CD8}
UNKNOWN_COLOR, ENDED_COLOR = 0xBABABA, 0x108548
MAX_SLACK_TEXT = 3000
MAX_TEAMS_BYTES = 24 << 10
DISCORD_HOSTS = ("discord.com", "discordapp.com", "ptb.discord.com", "canary.discord.com")
DISCORD_PATH = re.compile(r"/api/webhooks/\d+/[-\w]+")
DISCORD_NAMES = re.compile(r"discord|clyde", re.IGNORECASE)
MAX_DISCORD_FIELDS, MAX_DISCORD_SUM = 25, 6000


def color_of(message: ChannelMessage) -> int:
    """Return the color of a message: that of its severity while something is open."""
    if message.state in (ENDED, ACKNOWLEDGED):
        return ENDED_COLOR
    return COLORS.get(message.severity, UNKNOWN_COLOR)


def tag_of(message: ChannelMessage) -> str:
    """Return our own tag, such as ``[CRITICAL]``: before a blank its brackets are no link, so it is not escaped."""
    return f"[{message.tag}] " if message.tag else ""


class Slack(ChannelKind):
    """Slack, Mattermost and Rocket.Chat: text with one attachment, which all of them show."""

    type = "slack"
    title = "Slack, Mattermost or Rocket.Chat"
    fields = ("username", "icon_url", "channel")
    needs_https = False

    def request(self, outgoing: Outgoing) -> HttpRequest:
        """Return a text and an attachment; links are only our own."""
        message, escape = outgoing.message, escaping.slack
        tag = f"*[{escape(message.tag)}]* " if message.tag else ""
        headline = escape(message.headline)
        suffix = "" if message.project["name"] in message.headline else f" — {escape(message.project['name'])}"
        links = " · ".join(f"<{url}|{name}>" for name, url in outgoing.links)
        lines = escape(cut_characters("\n".join(message.lines), MAX_SLACK_TEXT - len(links) - 500))
        attachment = {
            "fallback": escape(message.short_title),
            "color": f"#{color_of(message):06x}",
            "mrkdwn_in": ["text"],
            "text": f"{lines}\n{links}" if lines else links,
            "fields": [{"title": name, "value": escape(value), "short": True} for name, value in message.facts],
            "footer": escape(message.project["name"]),
            "ts": int(message.timestamp.timestamp()),
        }
        settings = {
            name: outgoing.channel.settings[name] for name in self.fields if outgoing.channel.settings.get(name)
        }
        text = cut_characters(f"{tag}{headline}{suffix}", MAX_SLACK_TEXT)
        return HttpRequest(
            outgoing.channel.secrets["url"], body_of({"text": text, "attachments": [attachment]} | settings)
        )

    def refusal(self, answer: Answer) -> str | None:
        """Success is ``ok``, or JSON that does not deny it."""
        text = answer.text.strip()
        if text == "ok" or (answer.json and answer.json.get("success") is not False):
            return None
        return f"HTTP 200, but the answer is not ok: {text[:500]}"


class Teams(ChannelKind):
    """Microsoft Teams through a workflow."""

    type = "teams"
    title = "Microsoft Teams"
    fields = ("body_style",)
    delivered = (200, 202)

    def problems(self, settings: dict[str, Any], secrets: dict[str, Any], policy: Policy) -> dict[str, list[str]]:
        """Check the URL and the style of the body."""
        problems = super().problems(settings, secrets, policy)
        if settings.get("body_style") not in (None, "message", "card"):
            problems["body_style"] = ["is not included in the list"]
        return problems

    def request(self, outgoing: Outgoing) -> HttpRequest:
        """Return an Adaptive Card; lines are dropped from the end until the body is small enough."""
        number = len(outgoing.message.lines)
        body = body_of(self._body(outgoing, number))
        while len(body) > MAX_TEAMS_BYTES and number:
            number -= 1
            body = body_of(self._body(outgoing, number))
        return HttpRequest(outgoing.channel.secrets["url"], body)

    def _body(self, outgoing: Outgoing, number: int) -> dict[str, Any]:
        message, escape = outgoing.message, escaping.teams
        color = {OPEN: "Attention", ENDED: "Good"}.get(message.state, "Default")
        tag = tag_of(message)
        heading: dict[str, Any] = {
            "type": "TextBlock",
            "text": f"{tag}{escape(message.headline)}",
            "weight": "Bolder",
            "size": "Medium",
        }
        heading |= {"wrap": True, "style": "heading", "color": color}
        blocks: list[dict[str, Any]] = [heading]
        blocks += [{"type": "TextBlock", "text": escape(line), "wrap": True} for line in message.lines[:number]]
        if message.facts:
            facts = [{"title": name, "value": escape(value)} for name, value in message.facts]
            blocks.append({"type": "FactSet", "facts": facts})
        card = {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.2",
            "fallbackText": f"{tag}{escape(message.short_title.removeprefix(tag))}",
            "msteams": {"width": "full"},
            "body": blocks,
            "actions": [{"type": "Action.OpenUrl", "title": name, "url": url} for name, url in outgoing.links],
        }
        if outgoing.channel.settings.get("body_style") == "card":
            return card
        content_type = "application/vnd.microsoft.card.adaptive"
        return {"type": "message", "attachments": [{"contentType": content_type, "contentUrl": None, "content": card}]}


class Discord(ChannelKind):
    """Discord."""

    type = "discord"
    title = "Discord"
    fields = ("username", "thread_id")
    delivered = (200, 204)
    final_failures = 1  # many refused requests ban the sender's address

    def problems(self, settings: dict[str, Any], secrets: dict[str, Any], policy: Policy) -> dict[str, list[str]]:
        """Check that the URL is one of Discord's, and the name it may not have."""
        problems = super().problems(settings, secrets, policy)
        parts = urlsplit(secrets.get("url") or "")
        if "url" not in problems and (parts.hostname not in DISCORD_HOSTS or not DISCORD_PATH.match(parts.path)):
            problems["url"] = ["is not a webhook URL of Discord"]
        if DISCORD_NAMES.search(settings.get("username") or ""):
            problems["username"] = ["must not contain discord or clyde"]
        if settings.get("thread_id") and not str(settings["thread_id"]).isdigit():
            problems["thread_id"] = ["is invalid"]
        return problems

    def request(self, outgoing: Outgoing) -> HttpRequest:
        """Return an embed within the limits of Discord; it mentions nobody."""
        message, settings = outgoing.message, outgoing.channel.settings
        links = "\n".join(f"[{name}]({url})" for name, url in outgoing.links[1:])
        room = 4096 - len(links) - 1
        tag = tag_of(message)
        title = tag + _escaped(message.headline, 256 - len(tag))
        fields: list[dict[str, Any]] = [
            {"name": name[:256], "value": _escaped(value, 1024), "inline": True}
            for name, value in message.facts[:MAX_DISCORD_FIELDS]
        ]
        footer = _escaped(message.project["name"], 2048)
        used = len(title) + len(footer) + sum(len(field["name"]) + len(field["value"]) for field in fields)
        description = _escaped("\n".join(message.lines), max(min(room, MAX_DISCORD_SUM - used - len(links) - 1), 0))
        embed = {
            "title": title,
            "url": message.url,
            "description": "\n".join(part for part in (description, links) if part),
            "color": color_of(message),
            "fields": fields,
            "footer": {"text": footer},
            "timestamp": message.timestamp.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        body: dict[str, Any] = {"content": "", "embeds": [embed], "allowed_mentions": {"parse": []}}
        if settings.get("username"):
            body["username"] = settings["username"]
        parts = urlsplit(outgoing.channel.secrets["url"])
        match = DISCORD_PATH.match(parts.path)
        thread = f"&thread_id={settings['thread_id']}" if settings.get("thread_id") else ""
        path = match[0] if match else parts.path
        return HttpRequest(f"https://{parts.netloc}{path}?wait=true{thread}", body_of(body))

    def retry_after(self, answer: Answer) -> float | None:
        """Return the seconds of the header or of the body."""
        return seconds_of(answer.header("retry-after")) or seconds_of(answer.json.get("retry_after"))

    def pause_after(self, answer: Answer) -> float | None:
        """Return the rest of the period whose messages are used up."""
        is_used_up = answer.header("x-ratelimit-remaining") == "0"
        return seconds_of(answer.header("x-ratelimit-reset-after")) if is_used_up else None


def _escaped(text: str, limit: int) -> str:
    """Escape a text so that at most ``limit`` characters are left; it is cut before it is escaped."""
    text = plain(text)
    escaped = escaping.discord(text)
    while len(escaped) > limit:
        text = cut_characters(text, max(len(text) - max((len(escaped) - limit) // 2, 1), 1))
        if len(text) <= 1:
            return ""
        escaped = escaping.discord(text)
    return escaped
