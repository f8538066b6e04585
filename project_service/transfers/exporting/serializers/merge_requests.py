"""Serialization of merge requests."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import select

from project_service.domain.tracker import merge_requests
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.transfers.exporting.context import ExportContext
from project_service.transfers.exporting.serializers.events import events_of
from project_service.transfers.exporting.serializers.notes import notes_of
from project_service.transfers.exporting.templates import MERGE_REQUEST, Line, filled


def serialize_merge_requests(context: ExportContext) -> Iterator[Line]:
    """Generate the merge requests with their notes and events."""
    statement = select(
        MergeRequest.iid,
        MergeRequest.id,
        MergeRequest.title,
        MergeRequest.description,
        MergeRequest.state,
        MergeRequest.source_branch,
        MergeRequest.target_branch,
        MergeRequest.author_id,
        MergeRequest.milestone_id,
        MergeRequest.extra,
        context.iso(MergeRequest.created_at),
        context.iso(MergeRequest.updated_at),
    ).where(MergeRequest.project_id == context.project.id)
    at_once = context.rows_at_once(MergeRequest, MergeRequest.description, MergeRequest.extra)
    for rows in context.portions(statement, MergeRequest.iid, at_once):
        ids = [row[1] for row in rows]
        notes = notes_of(context, merge_requests.TARGET, ids)
        events = events_of(context, [merge_requests.TARGET], ids)
        for (
            iid,
            number,
            title,
            description,
            state,
            source,
            target,
            author_id,
            milestone_id,
            extra,
            *moments,
        ) in rows:
            line = filled(MERGE_REQUEST, extra)
            line |= {
                "id": number,
                "target_branch": target,
                "source_branch": source,
                "author_id": author_id,
                "title": title,
                "created_at": moments[0],
                "updated_at": moments[1],
                "target_project_id": context.project.id,
                "iid": iid,
                "description": description,
                "merge_when_pipeline_succeeds": False,
                "state": state,
                "events": events.get(number, []),
                "notes": notes[number],
            }
            if "source_project_id" not in (extra or {}):
                line["source_project_id"] = context.project.id
            if milestone_id in context.milestones:
                line["milestone"] = context.milestones[milestone_id]
            yield line
