"""Mapping of labels, and of the links from issues and merge requests to them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from project_service.domain.tracker import label_events, labels
from project_service.domain.tracker.issue_rules import MAX_LABELS
from project_service.domain.tracker.label_events import LabelEvent
from project_service.domain.tracker.labels import Label, LabelPriority
from project_service.kit.db.base import Base
from project_service.kit.http.fields import LARGEST_INTEGER
from project_service.transfers.archive import layout
from project_service.transfers.importing.mapping.context import MAPPED_BY_ALL, ImportContext, MappedKeys
from project_service.transfers.importing.mapping.tables import ImportedLabel
from project_service.transfers.importing.mapping.values import name_of, objects_in, title_of
from project_service.transfers.importing.refusals import RowRefused

LABEL_KEYS = MappedKeys(MAPPED_BY_ALL | {"title", "color", "description"}, frozenset(layout.LABEL))


def map_label(context: ImportContext, row: dict[str, Any]) -> None:
    """Add a label, unless the project or a group above has one of this title."""
    title = title_of(row)
    if title in context.state.labels:
        return
    number = context.state.labels[title] = next(context.ids[Label])
    extra = context.extra_of(row, LABEL_KEYS)
    color = name_of(row.get("color"), "Color") or labels.DEFAULT_COLOR
    created_at, updated_at = context.timestamps_of(row)
    context.batch.add(
        Label,
        ImportedLabel(
            id=number,
            project_id=context.project_id,
            title=title,
            color=color,
            description=context.text_of(row.get("description"), "Description"),
            extra=extra,
            created_at=created_at,
            updated_at=updated_at,
        ),
    )
    priority = _priority_of(row.get("priorities"))
    if priority is not None:
        context.batch.add(LabelPriority, (context.project_id, number, priority))


def map_label_links(context: ImportContext, row: dict[str, Any], model: type[Base], number: int) -> None:
    """Add the labels of an issue or merge request to the join table ``model``, at most as many as the API accepts."""
    links = list(objects_in(row.get("label_links")))
    titles: dict[str, None] = {}
    for link in links:
        if len(titles) == MAX_LABELS:
            context.cuts.append(f"Labels are too many (maximum is {MAX_LABELS}) and were cut")
            break
        if (title := _map_linked_label(context, link)) is not None:
            titles[title] = None
    for title in titles:
        context.batch.add(model, (number, title))


def map_label_events(context: ImportContext, rows: Any, issue_id: int) -> None:
    """Add the label events of an issue; those of another action are left out, invalid labels are no label."""
    for row in objects_in(rows):
        title = None
        with suppress(RowRefused):
            title = _map_linked_label(context, row)
        if row.get("action") not in label_events.ACTIONS:
            continue
        created_at, _ = context.timestamps_of(row)
        author_id = context.users.find(row.get("user_id"))
        context.batch.add(LabelEvent, (issue_id, author_id, title, row["action"], created_at))


def _map_linked_label(context: ImportContext, link: dict[str, Any]) -> str | None:
    label = link.get("label")
    if not isinstance(label, dict):
        return None
    map_label(context, label)
    return title_of(label)


def map_mentioned_labels(context: ImportContext, rows: Any) -> None:
    """Add the labels that rows without a table refer to, except invalid ones."""
    for row in objects_in(rows):
        with suppress(RowRefused):
            _map_linked_label(context, row)


def _priority_of(rows: Any) -> int | None:
    """The first priority of a label, which belongs to the exported project."""
    number = next((row.get("priority") for row in objects_in(rows)), None)
    is_number = isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= LARGEST_INTEGER
    return number if is_number else None
