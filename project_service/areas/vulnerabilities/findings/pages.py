"""Pages: security dashboard, finding, upload of a report; routes for feedback as clients of the pages send it."""

from __future__ import annotations

from typing import Any

from flask import Response, flash, redirect, render_template, request

from project_service.access import navigation
from project_service.access.abilities import Ability, allowed, judge
from project_service.access.api import json_response, no_content
from project_service.access.identity import caller, current_user
from project_service.access.pages import PageBlueprint
from project_service.areas.vulnerabilities.findings import charts, dependencies, queries, service
from project_service.areas.vulnerabilities.findings.forms import DismissForm, UploadForm
from project_service.areas.vulnerabilities.findings.schemas import FeedbackEnvelopeSchema, FeedbackSchema, blob_path
from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.areas.vulnerabilities.formats.documents.unpacking import MAX_REPORT_BYTES
from project_service.areas.vulnerabilities.ingestion import ingestion, uploads
from project_service.areas.vulnerabilities.levels import Confidence, FindingSeverity
from project_service.areas.vulnerabilities.locations import lines_of, where_of
from project_service.areas.vulnerabilities.models import DISMISSAL_REASONS, ISSUE, Finding, Pipeline
from project_service.areas.vulnerabilities.report_types import REPORT_TYPES
from project_service.areas.vulnerabilities.tracking import board
from project_service.areas.vulnerabilities.tracking import queries as tracking_queries
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http.errors import Forbidden, Invalid, NotFound, Unprocessable
from project_service.kit.http.forms import Form
from project_service.kit.http.pagination import read_page
from project_service.kit.http.parameters import parameters
from project_service.kit.http.schemas import load

pages = PageBlueprint("vulnerability_pages", __name__)
HOME = "/-/security"
FEEDBACK = "/<path:project>/-/vulnerability_feedback"
DASHBOARD = f"/<path:project>{HOME}/dashboard"
REPORTS = f"/<path:project>{HOME}/reports/new"
DEPENDENCIES = f"/<path:project>{HOME}/dependencies"
ONE = f"/<path:project>{HOME}/findings/<int:finding_id>"
WORST_FIRST = sorted(FindingSeverity, reverse=True)
SUREST_FIRST = sorted(Confidence, reverse=True)
# filters of the list with their labels
FILTERS: dict[str, dict[str, str]] = {
    "severity": {level.text: level.title for level in WORST_FIRST},
    "confidence": {level.text: level.title for level in SUREST_FIRST},
    "report_type": REPORT_TYPES,
}
OPEN = ("detected",)
STATES_SHOWN = {
    "dismissed": ("dismissed",),
    "resolved": ("resolved",),
    "all": ("detected", "dismissed", "resolved"),
}
ENVELOPE = FeedbackEnvelopeSchema()

navigation.add(
    navigation.NavigationEntry(
        *("Security", f"{HOME}/dashboard", 50, Ability.READ_VULNERABILITIES), within=(f"{HOME}/", "/-/pipelines")
    )
)


@pages.post(FEEDBACK)
@pages.for_programs
@pages.signed_in
@pages.allow(Ability.DISMISS_VULNERABILITIES)
def create_feedback(project: Project) -> Response:
    """Create feedback on a finding, or change it."""
    fields = load(ENVELOPE, parameters=parameters())["vulnerability_feedback"]
    if fields.get("feedback_type") == ISSUE:
        judge(caller(), Ability.CREATE_ISSUES, project)
    feedback, is_new = service.write_feedback(current_user(), project, **fields)
    return json_response(FeedbackSchema.dump_value(feedback), 201 if is_new else 200)


@pages.delete(f"{FEEDBACK}/<int:feedback_id>")
@pages.for_programs
@pages.signed_in
@pages.allow(Ability.DISMISS_VULNERABILITIES)
def delete_feedback(project: Project, feedback_id: int) -> Response:
    """Delete a dismissal."""
    service.undo_dismissal(project, queries.find_dismissal(project, feedback_id))
    return no_content()


@pages.get(DASHBOARD)
@pages.signed_in
@pages.allow(Ability.READ_VULNERABILITIES)
def show_dashboard(project: Project) -> str:
    """Show the findings of a project."""
    number = request.args.get("pipeline_id")
    if number:
        pipeline = queries.requested_pipeline(project, number)
        if pipeline is None:
            raise NotFound("Pipeline")
        return _dashboard(project, pipeline)
    branch = request.args.get("branch") or queries.default_branch(project)
    newest = db.session.scalar(board.runs_of(project, branch).limit(1))
    if newest is None or not board.is_tracked(project, branch):  # reports of releases that tracked nothing
        return _dashboard(project, newest)
    return _branch(project, branch, newest)


@pages.get("/<path:project>/-/pipelines")
@pages.signed_in
@pages.allow(Ability.READ_VULNERABILITIES)
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


@pages.get("/<path:project>/-/pipelines/<int:pipeline_id>")
@pages.signed_in
@pages.allow(Ability.READ_VULNERABILITIES)
def show_pipeline(project: Project, pipeline_id: int) -> str:
    """Show the findings of a pipeline, at the path that feedback has for it."""
    pipeline = queries.requested_pipeline(project, str(pipeline_id))
    if pipeline is None:
        raise NotFound("Pipeline")
    return _dashboard(project, pipeline)


def _branch(project: Project, branch: str, newest: Pipeline) -> str:
    """Show the findings of a branch, whichever reports they are from."""
    filters: dict[str, Any] = _filters()
    shown = request.args.get("state", "")
    states = STATES_SHOWN.get(shown, OPEN) if request.args.get("scope") != "all" else ("detected", "dismissed")
    scanner, only_new = request.args.get("scanner", ""), request.args.get("new") == "1"
    options: dict[str, Any] = {"state": states, "scanner": scanner, "only_new": only_new}
    others = {name: values for name, values in filters.items() if name != "severity"}
    page = read_page(
        tracking_queries.tracked_findings_of(project, branch, **options, **filters), request.args.get("page")
    )
    tracking_queries.prepare(page.rows)
    return _render_dashboard(
        project,
        newest,
        page=page,
        rows=board.listed_states(page.rows),
        wanted=filters,
        counts=board.counts_of(tracking_queries.tracked_findings_of(project, branch, **options, **others)),
        branch=branch,
        branches=board.branches_of(project),
        scanners=board.scanners_of(project),
        runs=list(db.session.scalars(board.runs_of(project, branch).limit(board.MAX_RUNS))),
        state=shown if shown in STATES_SHOWN else "",
        scanner=scanner,
        only_new=only_new,
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
        states=STATES_SHOWN,
        chart=charts.last_pipelines(project),
        **values,
    )


@pages.get(DEPENDENCIES)
@pages.signed_in
@pages.allow(Ability.READ_VULNERABILITIES)
def list_dependencies(project: Project) -> str:
    """Show the dependencies of a branch, with the findings about them."""
    branch = request.args.get("branch") or queries.default_branch(project)
    search, manager = request.args.get("search", "").strip(), request.args.get("package_manager", "")
    found = dependencies.components_of(project, branch, search=search, package_manager=[manager] if manager else ())
    page = read_page(found, request.args.get("page"))
    return render_template(
        "vulnerabilities/dependencies.html",
        project=project,
        branch=branch,
        search=search,
        manager=manager,
        managers=dependencies.managers_of(project, branch),
        page=page,
        dependencies=dependencies.with_findings(project, branch, page.rows),
    )


@pages.get(ONE)
@pages.signed_in
@pages.allow(Ability.READ_VULNERABILITIES)
def show_finding(project: Project, finding_id: int) -> str:
    """Show one finding."""
    return _page(project, queries.find_finding(project, finding_id), DismissForm())


@pages.post(f"{ONE}/dismiss")
@pages.signed_in
@pages.allow(Ability.DISMISS_VULNERABILITIES)
def dismiss_finding(project: Project, finding_id: int) -> Any:
    """Dismiss a finding."""
    finding, form = queries.find_finding(project, finding_id), DismissForm()
    values = {"dismissal_reason": form.dismissal_reason.data, "comment": form.comment.data}
    if form.accepted(lambda: service.dismiss(current_user(), project, finding, **values)):
        return redirect(_address(finding))
    return _page(project, queries.find_finding(project, finding_id), form), 422


@pages.post(f"{ONE}/undo")
@pages.signed_in
@pages.allow(Ability.DISMISS_VULNERABILITIES)
def undo_dismissal(project: Project, finding_id: int) -> Any:
    """Delete every dismissal that matches a finding."""
    finding = queries.find_finding(project, finding_id)

    def undo() -> None:
        for feedback in queries.dismissals_meaning(finding):
            service.undo_dismissal(project, feedback)

    return _acted(project, finding, undo)


@pages.post(f"{ONE}/issue")
@pages.signed_in
@pages.allow(Ability.DISMISS_VULNERABILITIES)
def create_issue(project: Project, finding_id: int) -> Any:
    """Create an issue for a finding."""
    finding = queries.find_finding(project, finding_id)
    if not allowed(caller(), Ability.CREATE_ISSUES, project):
        raise Forbidden
    return _acted(project, finding, lambda: service.create_issue(current_user(), project, finding))


@pages.get(REPORTS)
@pages.signed_in
@pages.allow(Ability.CREATE_SECURITY_REPORTS)
def new_report(project: Project) -> str:
    """Show the form for a report."""
    return _upload_page(project, UploadForm())


@pages.post(REPORTS)
@pages.large_body(lambda: MAX_REPORT_BYTES)
@pages.signed_in
@pages.allow(Ability.CREATE_SECURITY_REPORTS)
def create_report(project: Project) -> Any:
    """Ingest a report."""
    form = UploadForm()
    ingested: list[uploads.Ingested] = []

    def ingest() -> None:
        if not form.file.data:
            raise Invalid(file="can't be blank")
        names = ("ref", "sha", "category", "source_root")
        parameters: dict[str, Any] = {name: (form[name].data or "").strip() or None for name in names}
        try:
            ingested.append(
                ingestion.ingest(project, form.file.data.stream, form.report_type.data or None, **parameters)
            )
        except BrokenReport as error:
            raise Unprocessable([str(error)]) from error

    if form.accepted(ingest):
        flash(uploads.summary(ingested[0]))
        return redirect(f"/{project.full_path}{HOME}/dashboard?pipeline_id={ingested[0].pipeline_id}")
    return _upload_page(project, form), 422


def _acted(project: Project, finding: Finding, act: Any) -> Any:
    form = Form()
    if form.accepted(act):
        return redirect(_address(finding))
    shown = DismissForm(formdata=None)
    shown.problems = form.problems
    return _page(project, queries.find_finding(project, finding.id), shown), 422


def _page(project: Project, finding: Finding, form: DismissForm) -> str:
    queries.prepare([finding])
    return render_template(
        "vulnerabilities/show.html",
        project=project,
        finding=finding,
        report_types=REPORT_TYPES,
        reasons=DISMISSAL_REASONS,
        lines=lines_of(finding.data["location"]),
        source=blob_path(finding),
        is_markdown=finding.report.format not in uploads.GITLAB_FORMATS,
        dismissals=queries.dismissals_meaning(finding),
        form=form,
    )


def _upload_page(project: Project, form: UploadForm) -> str:
    return render_template("vulnerabilities/upload.html", project=project, form=form)


def _address(finding: Finding) -> str:
    return f"/{finding.pipeline.project.full_path}{HOME}/findings/{finding.id}"
