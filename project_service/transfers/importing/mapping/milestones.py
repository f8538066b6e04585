"""Mapping of milestones and their events."""

from __future__ import annotations

from typing import Any

from project_service.domain.events.models import Kind
from project_service.domain.tracker import milestones
from project_service.domain.tracker.milestones import Milestone
from project_service.transfers.archive import layout
from project_service.transfers.importing.mapping.context import (
    MAPPED_BY_ALL,
    ImportContext,
    MappedKeys,
    MilestoneEvent,
    VisibilityRule,
)
from project_service.transfers.importing.mapping.events import action_of, map_events
from project_service.transfers.importing.mapping.tables import ImportedMilestone
from project_service.transfers.importing.mapping.values import day_of, is_iid, moment_of, objects_in, title_of

MILESTONE_KEYS = MappedKeys(
    MAPPED_BY_ALL | {"title", "description", "state", "iid", "start_date", "due_date", "events"},
    frozenset(layout.MILESTONE),
)


def map_milestone(context: ImportContext, row: Any) -> int | None:
    """Return the id of the milestone with this title, which is added if needed, and add its events, each once.

    A milestone of a group above the project is used as it is; it has no events.
    """
    if not isinstance(row, dict):
        return None
    title = title_of(row)
    number = context.state.milestones.get(title)
    if number is None:
        number = context.state.milestones[title] = next(context.ids[Milestone])
        iid = _iid_of(context, row)
        state = milestones.CLOSED if row.get("state") == milestones.CLOSED else milestones.ACTIVE
        created_at, updated_at = context.timestamps_of(row)
        context.batch.add(
            Milestone,
            ImportedMilestone(
                id=number,
                project_id=context.project_id,
                iid=iid,
                title=title,
                description=context.text_of(row.get("description"), "Description"),
                state=state,
                start_date=day_of(row.get("start_date")),
                due_date=day_of(row.get("due_date")),
                extra=context.extra_of(row, MILESTONE_KEYS),
                created_at=created_at,
                updated_at=updated_at,
            ),
        )
    if row.get("events") and number not in context.state.group_milestones:
        with_author = [event for event in objects_in(row["events"]) if event.get("author_id") is not None]
        events = [(_event_key(context, number, event), event) for event in with_author]
        new = [event for key, event in events if key not in context.state.milestone_events]
        map_events(context, new, milestones.TARGET, number, VisibilityRule(Kind.MILESTONE))
        context.state.milestone_events |= dict.fromkeys(key for key, _ in events)
    return number


def _event_key(context: ImportContext, number: int, event: dict[str, Any]) -> MilestoneEvent:
    """What identifies an event when its milestone is repeated in another row."""
    moment = moment_of(event.get("created_at")) or context.now
    return number, action_of(event.get("action")), context.users.author(event["author_id"]), moment


def _iid_of(context: ImportContext, row: dict[str, Any]) -> int:
    """Return the iid of a project milestone, which is kept; for others a provisional one below 0.

    Archive format reference, section 6.3.

    A group milestone must not take the iid of a later row, so it gets its own when all rows are imported.
    """
    iid = row.get("iid")
    if row.get("group_id") is not None or not is_iid(iid) or iid in context.state.milestone_iids:
        iid = context.state.lowest_milestone_iid = context.state.lowest_milestone_iid - 1
    context.state.milestone_iids[iid] = None
    return int(iid)
