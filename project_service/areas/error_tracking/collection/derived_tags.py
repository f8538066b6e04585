"""Tags that an event has without being sent with them: browser, operating system, runtime and device.

SDKs name them in contexts. Those of browsers send only the header ``User-Agent``. A library that knows all of them
takes 28 MB in each web process; the families of the tables below are what people filter by.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from project_service.areas.error_tracking.collection.scrubbing import MAX_KEY_LENGTH, as_text

MAX_AGENT_LENGTH = 512
CONTEXTS = {"browser": "name", "os": "name", "runtime": "name", "device": "model"}
# the first that matches: others claim to be Chrome or Safari too
BROWSERS = (
    ("Edge", re.compile(r"\bEdg(?:e|A|iOS)?/([0-9]{1,5})")),
    ("Opera", re.compile(r"\bOPR/([0-9]{1,5})")),
    ("Samsung Internet", re.compile(r"\bSamsungBrowser/([0-9]{1,5})")),
    ("Firefox", re.compile(r"\b(?:Firefox|FxiOS)/([0-9]{1,5})")),
    ("Chrome", re.compile(r"(?:Headless|\b)(?:Chrome|CriOS)/([0-9]{1,5})")),
    ("Safari", re.compile(r"\bVersion/([0-9]{1,5})[0-9.]{0,20} (?:Mobile/[0-9A-Za-z]{1,20} )?Safari/")),
)
SYSTEMS = (
    ("Windows", re.compile(r"\bWindows NT ([0-9]{1,3})")),
    ("iOS", re.compile(r"\b(?:iPhone|iPad|iPod)[^)]{0,100}? OS ([0-9]{1,3})")),
    ("Android", re.compile(r"\bAndroid ([0-9]{1,3})")),
    ("Chrome OS", re.compile(r"\bCrOS\b()")),
    ("macOS", re.compile(r"\bMac OS X\b()")),
    ("Linux", re.compile(r"\bLinux\b()")),
)


def derived_tags(contexts: Mapping[str, Any], request: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Return these tags as pairs of key and value, of scrubbed contexts and a scrubbed request."""
    tags = {key: text for key, name in CONTEXTS.items() if (text := _of_context(contexts.get(key), name))}
    agent = _user_agent(request or {})
    if agent:
        for key, families in (("browser", BROWSERS), ("os", SYSTEMS)):
            if key not in tags and (text := _first(families, agent)):
                tags[key] = text
    return [{"key": key, "value": value} for key, value in tags.items()]


def _of_context(context: Any, name: str) -> str | None:
    if not isinstance(context, dict):
        return None
    parts = (as_text(context.get(name)), as_text(context.get("version")))
    return " ".join(part for part in parts if part)[:MAX_KEY_LENGTH] if parts[0] else None


def _user_agent(request: Mapping[str, Any]) -> str:
    headers = request.get("headers")
    pairs = headers.items() if isinstance(headers, dict) else headers if isinstance(headers, list) else ()
    for pair in pairs:
        if len(pair) == 2 and str(pair[0]).lower() == "user-agent" and isinstance(pair[1], str):
            return pair[1][:MAX_AGENT_LENGTH]
    return ""


def _first(families: tuple[tuple[str, re.Pattern[str]], ...], agent: str) -> str | None:
    for name, pattern in families:
        if match := pattern.search(agent):
            return f"{name} {match[1]}".strip()
    return None
