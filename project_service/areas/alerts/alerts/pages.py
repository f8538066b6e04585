"""The page of an alert, and panels of alerts on other pages (alert management reference, section 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from flask import redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access import visible_notes
from project_service.access.abilities import Ability, allowed
from project_service.access.api import json_response
from project_service.access.identity import caller, current_user
from project_service.access.page_parts import navigation, panels
from project_service.access.pages import PageBlueprint
from project_service.access.references import text_references
from project_service.areas.alerts import queries
from project_service.areas.alerts.alerts import episodes, service, trees
from project_service.areas.alerts.alerts.forms import CommentForm
from project_service.areas.alerts.effects import incidents, silencing
from project_service.areas.alerts.models import TARGET, Alert, Severity, Status
from project_service.areas.alerts.payloads import elements, payloads
from project_service.areas.alerts.payloads.payload_mapping import LABELS
from project_service.domain import page_paths, todos
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import INCIDENT, Issue
from project_service.kit.db.session import db
from project_service.kit.http.errors import Invalid
from project_service.kit.http.fields import whole_number
from project_service.kit.http.forms import Form

pages = PageBlueprint("alert_pages", __name__)
navigation.add(navigation.NavigationEntry("Alerts", "/-/alert_management", 40, Ability.READ_ALERTS))

BASE_PATH = "/<path:project>/-/alert_management"
ONE = f"{BASE_PATH}/<int:iid>"
OFFERED = tuple(Status)
PARTS = {"overview": "Alert details", "metrics": "Metrics", "activity": "Activity feed"}
MOST_SHOWN = 5


def prepare_environments(environments: Sequence[Any]) -> None:
    """Load the open alerts of all environments of a page."""
    queries.add_open_alerts(environments, MOST_SHOWN)


def fill_environment(environment: Any) -> dict[str, Any]:
    """The loaded open alerts of one environment."""
    return {
        "alerts": environment.open_alerts,
        "more": environment.open_alerts_count - len(environment.open_alerts),
        "severity": Severity,
        "full_path": environment.project.full_path,
    }


def fill_issue(issue: Issue) -> dict[str, Any]:
    """The alerts of an incident on its page, for users who may see them."""
    is_visible = issue.issue_type == INCIDENT and allowed(caller(), Ability.READ_ALERTS, issue.project)
    alerts = list(db.session.scalars(queries.alerts_of_issue(issue).limit(MOST_SHOWN))) if is_visible else []
    return {"alerts": alerts, "severity": Severity, "status": Status, "full_path": issue.project.full_path}


panels.add(panels.Panel("environment", 10, "alerts/of_environment.html", fill_environment, prepare_environments))
panels.add(panels.Panel("issue", 10, "alerts/of_issue.html", fill_issue))


@pages.get(f"{ONE}/details")
@pages.signed_in
@pages.allow(Ability.READ_ALERTS)
def show_alert(project: Project, iid: int) -> ResponseReturnValue:
    """Show one alert."""
    # addresses of comments, and pages of the feed, are those of the alert itself
    part = "activity" if request.args.keys() & {"note", "page"} else "overview"
    return _page(queries.find_alert(project, iid), CommentForm(), part)


@pages.get(f"{ONE}/details/<any(overview,metrics,activity):part>")
@pages.signed_in
@pages.allow(Ability.READ_ALERTS)
def show_part(project: Project, iid: int, part: str) -> ResponseReturnValue:
    """Show one tab of an alert."""
    return _page(queries.find_alert(project, iid), CommentForm(), part)


@pages.get(f"{ONE}/payload.json")
@pages.signed_in
@pages.allow(Ability.READ_ALERTS)
def show_payload(project: Project, iid: int) -> ResponseReturnValue:
    """Send the payload of an alert as it was received."""
    return json_response(queries.find_alert(project, iid).payload)


@pages.post(f"{ONE}/status")
@pages.signed_in
@pages.allow(Ability.READ_ALERTS)
def change_status(project: Project, iid: int) -> ResponseReturnValue:
    """Change the status of an alert."""
    alert = queries.find_alert(project, iid)
    names = {status.name.lower(): status for status in OFFERED}
    wanted = names.get(request.form.get("status", ""))

    def change() -> None:
        if wanted is None:
            raise Invalid(base="Invalid status")
        service.change_status(current_user(), alert, wanted)

    return _acted(alert, change)


@pages.post(f"{ONE}/assignee")
@pages.signed_in
@pages.allow(Ability.READ_ALERTS)
def assign(project: Project, iid: int) -> ResponseReturnValue:
    """Assign an alert to a user, or to none."""
    alert = queries.find_alert(project, iid)
    wanted = request.form.get("assign_myself") or request.form.get("assignee_id", "")

    def act() -> None:
        user_id = whole_number(wanted)
        if user_id is None and wanted:
            raise Invalid(base="Assignee has no permissions")
        service.assign_to_id(current_user(), alert, user_id)

    return _acted(alert, act)


@pages.post(f"{ONE}/todo")
@pages.signed_in
@pages.allow(Ability.READ_ALERTS)
def change_todo(project: Project, iid: int) -> ResponseReturnValue:
    """Add or complete one's to-do item of an alert."""
    alert = queries.find_alert(project, iid)
    change = service.mark if request.form.get("todo") == "add" else service.unmark
    return _acted(alert, lambda: change(current_user(), alert))


@pages.post(f"{ONE}/incident")
@pages.signed_in
@pages.allow(Ability.READ_ALERTS)
def create_incident(project: Project, iid: int) -> ResponseReturnValue:
    """Open an incident for an alert."""
    alert = queries.find_alert(project, iid)

    def create() -> None:
        if not allowed(caller(), Ability.CREATE_ISSUES, project):
            raise Invalid(base="You have no permissions")
        incidents.create_incident(current_user(), alert)

    return _acted(alert, create)


@pages.post(f"{ONE}/notes")
@pages.signed_in
@pages.allow(Ability.READ_ALERTS)
def create_note(project: Project, iid: int) -> ResponseReturnValue:
    """Comment on an alert."""
    alert = queries.find_alert(project, iid)
    form = CommentForm()
    if accepted := form.accepted(lambda: service.comment(current_user(), alert, form.note.data or "")):
        return redirect(f"{_address(alert)}?note={accepted.result.id}#note_{accepted.result.id}")
    return _page(queries.find_alert(project, iid), form, "activity"), 422


def _acted(alert: Alert, act: Any) -> ResponseReturnValue:
    form = Form()
    project, iid = alert.project, alert.iid
    back = request.form.get("back", "")
    if form.accepted(act):
        is_query = back.startswith("?") and back.isprintable()
        return redirect(f"/{project.full_path}/-/alert_management{back}" if is_query else _address(alert))
    comment_form = CommentForm(formdata=None)
    comment_form.problems = form.problems
    return _page(queries.find_alert(project, iid), comment_form), 422


def _page(alert: Alert, form: CommentForm, part: str = "overview") -> str:
    people = queries.assignable_users(alert.project)
    tree, left_out = trees.tree_of(alert.payload)
    silencing.load_silences([alert])
    notes = visible_notes.read_notes(queries.notes_of(alert), request.args)
    text_references.prepare(caller(), alert.project, [note.body for note in notes.rows])
    return render_template(
        "alerts/show.html",
        project=alert.project,
        alert=alert,
        silence_query=urlencode(silencing.query_of(alert)),
        tree=tree,
        left_out=left_out,
        runbook=payloads.runbook_of(alert.payload),
        links=payloads.links_of(alert.payload),
        field_labels=LABELS,
        query=elements.query_of(alert.payload),
        source=payloads.source_of(alert.payload),
        parts=PARTS,
        part=part,
        me=caller().user_id,
        notes=notes,
        people=people,
        severity=Severity,
        status=Status,
        offered=OFFERED,
        episodes=episodes.episodes_of(alert),
        unreadable_times=episodes.still_unreadable(alert),
        todo=todos.pending_of(caller().user_id or 0, TARGET, alert.id),
        form=form,
    )


def _address(alert: Alert) -> str:
    return f"/{alert.project.full_path}{page_paths.alert(alert.iid)}"
