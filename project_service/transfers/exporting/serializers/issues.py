"""Serialization of issues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Select, String, bindparam, cast, select

from project_service.domain.tracker import issues
from project_service.domain.tracker.issues import Issue, IssueAssignee, IssueLabel
from project_service.transfers.exporting.context import ExportContext
from project_service.transfers.exporting.serializers.events import events_of
from project_service.transfers.exporting.serializers.json_columns import EXTRA_INDEX, parse_each
from project_service.transfers.exporting.serializers.labels import label_events_of, label_links, select_label_events
from project_service.transfers.exporting.serializers.notes import notes_of
from project_service.transfers.exporting.templates import ISSUE, Line, filled
from project_service.transfers.importing.mapping.issues import issue_type_of


def _select_labels(_context: ExportContext) -> Select[int, str]:
    ids = IssueLabel.issue_id.in_(bindparam("ids", expanding=True))
    return select(IssueLabel.issue_id, IssueLabel.title).where(ids).order_by(IssueLabel.title)


def _select_assignees(_context: ExportContext) -> Select[int, int]:
    ids = IssueAssignee.issue_id.in_(bindparam("ids", expanding=True))
    return select(IssueAssignee.issue_id, IssueAssignee.user_id).where(ids).order_by(IssueAssignee.user_id)


def _grouped(rows: Sequence[Any]) -> dict[int, list[Any]]:
    """The values of the second column by the first."""
    groups: dict[int, list[Any]] = {}
    for key, value in rows:
        groups.setdefault(key, []).append(value)
    return groups


def serialize_issues(context: ExportContext) -> Iterator[Line]:
    """Generate the issues with their notes, events, label links and assignees."""
    for after, until in context.iid_ranges(Issue, Issue.description, Issue.extra):
        rows = context.rows(_select_issues, after=after, until=until)
        ids = [row.id for row in rows]
        notes = notes_of(context, issues.TARGET, ids)
        events = events_of(context, [issues.TARGET], ids)
        titles = _grouped(context.rows(_select_labels, ids=ids))
        users = _grouped(context.rows(_select_assignees, ids=ids))
        changes = label_events_of(context, context.rows(select_label_events, ids=ids))
        yield from _lines(context, rows, notes, events, titles, users, changes)


def _select_issues(context: ExportContext) -> Select[*tuple[Any, ...]]:
    return (
        select(
            Issue.iid,
            Issue.id,
            Issue.title,
            Issue.description,
            Issue.state,
            Issue.issue_type,
            Issue.severity,
            Issue.confidential,
            Issue.discussion_locked,
            cast(Issue.due_date, String),
            Issue.weight,
            Issue.author_id,
            context.iso(Issue.closed_at),
            Issue.closed_by_id,
            Issue.milestone_id,
            context.json_text(Issue.extra),
            context.iso(Issue.created_at),
            context.iso_of_change(Issue),
        )
        .where(Issue.project_id == context.project.id, Issue.iid > bindparam("after"), Issue.iid <= bindparam("until"))
        .order_by(Issue.iid)
    )


def _lines(
    context: ExportContext,
    rows: Sequence[Any],
    notes: Mapping[int, list[Line]],
    events: dict[int, list[Line]],
    titles: dict[int, list[Any]],
    users: dict[int, list[Any]],
    label_events: dict[int, list[Line]],
) -> Iterator[Line]:
    extras = parse_each(row[EXTRA_INDEX] for row in rows)
    for extra, (
        iid,
        number,
        title,
        description,
        state,
        issue_type,
        severity,
        confidential,
        locked,
        due_date,
        weight,
        author_id,
        closed_at,
        closed_by_id,
        milestone_id,
        _,
        created_at,
        updated_at,
    ) in zip(extras, rows, strict=True):
        line = filled(ISSUE, extra)
        line["id"] = number
        line["title"] = title
        line["author_id"] = author_id
        line["project_id"] = context.project.id
        line["created_at"] = created_at
        line["updated_at"] = updated_at or created_at
        line["description"] = description
        line["iid"] = iid
        line["confidential"] = bool(confidential)
        line["discussion_locked"] = None if locked is None else bool(locked)
        line["closed_at"] = closed_at
        line["closed_by_id"] = closed_by_id
        # a value that no column holds is kept until the column changes
        if issue_type != issues.ISSUE or line["issue_type"] is None:
            line["issue_type"] = issue_type
        imported = {"work_item_type": line.get("work_item_type")}
        if imported["work_item_type"] and issue_type_of(imported) != issue_type:
            line["work_item_type"] = {"base_type": issue_type}
        if weight is not None:
            line["weight"] = weight
        if due_date is not None:
            line["due_date"] = due_date
        if severity != issues.UNKNOWN:
            line["severity"] = severity
        line["state"] = state
        line["events"] = events.get(number, [])
        line["notes"] = notes[number]
        line["label_links"] = label_links(context, line["label_links"], titles.get(number, []), line)
        # archives that were imported before they had a table are in ``extra``
        line["resource_label_events"] = [*(line["resource_label_events"] or ()), *label_events.get(number, ())]
        line["issue_assignees"] = [{"user_id": user_id} for user_id in users.get(number, ())]
        if milestone_id in context.milestones:
            line["milestone"] = context.milestones[milestone_id]
        yield line
