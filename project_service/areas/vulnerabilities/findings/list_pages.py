"""Pages with lists of findings: those of a branch or a pipeline, and the list of pipelines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask import Response, flash, redirect, render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.identity import current_user
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.vulnerabilities.exports.files import FORMATS, export_response
from project_service.areas.vulnerabilities.findings import bulk, charts, queries
from project_service.areas.vulnerabilities.levels import Confidence, FindingSeverity
from project_service.areas.vulnerabilities.locations import where_of
from project_service.areas.vulnerabilities.models import DISMISSAL_REASONS, Pipeline, TrackedFindingState
from project_service.areas.vulnerabilities.report_types import REPORT_TYPES
from project_service.areas.vulnerabilities.tracking import board, trend
from project_service.areas.vulnerabilities.tracking import queries as tracking_queries
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http.errors import Invalid, NotFound
from project_service.kit.http.fields import whole_number
from project_service.kit.http.forms import Form
from project_service.kit.http.pagination import LARGEST_SIZE, OrderedRows, read_page

list_pages = PageBlueprint("finding_list_pages", __name__)
HOME = "/-/security"
DASHBOARD = f"/<path:project>{HOME}/dashboard"
WORST_FIRST = sorted(FindingSeverity, reverse=True)
SUREST_FIRST = sorted(Confidence, reverse=True)
# filters of the list with their labels
FILTERS: dict[str, dict[str, str]] = {
    "severity": {level.text: level.title for level in WORST_FIRST},
    "confidence": {level.text: level.title for level in SUREST_FIRST},
    "report_type": REPORT_TYPES,
}
OPEN = ("detected",)
ALL = "all"
STATES_SHOWN = {
    "dismissed": ("dismissed",),
    "resolved": ("resolved",),
    "undecided": ("detected", "dismissed"),
    "all": ("detected", "dismissed", "resolved"),
}
STATE_NAMES = {
    "dismissed": "Dismissed",
    "resolved": "Resolved",
    "undecided": "Detected and dismissed",
    "all": "All",
}

navigation.add(
    navigation.NavigationEntry(
        *("Security", f"{HOME}/dashboard", 50, Ability.READ_VULNERABILITIES), within=(f"{HOME}/", "/-/pipelines")
    )
)


@list_pages.get(DASHBOARD)
@list_pages.signed_in
@list_pages.allow(Ability.READ_VULNERABILITIES)
def show_dashboard(project: Project) -> str:
    """Show the findings of a project."""
    number = request.args.get("pipeline_id")
    if number:
        pipeline = queries.requested_pipeline(project, number)
        if pipeline is None:
            raise NotFound("Pipeline")
        return _dashboard(project, pipeline)
    query = BranchQuery.of_request(project)
    newest = db.session.scalar(board.runs_of(project, query.branch).limit(1))
    if newest is None or not board.is_tracked(project, query.branch):  # reports of releases that tracked nothing
        return _dashboard(project, newest)
    return _branch(query, newest, Form())


@list_pages.get("/<path:project>/-/pipelines")
@list_pages.signed_in
@list_pages.allow(Ability.READ_VULNERABILITIES)
def list_pipelines(project: Project) -> str:
    """Show the pipelines that brought reports of scanners."""
    branch = request.args.get("branch", "")
    page = read_page(board.runs_of(project, branch), request.args.get("page"))
    return render_template(
        "vulnerabilities/pipelines.html",
        project=project,
        page=page,
        runs=board.with_counts(page.rows),
        branch=branch,
        branches=board.branches_of(project),
    )


@list_pages.get("/<path:project>/-/pipelines/<int:pipeline_id>")
@list_pages.signed_in
@list_pages.allow(Ability.READ_VULNERABILITIES)
def show_pipeline(project: Project, pipeline_id: int) -> str:
    """Show the findings of a pipeline, at the path that feedback has for it."""
    pipeline = queries.requested_pipeline(project, str(pipeline_id))
    if pipeline is None:
        raise NotFound("Pipeline")
    return _dashboard(project, pipeline)


@dataclass(frozen=True, slots=True)
class BranchQuery:
    """The findings of a branch that the address asks for; ``options`` are those of ``tracked_findings_of``."""

    project: Project
    branch: str
    shown: str
    options: dict[str, Any]

    @classmethod
    def of_request(cls, project: Project) -> BranchQuery:
        """Read the address; values that do not exist are ignored."""
        chosen = request.args.get("state", "")
        states = STATES_SHOWN.get(chosen, OPEN) if request.args.get("scope") != ALL else STATES_SHOWN["undecided"]
        return cls(
            project,
            request.args.get("branch") or queries.default_branch(project),
            chosen if chosen in STATES_SHOWN else "",
            {
                **_filters(),
                "state": states,
                "scanner": request.args.get("scanner", ""),
                "only_new": request.args.get("new") == "1",
            },
        )

    def statement(self, **changes: Any) -> Select[TrackedFindingState]:
        """Return the statement of the list, with some options changed."""
        return tracking_queries.tracked_findings_of(self.project, self.branch, **self.options | changes)


@list_pages.get(f"/<path:project>{HOME}/export", is_long=True)
@list_pages.signed_in
@list_pages.allow(Ability.READ_VULNERABILITIES)
def export_findings(project: Project) -> Response:
    """Download the findings of a branch, as the address filters them."""
    export_format, query = request.args.get("format", "csv"), BranchQuery.of_request(project)
    if export_format not in FORMATS:
        raise NotFound("Format")
    return export_response(project, export_format, query.branch, query.options)


@list_pages.post(f"/<path:project>{HOME}/dismissals")
@list_pages.signed_in
@list_pages.allow(Ability.DISMISS_VULNERABILITIES)
def dismiss_selected(project: Project) -> ResponseReturnValue:
    """Dismiss the selected findings of a branch, or all that the list has."""
    form, query = Form(), BranchQuery.of_request(project)
    if accepted := form.accepted(lambda: _dismiss(query)):
        flash(_described(accepted.result))
        return redirect(f"/{project.full_path}{HOME}/dashboard{navigation.with_query()}")
    newest = db.session.scalar(board.runs_of(project, query.branch).limit(1))
    return _branch(query, newest, form), 422


def _dismiss(query: BranchQuery) -> bulk.BulkDismissal:
    reason, comment = request.form.get("dismissal_reason", ""), request.form.get("comment", "")
    if not reason:
        raise Invalid(base="Choose a reason for the dismissal.")
    selected = query.statement(state=OPEN)
    if "all" not in request.form:
        numbers = [whole_number(text) for text in request.form.getlist("findings")[:LARGEST_SIZE]]
        selected = selected.where(
            TrackedFindingState.tracked_id.in_([number for number in numbers if number is not None])
        )
    return bulk.dismiss_findings(
        current_user(), query.project, selected, dismissal_reason=reason, comment=comment or None
    )


def _described(change: bulk.BulkDismissal) -> str:
    text = "1 finding was dismissed." if change.dismissed == 1 else f"{change.dismissed} findings were dismissed."
    if change.refused:
        text += f" {change.refused} have neither a key nor identifiers: they could not be recognised again."
    if change.is_cut:
        text += f" At most {bulk.MAX_FINDINGS} are dismissed at a time: do it again for the others."
    return text


def _branch(query: BranchQuery, newest: Pipeline | None, form: Form) -> str:
    """Show the findings of a branch, whichever reports they are from."""
    project, branch = query.project, query.branch
    page = read_page(OrderedRows(query.statement()), request.args.get("page"))
    tracking_queries.prepare(page.rows)
    counts = board.counts_of(query.statement(severity=()))
    return _render_dashboard(
        project,
        newest,
        page=page,
        rows=board.listed_states(page.rows),
        wanted=query.options,
        counts=counts,
        most=board.MAX_COUNT,
        open_count=sum(counts.values()),
        branch=branch,
        branches=board.branches_of(project),
        scanners=board.scanners_of(project),
        runs=list(db.session.scalars(board.runs_of(project, branch).limit(board.MAX_RUNS))),
        state=query.shown,
        form=form,
        formats=FORMATS,
        reasons=DISMISSAL_REASONS,
        trend=trend.open_by_day(project.id, branch),
    )


def _filters() -> dict[str, list[str]]:
    return {name: [text for text in request.args.getlist(name) if text in FILTERS[name]] for name in FILTERS}


def _dashboard(project: Project, pipeline: Pipeline | None) -> str:
    """Show the findings of one pipeline."""
    filters = _filters()
    scope = "all" if request.args.get("scope") == "all" else "dismissed"
    others = {name: values for name, values in filters.items() if name != "severity"}
    page = read_page(queries.findings_of(pipeline, scope=scope, **filters), request.args.get("page"))
    queries.prepare(page.rows)
    return _render_dashboard(
        project,
        pipeline,
        page=page,
        rows=board.listed_findings(page.rows),
        wanted=filters,
        scope=scope,
        counts=queries.counts_of(queries.findings_of(pipeline, scope=scope, **others)),
        branch=None,
    )


def _render_dashboard(project: Project, pipeline: Pipeline | None, **values: Any) -> str:
    return render_template(
        "vulnerabilities/dashboard.html",
        project=project,
        pipeline=pipeline,
        severities=WORST_FIRST,
        options=FILTERS,
        report_types=REPORT_TYPES,
        where_of=where_of,
        states=STATE_NAMES,
        chart=charts.last_pipelines(project),
        **values,
    )
