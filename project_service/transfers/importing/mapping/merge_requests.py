"""Mapping of merge requests."""

from __future__ import annotations

from typing import Any

from project_service.domain.events.models import Kind
from project_service.domain.tracker import merge_requests
from project_service.domain.tracker.merge_requests import MergeRequest, MergeRequestLabel
from project_service.transfers.archive import layout
from project_service.transfers.importing.mapping.context import (
    MAPPED_BY_ALL,
    ImportContext,
    MappedKeys,
    VisibilityRule,
)
from project_service.transfers.importing.mapping.events import map_events
from project_service.transfers.importing.mapping.labels import map_label_links, map_mentioned_labels
from project_service.transfers.importing.mapping.milestones import map_milestone
from project_service.transfers.importing.mapping.notes import map_notes
from project_service.transfers.importing.mapping.tables import ImportedMergeRequest
from project_service.transfers.importing.mapping.values import name_of, title_of
from project_service.transfers.importing.refusals import invalid

MERGE_REQUEST_KEYS = MappedKeys(
    MAPPED_BY_ALL
    | {
        "title",
        "description",
        "iid",
        "state",
        "state_id",
        "source_branch",
        "target_branch",
        "source_project_id",
        "target_project_id",
        "author_id",
        "milestone",
        "events",
        "notes",
    },
    frozenset(layout.MERGE_REQUEST + layout.MERGE_REQUEST_NESTED),
    layout.FREE_FORM_COLUMNS["merge_requests"],
)


def map_merge_request(context: ImportContext, row: dict[str, Any]) -> None:
    """Add a merge request with its notes, events and label links."""
    title, iid = title_of(row), context.reserve_iid(row)
    for name in ("source_branch", "target_branch"):
        if not row.get(name) or not isinstance(row[name], str):
            raise invalid(f"{name.replace('_', ' ').capitalize()} can't be blank")
        name_of(row[name], name.replace("_", " ").capitalize())
    number = next(context.ids[MergeRequest])
    visibility = VisibilityRule(Kind.MERGE_REQUEST)
    milestone_id = map_milestone(context, row.get("milestone"))
    map_label_links(context, row, MergeRequestLabel, number)
    map_mentioned_labels(context, row.get("resource_label_events"))
    map_events(context, row.get("events"), merge_requests.TARGET, number, visibility)
    map_notes(context, row.get("notes"), merge_requests.TARGET, number, visibility)
    extra = context.extra_of(row, MERGE_REQUEST_KEYS) or {}
    extra.pop("merge_when_pipeline_succeeds", None)
    for name in layout.USER_RELATIONS & extra.keys():
        extra[name] = _each_once(extra[name])
    from_fork = row.get("source_project_id") != row.get("target_project_id")
    if from_fork and not row.get("diff_head_sha"):
        extra["source_project_id"] = None
    state = row.get("state")
    created_at, updated_at = context.timestamps_of(row)
    context.batch.add(
        MergeRequest,
        ImportedMergeRequest(
            id=number,
            project_id=context.project_id,
            iid=iid,
            title=title,
            description=context.text_of(row.get("description"), "Description"),
            state=state if state in ("opened", "closed", "merged", "locked") else "opened",
            source_branch=row["source_branch"],
            target_branch=row["target_branch"],
            author_id=context.users.author(row.get("author_id")),
            milestone_id=milestone_id,
            extra=extra or None,
            created_at=created_at,
            updated_at=updated_at,
        ),
    )


def _each_once(rows: Any) -> Any:
    """Remove rows that refer to the same user as an earlier one."""
    if not isinstance(rows, list):
        return rows
    once: dict[Any, Any] = {}
    for index, row in enumerate(rows):
        person = row.get("user_id") if isinstance(row, dict) else None
        once.setdefault((index,) if person is None else person, row)
    return list(once.values())
