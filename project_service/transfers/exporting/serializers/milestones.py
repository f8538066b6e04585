"""Serialization of milestones."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import String, cast, or_, select

from project_service.domain.tracker import milestones
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.milestones import Milestone
from project_service.transfers.exporting.context import ExportContext
from project_service.transfers.exporting.serializers.events import events_of
from project_service.transfers.exporting.templates import MILESTONE, Line, filled


def group_milestone_lines(context: ExportContext) -> Iterator[Line]:
    """Generate the milestones of groups above that issues and merge requests have."""
    columns = (Milestone.id, Milestone.group_id, Milestone.iid, Milestone.title, Milestone.description, Milestone.state)
    dates = cast(Milestone.start_date, String), cast(Milestone.due_date, String)
    times = context.iso(Milestone.created_at), context.iso(Milestone.updated_at)
    used = (select(model.milestone_id).where(model.project_id == context.project.id) for model in (Issue, MergeRequest))
    of_groups = Milestone.group_id.is_not(None), or_(*(Milestone.id.in_(ids) for ids in used))
    for row in context.execute(select(*columns, *dates, *times).where(*of_groups).order_by(Milestone.id)):
        number, group_id, iid, title, description, state, start_date, due_date, created_at, updated_at = row
        yield MILESTONE | {
            "id": number,
            "title": title,
            "project_id": None,
            "group_id": group_id,
            "description": description,
            "due_date": due_date,
            "created_at": created_at,
            "updated_at": updated_at,
            "state": state,
            "iid": iid,
            "start_date": start_date,
            "events": [],
        }


def serialize_milestones(context: ExportContext) -> Iterator[Line]:
    """Generate the milestones with their events."""
    statement = select(
        Milestone.iid,
        Milestone.id,
        Milestone.title,
        Milestone.description,
        Milestone.state,
        cast(Milestone.start_date, String),
        cast(Milestone.due_date, String),
        Milestone.extra,
        context.iso(Milestone.created_at),
        context.iso(Milestone.updated_at),
    ).where(Milestone.project_id == context.project.id)
    at_once = context.rows_at_once(Milestone, Milestone.description, Milestone.extra)
    for rows in context.portions(statement, Milestone.iid, at_once):
        events = events_of(context, [milestones.TARGET], [row[1] for row in rows])
        for iid, number, title, description, state, start_date, due_date, extra, created_at, updated_at in rows:
            yield filled(MILESTONE, extra) | {
                "id": number,
                "title": title,
                "project_id": context.project.id,
                "description": description,
                "due_date": due_date,
                "created_at": created_at,
                "updated_at": updated_at,
                "state": state,
                "iid": iid,
                "start_date": start_date,
                "events": events.get(number, []),
            }
