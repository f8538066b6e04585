"""The latest label events on the page of an issue."""

from __future__ import annotations

from typing import Any

from project_service.access.page_parts import panels
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.label_events import LabelEvent, events_of
from project_service.kit.db.session import db

MAX_SHOWN = 20


def fill_label_events(issue: Issue) -> dict[str, Any]:
    """The latest changes of labels, newest first, and whether there are more."""
    newest_first = events_of(issue).order_by(None).order_by(LabelEvent.id.desc())
    events = list(db.session.scalars(newest_first.limit(MAX_SHOWN + 1)))
    return {"events": events[:MAX_SHOWN], "more": len(events) > MAX_SHOWN}


panels.add(panels.Panel("issue", 90, "issues/label_events.html", fill_label_events))
