"""Pages of the list of errors and of one error (error collection reference, section 18)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy import select

from project_service.access import visible_notes
from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller, current_user
from project_service.access.page_parts import navigation, panels
from project_service.access.pages import PageBlueprint
from project_service.access.rules import may_change_note
from project_service.areas.error_tracking.collection.event_parsing import LEVELS
from project_service.areas.error_tracking.effects import issues
from project_service.areas.error_tracking.errors import backends, bulk, comments, separation, service
from project_service.areas.error_tracking.errors import queries as error_queries
from project_service.areas.error_tracking.errors.forms import ErrorCommentForm, ErrorIssueForm
from project_service.areas.error_tracking.errors.models import ErrorStatus, TrackedError
from project_service.areas.error_tracking.errors.schemas import STATUSES
from project_service.areas.error_tracking.errors.views import LAST_DAY, PERIODS
from project_service.areas.error_tracking.events import event_search, event_views
from project_service.areas.error_tracking.sentry.client import SentryFailed
from project_service.areas.error_tracking.settings import client_keys, queries
from project_service.areas.error_tracking.settings.models import ErrorTrackingSetting, SentryIssueLink
from project_service.domain import page_paths
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.kit.charts import sparkline
from project_service.kit.db.session import db
from project_service.kit.http.errors import Invalid, NotFound
from project_service.kit.http.fields import whole_number
from project_service.kit.http.forms import Form, confirmation

pages = PageBlueprint("error_pages", __name__)
navigation.add(navigation.NavigationEntry("Error tracking", "/-/error_tracking", 45, Ability.READ_ERRORS))

BASE_PATH = "/<path:project>/-/error_tracking"
ONE = f"{BASE_PATH}/<error_id>"
FILTERS = ("status", "environment", "release", "level", "search_term", "sort")
SORTS = {"last_seen": "Last seen", "first_seen": "First seen", "frequency": "Frequency"}
ALL = "all"
RESOLVED_IN_NEXT = "resolved_in_next_release"  # what the button of the page sends
STATUS_TITLES = {"unresolved": "Unresolved", "resolved": "Resolved", "ignored": "Ignored", ALL: "All"}


def fill_issue(issue: Issue) -> dict[str, Any]:
    """The error of an issue on its page, for users who may see it."""
    if not allowed(caller(), Ability.READ_ERRORS, issue.project):
        return {"error": None, "link": None}
    errors = error_queries.errors_of(issue.project).where(TrackedError.issue_id == issue.id)
    link = select(SentryIssueLink).where(SentryIssueLink.issue_id == issue.id)
    return {"error": db.session.scalar(errors), "link": db.session.scalar(link)}


panels.add(panels.Panel("issue", 20, "error_tracking/of_issue.html", fill_issue))


@pages.get(BASE_PATH, sends_requests=True)
@pages.signed_in
@pages.allow(Ability.READ_ERRORS)
def list_errors(project: Project) -> ResponseReturnValue:
    """Show the errors of a project."""
    return _list(project, Form())


@pages.post(BASE_PATH, sends_requests=True)
@pages.signed_in
@pages.allow(Ability.UPDATE_ERRORS)
def change_errors(project: Project) -> ResponseReturnValue:
    """Change the status of the selected errors, or merge them."""
    backends.integrated_only(project)
    form = Form()
    chosen = error_queries.errors_numbered(project, request.form.getlist("errors"))
    if not (accepted := form.accepted(lambda: bulk.change(current_user(), chosen, request.form.get("change", "")))):
        return _list(project, form), 422
    flash(accepted.result.text)
    if accepted.result.target is not None:
        return redirect(address_of(project, str(accepted.result.target.id)))
    return redirect(f"/{project.full_path}/-/error_tracking{navigation.with_query()}")


def _list(project: Project, form: Form) -> str:
    setting = queries.setting_of(project)
    if setting is None or not (setting.integrated or setting.enabled):
        return render_template("error_tracking/off.html", project=project)
    filters = _wanted(setting)
    backend = backends.backend_of(project)
    page = backend.page(_filters(filters), request.args.get("cursor" if not setting.integrated else "page", ""))
    environments = backend.environments()
    waiting = error_queries.waiting_events(project) if setting.integrated else 0
    is_new = setting.integrated and not page.errors and not waiting and not error_queries.has_errors(project)
    return render_template(
        "error_tracking/list.html",
        project=project,
        setting=setting,
        page=page,
        wanted=filters,
        is_new=is_new,
        waiting=waiting,
        dsn=_dsn(project) if is_new else None,
        statuses=STATUS_TITLES,
        levels=_options(LEVELS),
        sorts=SORTS,
        periods=PERIODS if setting.integrated else {},
        period=PERIODS.get(filters["period"], LAST_DAY),
        environments=None if environments is None else _options(environments),
        sparkline=sparkline,
        form=form,
    )


@pages.get(f"{ONE}/details", sends_requests=True)
@pages.signed_in
@pages.allow(Ability.READ_ERRORS)
def show_error(project: Project, error_id: str) -> ResponseReturnValue:
    """Show one error with one of its events."""
    return error_page(project, error_id, ErrorIssueForm())


@pages.post(f"{ONE}/status", sends_requests=True)
@pages.signed_in
@pages.allow(Ability.UPDATE_ERRORS)
def change_error_status(project: Project, error_id: str) -> ResponseReturnValue:
    """Change the status of an error."""
    status = request.form.get("status", "")
    is_next = status == RESOLVED_IN_NEXT

    def change() -> None:
        if status not in STATUSES and not is_next:
            raise Invalid(status="does not have a valid value")
        wanted = ErrorStatus.RESOLVED if is_next else ErrorStatus.of(status)
        backends.backend_of(project).change_status(current_user(), error_id, wanted, in_next_release=is_next)

    return acted(project, error_id, change)


@pages.post(f"{ONE}/assignee", sends_requests=True)
@pages.signed_in
@pages.allow(Ability.UPDATE_ERRORS)
def assign_error(project: Project, error_id: str) -> ResponseReturnValue:
    """Assign an error to a user, or to nobody."""
    backends.integrated_only(project)
    wanted = request.form.get("assign_myself") or request.form.get("assignee_id", "")

    def assign() -> None:
        user_id = whole_number(wanted)
        if user_id is None:
            raise Invalid(assignee_id="is not a number")
        service.assign_to_id(current_user(), error_queries.find_error(project, error_id), user_id)

    return acted(project, error_id, assign)


@pages.post(f"{ONE}/issue", sends_requests=True)
@pages.signed_in
@pages.allow(Ability.CREATE_ERROR_ISSUES)
def create_error_issue(project: Project, error_id: str) -> ResponseReturnValue:
    """Create an issue about an error, or link the one whose number was given."""
    form = ErrorIssueForm()
    backend = backends.backend_of(project)
    number = (form.issue_iid.data or "").strip().lstrip("#")

    def create() -> Issue:
        if "create" in request.form:
            return backends.open_issue(current_user(), backend, error_id)
        iid = whole_number(number)
        if iid is None:
            raise Invalid(issue_iid="is not a number")
        backend.show(error_id)
        try:
            issue = issues.find_linkable_issue(project, iid)
        except NotFound as error:
            raise Invalid(issue_iid="is that of no issue of this project") from error
        backend.link_issue(error_id, issue)
        return issue

    try:
        if not (accepted := form.accepted(create)):
            return error_page(project, error_id, form), 422
    except SentryFailed as error:
        return _unavailable(project, error_id, error)
    if "create" in request.form:
        return redirect(f"/{project.full_path}{page_paths.issue(accepted.result.iid)}")
    return redirect(address_of(project, error_id))


@pages.post(f"{ONE}/unlink", sends_requests=True)
@pages.signed_in
@pages.allow(Ability.CREATE_ERROR_ISSUES)
def delete_error_issue(project: Project, error_id: str) -> ResponseReturnValue:
    """Remove the link of an error to its issue."""
    backend = backends.backend_of(project)

    def unlink() -> None:
        if backend.show(error_id).issue is not None:  # else another page has removed it
            backend.unlink_issue(error_id)

    return acted(project, error_id, unlink)


@pages.get(f"{ONE}/delete")
@pages.signed_in
@pages.allow(Ability.DELETE_ERRORS)
def confirm_deletion(project: Project, error_id: str) -> ResponseReturnValue:
    """Ask before an error is removed."""
    backends.integrated_only(project)
    error = error_queries.find_error(project, error_id)
    question = f"“{error.title}” is removed with all its events. If it occurs again, it is a new error."
    return confirmation("Delete error?", question, "Delete error", address_of(project, error_id), project=project)


@pages.post(f"{ONE}/delete")
@pages.signed_in
@pages.allow(Ability.DELETE_ERRORS)
def delete_error(project: Project, error_id: str) -> ResponseReturnValue:
    """Remove an error."""
    backends.integrated_only(project)
    service.delete_error(error_queries.find_error(project, error_id))
    return redirect(f"/{project.full_path}/-/error_tracking")


def _wanted(setting: ErrorTrackingSetting) -> dict[str, str]:
    """Return the filters of the request as the form shows them; unknown values are the defaults."""
    filters = {name: request.args.get(name, "") for name in FILTERS}
    filters["period"] = request.args.get("period", "") if setting.integrated else ""
    if filters["status"] not in STATUS_TITLES:
        filters["status"] = "unresolved"
    if filters["sort"] not in SORTS:
        filters["sort"] = "last_seen"
    for name, choices in (("level", LEVELS), ("period", PERIODS)):
        if filters[name] not in choices:
            filters[name] = ""
    return filters


def _filters(chosen: dict[str, str]) -> dict[str, Any]:
    return {
        "status": [] if chosen["status"] == ALL else [chosen["status"]],
        "search": chosen["search_term"],
        "environment": chosen["environment"],
        "release": chosen["release"],
        "level": chosen["level"],
        "order_by": "count" if chosen["sort"] == "frequency" else chosen["sort"],
        "period": PERIODS.get(chosen["period"]),
    }


def error_page(
    project: Project, error_id: str, form: ErrorIssueForm, comment_form: ErrorCommentForm | None = None
) -> str:
    """Return the page of an error; a refused form is shown again."""
    backend = backends.backend_of(project)
    try:
        details = backend.details(error_id, request.args.get("event", ""))
    except SentryFailed as error:
        return _unavailable(project, error_id, error)
    period = PERIODS.get(request.args.get("period", ""), LAST_DAY)
    return render_template(
        "error_tracking/show.html",
        project=project,
        details=details,
        error=details.error,
        event=details.event,
        period=period,
        periods=PERIODS,
        frequency=backend.frequency(details.error, period),
        sparkline=sparkline,
        frame_groups=event_views.frame_groups,
        readable=_readable,
        statuses=STATUS_TITLES,
        form=form,
        resolved_in_next=RESOLVED_IN_NEXT,
        offset_of=event_views.offset_of,
        **(_work_on(project, error_id) if details.error.integrated else {}),
        comment_form=comment_form or ErrorCommentForm(formdata=None),
    )


def _work_on(project: Project, error_id: str) -> dict[str, Any]:
    """The template variables of what people do about an error that this server stores."""
    error = error_queries.find_error(project, error_id)
    return {
        "report": event_search.report_of(error),
        "people": error_queries.assignable_users(project),
        "me": caller().user_id,
        "notes": visible_notes.read_notes(comments.comments_on(error), request.args),
        "may_change_note": lambda note: may_change_note(caller(), note),
        "merges": db.session.scalars(separation.merges_of(error).limit(separation.MAX_LISTED)).all(),
    }


def _unavailable(project: Project, error_id: str, error: SentryFailed) -> str:
    """Return the page of an error that Sentry did not return or did not change."""
    address = address_of(project, error_id)
    return render_template("error_tracking/unavailable.html", project=project, text=error.advice, address=address)


def acted(project: Project, error_id: str, act: Any) -> ResponseReturnValue:
    """Change an error and lead back to its page, or to the list that the request came from."""
    form = ErrorIssueForm()
    back = request.form.get("back", "")
    try:
        if not form.accepted(act):
            return error_page(project, error_id, form), 422
    except SentryFailed as error:
        return _unavailable(project, error_id, error)
    is_query = back.startswith("?") and back.isprintable()
    return redirect(f"/{project.full_path}/-/error_tracking{back}" if is_query else address_of(project, error_id))


def _options(values: Sequence[str]) -> dict[str, str]:
    return {value: value for value in values}


def address_of(project: Project, error_id: str) -> str:
    """Return the path of the page of an error."""
    return f"/{project.full_path}{page_paths.error(error_id)}"


def _dsn(project: Project) -> str | None:
    """The address for SDKs, for users who may see it."""
    if not allowed(caller(), Ability.ADMIN_OPERATIONS, project):
        return None
    key = client_keys.first_active_key(project)
    return None if key is None else client_keys.dsn_of(key)


def _readable(value: Any) -> str:
    """Return a text as it is, and other values as indented JSON."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
