"""Serialization of labels, and of the links from issues to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Select, and_, bindparam, func, or_, select

from project_service.domain.namespaces import Namespace, groups_above
from project_service.domain.tracker import issues
from project_service.domain.tracker.issues import Issue, IssueLabel
from project_service.domain.tracker.label_events import LabelEvent
from project_service.domain.tracker.labels import (
    DEFAULT_COLOR,
    LONGEST_TITLE,
    Label,
    LabelPriority,
    text_color,
)
from project_service.transfers.exporting.context import ExportContext
from project_service.transfers.exporting.templates import LABEL, Line, filled


def serialize_labels(context: ExportContext) -> Iterator[Line]:
    """Generate all labels."""
    yield from label_lines(context)
    for line in context.undescribed_labels:
        yield line | {"textColor": text_color(DEFAULT_COLOR)}


def label_lines(context: ExportContext) -> Iterator[Line]:
    """Generate the labels that have a row; with ``textColor``, which nested labels do not have."""
    columns = (Label.id, Label.title, Label.color, Label.description, Label.extra, LabelPriority.priority)
    statement = select(*columns, context.iso(Label.created_at), context.iso(Label.updated_at))
    statement = statement.outerjoin(LabelPriority, LabelPriority.label_id == Label.id)
    statement = statement.where(Label.project_id == context.project.id)
    at_once = context.rows_at_once(Label, Label.color, Label.description, Label.extra)
    for rows in context.portions(statement, Label.id, at_once):
        for number, title, color, description, extra, priority, created_at, updated_at in rows:
            yield (
                {"textColor": text_color(color)}
                | filled(LABEL, extra)
                | {
                    "id": number,
                    "title": title,
                    "color": color,
                    "project_id": context.project.id,
                    "created_at": created_at,
                    "updated_at": updated_at,
                    "template": bool((extra or {}).get("template")),
                    "description": description,
                    "type": "ProjectLabel",
                    "priorities": _priorities((extra or {}).get("priorities"), priority, created_at),
                }
            )


def group_label_lines(context: ExportContext) -> Iterator[Line]:
    """Generate the labels of groups above that issues have or had; farther ones first: the nearest comes last."""
    columns = (Label.id, Label.group_id, Label.title, Label.color, Label.description, LabelPriority.priority)
    above = groups_above(context.project.namespace_id)
    of_project = and_(LabelPriority.label_id == Label.id, LabelPriority.project_id == context.project.id)
    of_issues = Issue.project_id == context.project.id
    used = select(IssueLabel.title).join(Issue, Issue.id == IssueLabel.issue_id).where(of_issues)
    changed = select(LabelEvent.title).join(Issue, Issue.id == LabelEvent.issue_id).where(of_issues)
    statement = (
        select(*columns, context.iso(Label.created_at), context.iso(Label.updated_at))
        .join(Namespace, Namespace.id == Label.group_id)
        .outerjoin(LabelPriority, of_project)
        .where(Label.group_id.in_(above), or_(Label.title.in_(used), Label.title.in_(changed)))
        .order_by(func.length(Namespace.full_path))
    )
    for number, group_id, title, color, description, priority, created_at, updated_at in context.execute(statement):
        yield LABEL | {
            "id": number,
            "title": title,
            "color": color,
            "project_id": None,
            "created_at": created_at,
            "updated_at": updated_at,
            "template": False,
            "description": description,
            "group_id": group_id,
            "type": "GroupLabel",
            "priorities": _priorities(None, priority, created_at),
        }


def _priorities(imported: Any, priority: int | None, created_at: str) -> list[Line]:
    """The priority of a label in the project as archives have it, with what an archive said of the same."""
    first = imported[0] if isinstance(imported, list) and imported else None
    if isinstance(first, dict) and first.get("priority") == priority:
        return list(imported)
    return [] if priority is None else [{"priority": priority, "created_at": created_at, "updated_at": created_at}]


def undescribed_labels(context: ExportContext) -> Iterator[Line]:
    """Generate labels for the titles on issues that have no row; importers create a label for each."""
    above = groups_above(context.project.namespace_id)
    described = select(Label.title).where(or_(Label.project_id == context.project.id, Label.group_id.in_(above)))
    statement = (
        select(IssueLabel.title, context.iso(func.min(Issue.created_at)))
        .join(Issue, Issue.id == IssueLabel.issue_id)
        .where(
            Issue.project_id == context.project.id,
            IssueLabel.title.not_in(described),
            func.length(IssueLabel.title) <= LONGEST_TITLE,  # importers refuse issues with longer ones
        )
        .group_by(IssueLabel.title)
        .order_by(IssueLabel.title)
    )
    for title, created_at in context.execute(statement):
        yield LABEL | {
            "title": title,
            "color": DEFAULT_COLOR,
            "project_id": context.project.id,
            "created_at": created_at,
            "updated_at": created_at,
            "template": False,
            "type": "ProjectLabel",
            "priorities": [],
        }


def label_links(context: ExportContext, imported: Any, titles: Sequence[str], issue: Line) -> list[Line]:
    """Return the label links of an issue: as they were imported, as far as the issue still has the label, or new."""
    labels: dict[str, Line] = {}
    for link in imported if isinstance(imported, list) else ():
        if isinstance(link, dict) and isinstance(link.get("label"), dict):
            labels.setdefault(str(link["label"].get("title")), link)
    links = []
    for title in filter(context.labels.__contains__, titles):
        link = labels.get(title) or {
            "target_type": issues.TARGET,
            "created_at": issue["updated_at"],
            "updated_at": issue["updated_at"],
        }
        links.append(link | {"label": context.labels[title]})
    return links


def select_label_events(context: ExportContext) -> Select[Any]:
    """The statement for the label events of issues, as ``label_events_of`` takes its rows."""
    columns = LabelEvent.issue_id, LabelEvent.id, LabelEvent.author_id, LabelEvent.title, LabelEvent.action
    statement = select(*columns, context.iso(LabelEvent.created_at)).order_by(LabelEvent.id)
    return statement.where(LabelEvent.issue_id.in_(bindparam("ids", expanding=True)))


def label_events_of(context: ExportContext, rows: Iterable[Any]) -> dict[int, list[Line]]:
    """Return the label events of issues by the ids of these; a label that is deleted is null."""
    events: dict[int, list[Line]] = {}
    for issue_id, number, user_id, title, action, created_at in rows:
        line = {
            "id": number,
            "action": action,
            "user_id": user_id,
            "created_at": created_at,
            "label": context.labels.get(title),
        }
        events.setdefault(issue_id, []).append(line)
    return events
