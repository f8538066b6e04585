"""The list of alerts with filters and changes of many (alert management reference, section 10)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy import func, select

from project_service.access.abilities import Ability
from project_service.access.api import json_response
from project_service.access.identity import caller, current_user
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.alerts import queries
from project_service.areas.alerts.alerts import bulk, listing, service
from project_service.areas.alerts.alerts.listing import AlertFilter, AlertOrder, AlertSelection
from project_service.areas.alerts.effects import silencing
from project_service.areas.alerts.models import OPSGENIE, Alert, AlertIntegration, Severity, Status
from project_service.areas.alerts.statistics import charts
from project_service.domain.accounts.users import User, user_by
from project_service.domain.projects import Project
from project_service.domain.tracker.environments import environments_of
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.http.errors import Invalid
from project_service.kit.http.fields import whole_number
from project_service.kit.http.forms import Form
from project_service.kit.http.pagination import LARGEST_SIZE, read_page

pages = PageBlueprint("alert_list_pages", __name__)

BASE_PATH = "/<path:project>/-/alert_management"
FILTERS = ("search", "severity", "integration_id", "environment", "host", "assignee_username", "silenced")
RECENT = dt.timedelta(hours=12)
MAX_SUGGESTIONS = 100
MAX_NEW_ALERTS = 100  # that are counted
ME, NOBODY = "me", "nobody"
STATUSES = {status.name.lower(): status for status in Status}
SEVERITIES = {severity.name.lower(): severity for severity in Severity}


@dataclass(frozen=True, slots=True)
class AlertListQuery:
    """What the query of the page asks for; unknown words count as not given."""

    given: dict[str, str]
    filters: AlertFilter
    order: AlertOrder
    tab: str

    @classmethod
    def of(cls, args: Mapping[str, str]) -> AlertListQuery:
        """Read a query."""
        requested = {name: args.get(name, "").strip() for name in FILTERS}
        severity = SEVERITIES.get(requested["severity"])
        username = requested["assignee_username"]
        filters = AlertFilter(
            search=requested["search"],
            severities=(severity,) if severity is not None else (),
            integration_id=whole_number(requested["integration_id"]),
            host=requested["host"],
            environment=requested["environment"],
            silenced={"yes": True, "no": False}.get(requested["silenced"]),
            assignee_username=current_user().username if username == ME else username,
        )
        order = args.get("order_by", "")
        tab = args.get("tab", "")
        return cls(
            requested,
            filters,
            AlertOrder(order if order in listing.SORTS else "started_at", args.get("sort", "")),
            tab if tab in listing.TABS else "open",
        )

    @property
    def statuses(self) -> tuple[Status, ...]:
        """The statuses of the tab."""
        return listing.TABS[self.tab][1]


@pages.get(BASE_PATH)
@pages.signed_in
@pages.allow(Ability.READ_ALERTS)
def list_alerts(project: Project) -> ResponseReturnValue:
    """Show the alerts of a project."""
    return _page(project, Form())


@pages.get(f"{BASE_PATH}/new_count")
@pages.signed_in
@pages.allow(Ability.READ_ALERTS)
def count_new_alerts(project: Project) -> ResponseReturnValue:
    """Count the alerts of the same list that were received after it was shown, for scripts."""
    wanted, after = AlertListQuery.of(request.args), whole_number(request.args.get("after", ""))
    selection = listing.alerts_matching(project, wanted.filters)
    count = selection.count_after(after, wanted.statuses, MAX_NEW_ALERTS) if after is not None else 0
    return json_response({"count": count, "is_more": count == MAX_NEW_ALERTS})


@pages.post(BASE_PATH)
@pages.signed_in
@pages.allow(Ability.READ_ALERTS)
def change_alerts(project: Project) -> ResponseReturnValue:
    """Change status and assignee of the selected alerts, or of all that the list has."""
    form = Form()
    if accepted := form.accepted(lambda: _change(project, AlertListQuery.of(request.args))):
        flash(_described(accepted.result))
        return redirect(f"/{project.full_path}/-/alert_management{navigation.with_query()}")
    return _page(project, form), 422


def _change(project: Project, wanted: AlertListQuery) -> bulk.BulkChange:
    word, username = request.form.get("status", ""), request.form.get("assign_to", "").strip().removeprefix("@")
    if word and word not in STATUSES:
        raise Invalid(base="Invalid status")
    if not word and not username:
        raise Invalid(base="Choose a status or an assignee.")
    if "all" in request.form:
        selected = listing.alerts_matching(project, wanted.filters).states(wanted.statuses)
    else:
        numbers = [whole_number(text) for text in request.form.getlist("alerts")[:LARGEST_SIZE]]
        if not numbers:
            raise Invalid(base="Select the alerts to change.")
        selected = AlertSelection((Alert.project_id == project.id, Alert.iid.in_(numbers))).states()
    assignee = _assignee(project, username)
    return bulk.change_alerts(current_user(), project, selected, STATUSES.get(word), assignee, assign=bool(username))


def _assignee(project: Project, username: str) -> User | None:
    if username in ("", NOBODY):
        return None
    user = current_user() if username == ME else user_by(username)
    return service.checked_assignee(project, user)


def _described(change: bulk.BulkChange) -> str:
    text = f"{change.changed} alerts were changed." if change.changed != 1 else "1 alert was changed."
    if change.refused:
        text += f" {change.refused} stay resolved: another of the same fingerprint is open."
    if change.is_cut:
        text += f" At most {bulk.MAX_ALERTS} are changed at a time: do it again for the others."
    return text


def _page(project: Project, form: Form) -> str:
    opsgenie = db.session.scalar(
        queries.integrations_of(project).where(AlertIntegration.type == OPSGENIE, AlertIntegration.active.is_(True))
    )
    if opsgenie is not None:
        return render_template("alerts/opsgenie.html", project=project, integration=opsgenie)
    wanted = AlertListQuery.of(request.args)
    selection = listing.alerts_matching(project, wanted.filters)
    page = read_page(selection.ordered(wanted.order, wanted.statuses), request.args.get("page"))
    silencing.load_silences(page.rows)
    integrations = queries.integration_names(project)
    now = clock.now()
    return render_template(
        "alerts/list.html",
        project=project,
        page=page,
        wanted=wanted,
        sorts=listing.SORT_NAMES,
        most=selection.most_counted,
        tabs={name: title for name, (title, _) in listing.TABS.items()},
        counts=selection.counts(),
        newest_only=selection.newest_only,
        chart=charts.last_days(project),
        severity=Severity,
        status=Status,
        integrations=integrations,
        environments=list(db.session.scalars(environments_of(project).limit(MAX_SUGGESTIONS))),
        people=queries.assignable_users(project, MAX_SUGGESTIONS),
        me=caller().user_id,
        newest=db.session.scalar(select(func.max(Alert.iid)).where(Alert.project_id == project.id)) or 0,
        is_recent=lambda alert: now - RECENT < alert.started_at <= now,
        never=not page.rows
        and not queries.has_alerts(project)
        and not any(integration.active for integration in integrations),
        form=form,
    )
