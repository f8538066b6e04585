"""Mapping of issues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from project_service.domain.events.models import Kind, Restriction
from project_service.domain.tracker import issues
from project_service.domain.tracker.issues import Issue, IssueAssignee, IssueLabel
from project_service.transfers.archive import layout
from project_service.transfers.archive.parsing import MAX_DEPTH
from project_service.transfers.importing.mapping.archived_rows import attribute_notes
from project_service.transfers.importing.mapping.context import (
    MAPPED_BY_ALL,
    ImportContext,
    MappedKeys,
    VisibilityRule,
)
from project_service.transfers.importing.mapping.designs import map_designs
from project_service.transfers.importing.mapping.events import map_events
from project_service.transfers.importing.mapping.labels import map_label_events, map_label_links
from project_service.transfers.importing.mapping.milestones import map_milestone
from project_service.transfers.importing.mapping.notes import map_notes
from project_service.transfers.importing.mapping.tables import ImportedIssue
from project_service.transfers.importing.mapping.values import (
    day_of,
    is_number,
    is_set,
    moment_of,
    objects_in,
    title_of,
)

ISSUE_KEYS = MappedKeys(
    MAPPED_BY_ALL
    | {
        "title",
        "description",
        "iid",
        "state",
        "state_id",
        "issue_type",
        "severity",
        "confidential",
        "discussion_locked",
        "due_date",
        "weight",
        "author_id",
        "assignee_id",
        "closed_at",
        "closed_by_id",
        "milestone",
        "events",
        "notes",
        "issue_assignees",
        "resource_label_events",
    },
    frozenset(layout.ISSUE + layout.ISSUE_NESTED),
)
# the values that columns hold; a column has its default for other values, which ``extra`` holds
ISSUE_HOLDS: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ("issue_type", (issues.ISSUE, issues.INCIDENT).__contains__),
    ("severity", issues.SEVERITIES.__contains__),
    ("weight", is_number),
    ("due_date", lambda value: not value or day_of(value) is not None),
)


def map_issue(context: ImportContext, row: dict[str, Any]) -> None:
    """Add an issue with its notes, events, label links, assignees and designs."""
    title, iid = title_of(row), context.reserve_iid(row)
    number = next(context.ids[Issue])
    confidential = is_set(row.get("confidential"))
    visibility = VisibilityRule(Kind.ISSUE, Restriction.CONFIDENTIAL if confidential else Restriction.NONE, number)
    milestone_id = map_milestone(context, row.get("milestone"))
    map_label_links(context, row, IssueLabel, number)
    map_label_events(context, row.get("resource_label_events"), number)
    _map_assignees(context, row, number)
    map_events(context, row.get("events"), issues.TARGET, number, visibility)
    counted = map_notes(context, row.get("notes"), issues.TARGET, number, visibility)
    if row.get("designs"):
        map_designs(context, row["designs"], number, visibility)
        attribute_notes(context, objects_in(row["designs"]), MAX_DEPTH)  # they are stored with the issue as well
    closed = row.get("state") == issues.CLOSED
    weight = row.get("weight")
    extra = context.extra_of(row, ISSUE_KEYS)
    unfit = [name for name, holds in ISSUE_HOLDS if (said := row.get(name)) is not None and not holds(said)]
    if unfit:
        extra = (extra or {}) | {name: context.users.map_references(row[name]) for name in unfit}
    created_at, updated_at = context.timestamps_of(row)
    context.batch.add(
        Issue,
        ImportedIssue(
            id=number,
            project_id=context.project_id,
            iid=iid,
            title=title,
            description=context.text_of(row.get("description"), "Description"),
            state=issues.CLOSED if closed else issues.OPENED,
            issue_type=issue_type_of(row),
            severity=row["severity"] if row.get("severity") in issues.SEVERITIES else issues.UNKNOWN,
            confidential=confidential,
            discussion_locked=row["discussion_locked"] if isinstance(row.get("discussion_locked"), bool) else None,
            due_date=day_of(row.get("due_date")),
            weight=weight if is_number(weight) else None,
            notes_count=counted,
            author_id=context.users.author(row.get("author_id")),
            closed_at=moment_of(row.get("closed_at")),
            closed_by_id=context.users.find(row.get("closed_by_id")),
            milestone_id=milestone_id,
            extra=extra,
            created_at=created_at,
            updated_at=updated_at,
        ),
    )


def _map_assignees(context: ImportContext, row: dict[str, Any], issue_id: int) -> None:
    named = [link.get("user_id") for link in objects_in(row.get("issue_assignees"))] or [row.get("assignee_id")]
    user_ids = [context.users.author(old) for old in named if old is not None]
    for user_id in dict.fromkeys(user_ids):
        context.batch.add(IssueAssignee, (issue_id, user_id))


def issue_type_of(row: dict[str, Any]) -> str:
    """Whether an issue is an incident; since release 16 its type is a separate field."""
    said, beside = row.get("issue_type"), row.get("work_item_type")
    if said is None and isinstance(beside, dict):
        said = beside.get("base_type")
    return issues.INCIDENT if said == issues.INCIDENT else issues.ISSUE
