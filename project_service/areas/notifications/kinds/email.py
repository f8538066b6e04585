"""Channels of the type e-mail, and mails to people: plain text through the SMTP server of the instance."""

from __future__ import annotations

import time
from typing import Any

from project_service.areas.notifications.kinds.base import MASK, Answer, ChannelKind, HttpRequest, Outgoing
from project_service.areas.notifications.messages import ENDED, OPEN, ChannelMessage
from project_service.kit import mail
from project_service.kit.deliveries import DeliveryOutcome, DeliveryResult
from project_service.kit.http import urls
from project_service.kit.mail import OutgoingMail
from project_service.kit.security.outgoing_http.rules import Policy


class Email(ChannelKind):
    """An address, which has to be confirmed unless it is that of a member."""

    type = "email"
    title = "E-mail"
    fields = ("address",)
    secrets = ()
    required = ("address",)

    def problems(self, settings: dict[str, Any], secrets: dict[str, Any], policy: Policy) -> dict[str, list[str]]:
        """Check the address, and that mail can be sent at all."""
        if not mail.is_on():
            return {"type": ["is not available: no mail server is configured"]}
        address = settings.get("address") or ""
        is_address = mail.ADDRESS.fullmatch(address) is not None and len(address) <= 255
        return {} if is_address else {"address": ["is invalid"]}

    def target(self, settings: dict[str, Any], secrets: dict[str, Any]) -> str:
        """Return the address with most of its name masked."""
        name, _, domain = settings["address"].rpartition("@")
        return f"{name[:1]}{MASK}@{domain}"

    def request(self, outgoing: Outgoing) -> HttpRequest:
        """Mails are no requests."""
        raise NotImplementedError

    def send(self, outgoing: Outgoing) -> Answer:
        """Send the mail through a connection of its own."""
        started = time.monotonic()
        outcome = mail.send_now(mail_of(outgoing))
        is_final = outcome.result is DeliveryResult.FINAL
        delivered = outcome.result is DeliveryResult.DELIVERED
        seconds = round(time.monotonic() - started, 3)
        return Answer(250 if delivered else None, error=outcome.error, is_final=is_final, duration_seconds=seconds)

    def outcome(self, answer: Answer) -> DeliveryOutcome:
        """The server has accepted it, defers it or refuses it."""
        if answer.status == 250:
            return DeliveryOutcome(DeliveryResult.DELIVERED, details=answer)
        result = DeliveryResult.FINAL if answer.is_final else DeliveryResult.AGAIN
        return DeliveryOutcome(result, answer.error, details=answer)


def mail_of(outgoing: Outgoing) -> OutgoingMail:
    """Return the mail of a message, with headers by which clients and filters recognise it."""
    message, host = outgoing.message, urls.host().partition(":")[0]
    headers = {
        "Message-ID": f"<{outgoing.key}@{host}>",
        "Auto-Submitted": "auto-generated",
        "X-GitLab-NotificationReason": message.reason or f"channel {outgoing.channel.name}",
    }
    if outgoing.unsubscribe_url is not None:
        headers["List-Unsubscribe"] = f"<{outgoing.unsubscribe_url}>"
        headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    if message.reference is not None:
        headers["References"] = f"<{message.reference}@{host}>"
    if path := message.project.get("path_with_namespace"):
        headers["List-Id"] = f"{path} <{path.replace('/', '.')}.{host}>"
    return OutgoingMail(outgoing.channel.settings["address"], message.mail_subject, text_of(message, outgoing), headers)


def text_of(message: ChannelMessage, outgoing: Outgoing) -> str:
    """Return the text of a mail; that about one alert begins with a sentence that mail filters know."""
    word = {OPEN: "triggered", ENDED: "resolved"}.get(message.state)
    if word is not None and message.kind == "message" and (message.reference or "").startswith("alert-"):
        lines = _lines_of_alert(message, word)
    else:
        lines = [message.title, message.place, ""]
        lines += [*message.lines, ""] if message.lines else []
        lines += [f"{name}: {value}" for name, value in message.facts]
        lines += ["", f"Open: {message.url}"]
    if outgoing.acknowledge_url is not None:
        lines += ["", f"Acknowledge: {outgoing.acknowledge_url}"]
    if outgoing.resolve_url is not None:
        lines += ["", f"Resolve: {outgoing.resolve_url}"]
    if outgoing.stop_url is not None:
        lines += ["", "-- ", f"Stop these e-mails: {outgoing.stop_url}"]
    if message.reason is not None:
        lines += ["", "-- ", f"You receive this because of {message.reason}."]
    return "\n".join(lines) + "\n"


def _lines_of_alert(message: ChannelMessage, word: str) -> list[str]:
    """Return the lines of the mail about an alert (alert management reference, section 8)."""
    path = message.project["path_with_namespace"]
    lines = [f"An alert has been {word} in {path}.", "", f"View alert details at {message.url}"]
    lines += ["", f"Description: {message.lines[0]}"] if message.lines else []
    for name, value in (*message.facts, ("Severity", message.severity)):
        lines += ["", f"{name}: {value}"]
    return lines
