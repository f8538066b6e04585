"""An event as Markdown. What it says is written as code, where Markdown has no effect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from project_service.areas.error_tracking.effects import issues
from project_service.areas.error_tracking.errors.views import ErrorView
from project_service.areas.error_tracking.events import event_views
from project_service.areas.error_tracking.events.event_views import EventView
from project_service.kit import clock

MAX_FRAMES = 50
MAX_BREADCRUMBS = 20


def markdown_of(error: ErrorView, event: EventView) -> str:
    """Return an event of an error as Markdown: facts, stack traces, breadcrumbs, tags, request, user and contexts."""
    facts = {
        "Error": error.web_url,
        "Event": event.id,
        "Time": clock.isoformat(event.occurred_at) if event.occurred_at else None,
        **{name.replace("_", " ").capitalize(): issues.code(text) for name, text in event.facts.items() if text},
    }
    lines = [f"# {issues.code(error.title)}", "", *(f"* {name}: {text}" for name, text in facts.items() if text)]
    if event.message and event.message != error.title:
        lines += _block("Message", event.message)
    for exception in reversed(event.exceptions):
        lines += _exception(exception)
    crumbs = list(event.breadcrumbs)[-MAX_BREADCRUMBS:]
    lines += _block("Breadcrumbs", "\n".join(_crumb(crumb, event) for crumb in crumbs)) if crumbs else []
    lines += _block("Tags", "\n".join(f"{tag['key']}: {tag['value']}" for tag in event.tags)) if event.tags else []
    for title, value in (("Request", event.request), ("User", event.user), ("Contexts", event.contexts)):
        lines += _block(title, json.dumps(value, indent=2, ensure_ascii=False)) if value else []
    return "\n".join([*lines, ""])


def _exception(exception: dict[str, Any]) -> Iterator[str]:
    names = [part for part in (exception["type"], exception["value"]) if part]
    frames = list(reversed(exception["frames"]))[:MAX_FRAMES]
    text = "\n".join([": ".join(names), *issues.frame_lines(frames)] if names else issues.frame_lines(frames))
    yield from _block("Stack trace, innermost frame first" if frames else "Exception", text) if text else ()


def _crumb(crumb: dict[str, Any], event: EventView) -> str:
    offset = event_views.offset_of(crumb.get("timestamp"), event.occurred_at)
    parts = (crumb.get("level"), crumb.get("category") or crumb.get("type"), crumb.get("message"))
    data = json.dumps(crumb["data"], ensure_ascii=False) if crumb.get("data") else None
    return " ".join(issues.one_line(str(part)) for part in (f"[{offset}]", *parts, data) if part)


def _block(title: str, text: str) -> list[str]:
    fence = issues.fence(text)
    return ["", f"## {title}", "", fence, text, fence]
