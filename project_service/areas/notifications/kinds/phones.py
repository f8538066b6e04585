"""Channels that reach a phone: ntfy and Telegram."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any
from urllib.parse import urlsplit

from project_service.areas.notifications.kinds import escaping
from project_service.areas.notifications.kinds.base import (
    Answer,
    ChannelKind,
    HttpRequest,
    Outgoing,
    body_of,
    masked_text,
    seconds_of,
    url_problems,
)
from project_service.areas.notifications.messages import ACKNOWLEDGED, ENDED, ChannelMessage, cut_bytes, cut_characters
from project_service.kit.deliveries import DeliveryOutcome, DeliveryResult
from project_service.kit.security.outgoing_http.rules import Policy

NTFY_SERVER = "https://ntfy.sh"
TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")
PRIORITIES = {"critical": 5, "high": 4, "unknown": 4, "medium": 3, "low": 2, "info": 2}
ENDED_PRIORITY = 2
MAX_NTFY_BYTES = 4000
MAX_NTFY_TITLE = 250
BOT_TOKEN = re.compile(r"\d+:[A-Za-z0-9_-]{30,}")
CHAT_ID = re.compile(r"-?\d{1,20}|@[A-Za-z0-9_]{3,64}")
TELEGRAM = "https://api.telegram.org"
MAX_TELEGRAM_TEXT = 4096
MIGRATE = "migrate_to_chat_id"


class Ntfy(ChannelKind):
    """ntfy: whoever knows the topic reads it."""

    type = "ntfy"
    title = "ntfy"
    fields = ("server", "topic")
    secrets = ("token",)
    required = ("topic",)
    needs_https = False

    def problems(self, settings: dict[str, Any], secrets: dict[str, Any], policy: Policy) -> dict[str, list[str]]:
        """Check the server and the topic."""
        problems = url_problems("server", settings.get("server") or NTFY_SERVER, policy, needs_https=False)
        if not TOPIC.fullmatch(settings.get("topic") or ""):
            problems["topic"] = ["must be 1 to 64 letters, digits, hyphens or underscores"]
        return problems

    def target(self, settings: dict[str, Any], secrets: dict[str, Any]) -> str:
        """Return the server and the beginning of the topic."""
        host = urlsplit(settings.get("server") or NTFY_SERVER).netloc.rpartition("@")[2]
        return f"{host}/{masked_text(settings['topic'])}"

    def request(self, outgoing: Outgoing) -> HttpRequest:
        """Return a message for the root of the server."""
        message, settings = outgoing.message, outgoing.channel.settings
        actions: list[dict[str, Any]] = [{"action": "view", "label": "Open", "url": message.url}]
        if outgoing.action is not None:
            label, url = outgoing.action
            actions.append({"action": "http", "label": label, "url": url, "method": "POST", "clear": True})
        ended, acknowledged = message.state == ENDED, message.state == ACKNOWLEDGED
        body = {
            "topic": settings["topic"],
            "title": cut_bytes(message.title, MAX_NTFY_TITLE),
            "message": cut_bytes("\n".join((message.place, *message.lines)), MAX_NTFY_BYTES),
            "priority": ENDED_PRIORITY if ended else PRIORITIES.get(message.severity, 4),
            "tags": ["white_check_mark" if ended else "eyes" if acknowledged else "rotating_light"],
            "click": message.url,
            "actions": actions,
        }
        headers = {}
        if token := outgoing.channel.secrets.get("token"):
            basic = b64encode(token.encode()).decode()
            headers["Authorization"] = f"Basic {basic}" if ":" in token else f"Bearer {token}"
        server = (settings.get("server") or NTFY_SERVER).rstrip("/")
        return HttpRequest(f"{server}/", body_of(body), headers)


class Telegram(ChannelKind):
    """A bot of Telegram; its URL has the token."""

    type = "telegram"
    title = "Telegram"
    fields = ("chat_id", "message_thread_id")
    secrets = ("token",)
    required = ("token", "chat_id")

    def problems(self, settings: dict[str, Any], secrets: dict[str, Any], policy: Policy) -> dict[str, list[str]]:
        """Check the token and the chat."""
        problems: dict[str, list[str]] = {}
        if not BOT_TOKEN.fullmatch(secrets.get("token") or ""):
            problems["token"] = ["is invalid"]
        if not CHAT_ID.fullmatch(str(settings.get("chat_id") or "")):
            problems["chat_id"] = ["must be a number, or @ and the name of a channel"]
        if settings.get("message_thread_id") and not str(settings["message_thread_id"]).isdigit():
            problems["message_thread_id"] = ["is invalid"]
        return problems

    def target(self, settings: dict[str, Any], secrets: dict[str, Any]) -> str:
        """Return the chat."""
        return str(settings["chat_id"])

    def request(self, outgoing: Outgoing) -> HttpRequest:
        """Return a text in Telegram's HTML with buttons, or with links where Telegram refuses buttons."""
        message, settings = outgoing.message, outgoing.channel.settings
        has_buttons = all(is_public(url) for _, url in outgoing.links)
        links = "" if has_buttons else "\n" + "\n".join(f"{name}: {url}" for name, url in outgoing.links)
        chat_id = str(settings["chat_id"])
        body: dict[str, Any] = {
            "chat_id": int(chat_id) if chat_id.lstrip("-").isdigit() else chat_id,
            "text": self._text(message, links),
            "parse_mode": "HTML",
            "link_preview_options": {"is_disabled": True},
            "disable_notification": message.state == ENDED,
        }
        if settings.get("message_thread_id"):
            body["message_thread_id"] = int(settings["message_thread_id"])
        if has_buttons:
            body["reply_markup"] = {"inline_keyboard": [[{"text": name, "url": url} for name, url in outgoing.links]]}
        return HttpRequest(f"{TELEGRAM}/bot{outgoing.channel.secrets['token']}/sendMessage", body_of(body))

    def refusal(self, answer: Answer) -> str | None:
        """Success says so in the body."""
        return None if answer.json.get("ok") is True else f"HTTP 200, but not ok: {answer.text[:500]}"

    def retry_after(self, answer: Answer) -> float | None:
        """Return the seconds of the body or of the header."""
        parameters = answer.json.get("parameters") or {}
        return seconds_of(parameters.get("retry_after")) or super().retry_after(answer)

    def outcome(self, answer: Answer) -> DeliveryOutcome:
        """A group that became a supergroup has another id: the sender stores it and repeats at once."""
        if migrated_to(answer) is not None:
            return DeliveryOutcome(DeliveryResult.AGAIN, "the group has a new id", details=answer)
        return super().outcome(answer)

    def _text(self, message: ChannelMessage, links: str) -> str:
        title = escaping.html(cut_characters(message.title, 500))
        head = f"<b>{title}</b>\n{escaping.html(message.place)}"
        tail = escaping.html(links)
        body = "\n".join(message.lines)
        escaped = escaping.html(body)
        while len(head) + len(tail) + len(escaped) + 1 > MAX_TELEGRAM_TEXT:
            excess = len(head) + len(tail) + len(escaped) + 1 - MAX_TELEGRAM_TEXT
            body = cut_characters(body, max(len(body) - max(excess // 5, 1), 1))
            escaped = escaping.html(body)
        return f"{head}\n{escaped}{tail}" if escaped else f"{head}{tail}"


def migrated_to(answer: Answer) -> str | None:
    """Return the new id of a chat that was moved."""
    parameters = answer.json.get("parameters")
    moved_to = parameters.get(MIGRATE) if isinstance(parameters, dict) else None
    return None if moved_to is None else str(moved_to)


def is_public(url: str) -> bool:
    """Whether Telegram accepts a URL for a button."""
    host = urlsplit(url).hostname or ""
    return "." in host and not host.replace(".", "").isdigit()
