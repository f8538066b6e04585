"""What a page of label events shows beside them."""

from __future__ import annotations

from typing import Any

from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.labels import labels_by_title


def add_labels(issue: Issue, events: list[Any]) -> None:
    """Set ``label`` of events of an issue: the label that their title means in its project, or ``None``."""
    titles = {event.title for event in events if event.title is not None}
    labels = labels_by_title([issue.project], titles)
    for event in events:
        event.label = labels.get((issue.project_id, event.title))
