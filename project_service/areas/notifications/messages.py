"""A message: the text about one or several events, before a kind of channel makes its own text of it.

The texts are those of the notifications reference, section 6. A message is stored as JSON in the log.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict, dataclass, field
from typing import Any

OPEN, ENDED, ACKNOWLEDGED, OTHER = "open", "resolved", "acknowledged", "other"
CONTROL = dict.fromkeys((*range(32), 127, 8232, 8233), " ")
KEPT = dict.fromkeys((*range(9), *range(11, 32), 127))
CUT = "…"


class IncompleteMessage(ValueError):
    """What is stored of a message lacks something without which it cannot be sent."""


@dataclass(frozen=True, slots=True)
class ChannelMessage:
    """What a channel or person is told. Times are ISO texts; ``items`` are at most ``MAX_ITEMS``."""

    headline: str  # without the tag: one line
    project: dict[str, Any]  # as web hooks have it
    url: str
    tag: str = ""  # such as CRITICAL
    kind: str = "message"
    lines: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    state: str = OPEN
    severity: str = "unknown"
    environment: str | None = None
    mail_subject: str = ""
    rule: dict[str, Any] | None = None
    counts: dict[str, int] = field(default_factory=lambda: {"triggered": 0, "resolved": 0, "other": 0})
    items: tuple[dict[str, Any], ...] = ()
    omitted: int = 0
    reference: str | None = None  # of the one alert, such as ``alert-12``: mails about it are one thread
    reason: str | None = None  # why a person is told
    alert_ids: tuple[int, ...] = ()  # that the message is about, if they are not found by its items
    at: str = ""

    @property
    def title(self) -> str:
        """The headline with its tag."""
        return f"[{self.tag}] {self.headline}" if self.tag else self.headline

    @property
    def short_title(self) -> str:
        """The title with the name of the project, for a phone."""
        name = self.project["name"]
        return self.title if name in self.headline else f"{self.title} — {name}"

    @property
    def place(self) -> str:
        """The project and the environment, on one line."""
        return " · ".join(part for part in (self.project["name"], self.environment) if part)

    @property
    def timestamp(self) -> dt.datetime:
        """When the first event happened."""
        return dt.datetime.fromisoformat(self.at)

    def as_json(self) -> dict[str, Any]:
        """Return what is stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> ChannelMessage:
        """Return the message that was stored.

        Raises:
            IncompleteMessage: something is missing.

        """
        try:
            lists = {name: tuple(stored.get(name, ())) for name in ("lines", "items", "alert_ids")}
            facts = tuple((name, value) for name, value in stored.get("facts", ()))
            message = cls(**stored | lists | {"facts": facts})
            dt.datetime.fromisoformat(message.at)
        except (TypeError, ValueError) as error:
            raise IncompleteMessage(str(error)) from error
        if not message.project.get("name"):
            raise IncompleteMessage("the project is missing")
        return message


def one_line(text: str) -> str:
    """Return a text without line breaks and control characters."""
    return " ".join(text.translate(CONTROL).split())


def plain(text: str) -> str:
    """Return a text without control characters; line breaks and tabs stay."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(KEPT)


def cut_characters(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of a text."""
    return text if len(text) <= limit else text[: limit - 1] + CUT


def cut_bytes(text: str, limit: int) -> str:
    """Return at most ``limit`` bytes of a text in UTF-8, and no part of a character."""
    encoded = text.encode()
    if len(encoded) <= limit:
        return text
    return encoded[: limit - len(CUT.encode())].decode("utf-8", errors="ignore") + CUT


def duration_words(length: dt.timedelta) -> str:
    """Return a duration in its two largest units: ``2 h 5 min``."""
    seconds = max(int(length.total_seconds()), 0)
    units = (("d", seconds // 86400), ("h", seconds // 3600 % 24), ("min", seconds // 60 % 60), ("s", seconds % 60))
    parts = [f"{number} {unit}" for unit, number in units if number]
    return " ".join(parts[:2]) or "0 s"
