"""Escaping of texts that anybody may have written, for each kind of channel (notifications reference, section 6).

Afterwards a text mentions nobody and links nowhere.
"""

from __future__ import annotations

import re

ZERO_WIDTH_SPACE = "\u200b"
SLACK_MARKS = re.compile(r"[*_~`@]")
DISCORD_MARKS = re.compile(r"[\\*_~`>|\[\]()#]")
TEAMS_MARKS = re.compile(r"[\\*_\[\]()]|^[#-]", re.MULTILINE)


def html(text: str) -> str:
    """Escape for Telegram's HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def slack(text: str) -> str:
    """Escape for Slack's mrkdwn; nobody is mentioned."""
    return SLACK_MARKS.sub(lambda mark: mark[0] + ZERO_WIDTH_SPACE, html(text))


def discord(text: str) -> str:
    """Escape for Discord's Markdown; mentions are switched off in the message."""
    return DISCORD_MARKS.sub(lambda mark: f"\\{mark[0]}", text)


def teams(text: str) -> str:
    """Escape for the Markdown of Adaptive Cards."""
    return TEAMS_MARKS.sub(lambda mark: f"\\{mark[0]}", text).replace("<at>", "&lt;at&gt;")
