"""The API of alerts and their notes; GitLab has the same fields in GraphQL only."""

from __future__ import annotations

from typing import Any

from project_service.access import visible_notes
from project_service.access.abilities import Ability, judge
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.guards import numeric
from project_service.access.identity import caller, current_user
from project_service.areas.alerts import queries
from project_service.areas.alerts.alerts import listing, schemas, service
from project_service.areas.alerts.alerts.listing import AlertFilter, AlertOrder, MatchingAlerts
from project_service.areas.alerts.effects import hooks, incidents, silencing
from project_service.areas.alerts.models import Alert
from project_service.domain.projects import Project
from project_service.domain.tracker.notes import Note
from project_service.domain.tracker.schemas import NoteFilterSchema, NoteSchema
from project_service.kit.http.pagination import SelectedRows
from project_service.kit.http.responses import say_newest_only

api = ApiBlueprint("alerts", __name__, description="Alerts of a project and the notes under them.")

ALERTS = "/projects/<project>/alert_management_alerts"
ONE = f"{ALERTS}/<iid>"


@api.get(ALERTS)
@api.signed_in
@api.allow(Ability.READ_ALERTS)
@api.arguments(schemas.AlertFilterSchema)
@api.response(200, schemas.AlertSchema(many=True))
@api.paged
def list_alerts(project: Project, fields: dict[str, Any]) -> WithSchema:
    """List the alerts of a project."""
    order = AlertOrder(fields.pop("order_by"), fields.pop("sort"))
    statuses = tuple(schemas.STATUSES[word] for word in fields.pop("status", None) or schemas.STATUSES)
    severities = tuple(schemas.SEVERITIES[word] for word in fields.pop("severity", None) or ())
    wanted = AlertFilter(severities=severities, **{name: value for name, value in fields.items() if value is not None})
    selection = listing.alerts_matching(project, wanted)
    if selection.newest_only is not None:
        say_newest_only(selection.newest_only)
    statement = selection.ordered(order, statuses).options(*listing.ENVIRONMENT)
    are_many = selection.has_many_matches and len(statuses) == len(schemas.STATUSES)
    alerts = MatchingAlerts(statement, are_many=are_many) if selection.is_search else SelectedRows(statement)
    return WithSchema(schemas.AlertSchema, alerts, silencing.load_silences)


@api.get(ONE)
@api.signed_in
@api.allow(Ability.READ_ALERTS)
@api.response(200, schemas.AlertDetailsSchema)
def show_alert(project: Project, iid: str) -> Alert:
    """Show one alert with its payload."""
    alert = queries.find_alert(project, numeric(iid))
    silencing.load_silences([alert])
    return alert


@api.put(ONE)
@api.signed_in
@api.allow(Ability.READ_ALERTS)
@api.arguments(schemas.AlertUpdateSchema)
@api.response(200, schemas.AlertDetailsSchema)
def update_alert(project: Project, fields: dict[str, Any], iid: str) -> Alert:
    """Change the status of an alert, or assign it."""
    alert = queries.find_alert(project, numeric(iid))
    hooks.load_silences([alert])
    if "assignee_ids" in fields:
        service.assign_to_id(current_user(), alert, next(iter(fields["assignee_ids"] or ()), None))
    if "status" in fields:
        service.change_status(current_user(), alert, schemas.STATUSES[fields["status"]])
    return alert


@api.get(f"{ONE}/notes")
@api.signed_in
@api.allow(Ability.READ_ALERTS)
@api.arguments(NoteFilterSchema)
@api.response(200, NoteSchema(many=True))
@api.paged
def list_alert_notes(project: Project, fields: dict[str, Any], iid: str) -> WithSchema:
    """List the comments and system notes of an alert."""
    alert = queries.find_alert(project, numeric(iid))
    notes = visible_notes.filtered(queries.notes_of(alert), **fields)
    return WithSchema(NoteSchema, notes, lambda rows: visible_notes.add_iids(alert, rows))


@api.post(f"{ONE}/notes")
@api.signed_in
@api.allow(Ability.READ_ALERTS)
@api.arguments(schemas.AlertNoteCreateSchema)
@api.response(201, NoteSchema)
def create_alert_note(project: Project, fields: dict[str, Any], iid: str) -> Note:
    """Comment on an alert."""
    alert = queries.find_alert(project, numeric(iid))
    note = service.comment(current_user(), alert, fields["body"] or "")
    visible_notes.add_iids(alert, [note])
    return note


@api.post(f"{ONE}/issue")
@api.signed_in
@api.allow(Ability.READ_ALERTS)
@api.response(201, schemas.AlertDetailsSchema)
def create_alert_issue(project: Project, iid: str) -> Alert:
    """Open an incident for an alert; this takes the right to create issues, too."""
    judge(caller(), Ability.CREATE_ISSUES, project)
    alert = queries.find_alert(project, numeric(iid))
    hooks.load_silences([alert])
    incidents.create_incident(current_user(), alert)
    return alert
