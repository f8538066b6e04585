"""The API of label events of issues."""

from __future__ import annotations

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.guards import numeric
from project_service.areas.issues.label_events import queries, schemas
from project_service.domain.tracker import label_events
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.label_events import LabelEvent

api = ApiBlueprint("issue_label_events", __name__, description="Which labels an issue got and lost.")

EVENTS = "/projects/<project>/issues/<iid>/resource_label_events"


@api.get(EVENTS)
@api.signed_in
@api.allow(Ability.READ_ISSUE)
@api.response(200, schemas.LabelEventSchema(many=True))
@api.paged
def list_issue_label_events(issue: Issue) -> WithSchema:
    """List the label events of an issue, the oldest first."""
    return WithSchema(
        schemas.LabelEventSchema, label_events.events_of(issue), lambda rows: queries.add_labels(issue, rows)
    )


@api.get(f"{EVENTS}/<issue_label_event_id>")
@api.signed_in
@api.allow(Ability.READ_ISSUE)
@api.response(200, schemas.LabelEventSchema)
def show_issue_label_event(issue: Issue, issue_label_event_id: str) -> LabelEvent:
    """Show one label event of an issue."""
    event = label_events.find_event(issue, numeric(issue_label_event_id))
    queries.add_labels(issue, [event])
    return event
