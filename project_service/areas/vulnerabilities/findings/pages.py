"""Pages of a finding, the dependencies, the upload of a report; routes for feedback as clients of the pages send it."""

from __future__ import annotations

from typing import Any

from flask import Response, flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, allowed, judge
from project_service.access.api import json_response, no_content
from project_service.access.identity import caller, current_user
from project_service.access.pages import PageBlueprint
from project_service.areas.vulnerabilities.findings import dependencies, queries, service
from project_service.areas.vulnerabilities.findings.forms import DismissForm, UploadForm
from project_service.areas.vulnerabilities.findings.schemas import FeedbackEnvelopeSchema, FeedbackSchema, blob_path
from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.areas.vulnerabilities.formats.documents.unpacking import MAX_REPORT_BYTES
from project_service.areas.vulnerabilities.ingestion import ingestion, uploads
from project_service.areas.vulnerabilities.locations import lines_of
from project_service.areas.vulnerabilities.models import DISMISSAL_REASONS, ISSUE, Finding
from project_service.areas.vulnerabilities.report_types import REPORT_TYPES
from project_service.domain.projects import Project
from project_service.domain.repositories import contents
from project_service.kit.http.errors import Forbidden, Invalid, Unprocessable
from project_service.kit.http.forms import Form
from project_service.kit.http.pagination import read_page
from project_service.kit.http.parameters import parameters
from project_service.kit.http.schemas import load

pages = PageBlueprint("vulnerability_pages", __name__)
HOME = "/-/security"
FEEDBACK = "/<path:project>/-/vulnerability_feedback"
REPORTS = f"/<path:project>{HOME}/reports/new"
DEPENDENCIES = f"/<path:project>{HOME}/dependencies"
ONE = f"/<path:project>{HOME}/findings/<int:finding_id>"
ENVELOPE = FeedbackEnvelopeSchema()


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


@pages.get(DEPENDENCIES)
@pages.signed_in
@pages.allow(Ability.READ_VULNERABILITIES)
def list_dependencies(project: Project) -> str:
    """Show the dependencies of a branch, with the findings about them."""
    branch = request.args.get("branch") or queries.default_branch(project)
    search, manager = request.args.get("search", "").strip(), request.args.get("package_manager", "")
    license_name = request.args.get("license", "")
    filters = {"package_manager": [manager] if manager else [], "license": [license_name] if license_name else []}
    components = dependencies.components_of(project, branch, search=search, **filters)
    page = read_page(components, request.args.get("page"))
    return render_template(
        "vulnerabilities/dependencies.html",
        project=project,
        branch=branch,
        search=search,
        manager=manager,
        managers=dependencies.managers_of(project, branch),
        license_name=license_name,
        licenses=dependencies.licenses_of(project, branch),
        unknown_license=dependencies.UNKNOWN_LICENSE,
        page=page,
        dependencies=dependencies.with_findings(project, branch, page.rows),
    )


@pages.get(ONE, reads_repository=True)
@pages.signed_in
@pages.allow(Ability.READ_VULNERABILITIES)
def show_finding(project: Project, finding_id: int) -> str:
    """Show one finding."""
    return _page(project, queries.find_finding(project, finding_id), DismissForm())


@pages.post(f"{ONE}/dismiss", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.DISMISS_VULNERABILITIES)
def dismiss_finding(project: Project, finding_id: int) -> ResponseReturnValue:
    """Dismiss a finding."""
    finding, form = queries.find_finding(project, finding_id), DismissForm()
    values = {"dismissal_reason": form.dismissal_reason.data, "comment": form.comment.data}
    if form.accepted(lambda: service.dismiss(current_user(), project, finding, **values)):
        return redirect(_address(finding))
    return _page(project, queries.find_finding(project, finding_id), form), 422


@pages.post(f"{ONE}/undo", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.DISMISS_VULNERABILITIES)
def restore_finding(project: Project, finding_id: int) -> ResponseReturnValue:
    """Delete every dismissal that matches a finding."""
    finding = queries.find_finding(project, finding_id)

    def undo() -> None:
        for feedback in queries.dismissals_meaning(finding):
            service.undo_dismissal(project, feedback)

    return _acted(project, finding, undo)


@pages.post(f"{ONE}/issue", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.DISMISS_VULNERABILITIES)
def create_issue(project: Project, finding_id: int) -> ResponseReturnValue:
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
def create_report(project: Project) -> ResponseReturnValue:
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


def _acted(project: Project, finding: Finding, act: Any) -> ResponseReturnValue:
    form = Form()
    if form.accepted(act):
        return redirect(_address(finding))
    dismiss_form = DismissForm(formdata=None)
    dismiss_form.problems = form.problems
    return _page(project, queries.find_finding(project, finding.id), dismiss_form), 422


def _page(project: Project, finding: Finding, form: DismissForm) -> str:
    queries.prepare([finding])
    return render_template(
        "vulnerabilities/show.html",
        project=project,
        finding=finding,
        report_types=REPORT_TYPES,
        reasons=DISMISSAL_REASONS,
        lines=lines_of(finding.data["location"]),
        source=_source(project, finding),
        is_markdown=finding.report.format not in uploads.GITLAB_FORMATS,
        dismissals=queries.dismissals_meaning(finding),
        form=form,
    )


def _source(project: Project, finding: Finding) -> str:
    """Return the path of the line of a finding, if the repository has it at the commit or on the branch; else empty."""
    file, pipeline = finding.data["location"].get("file"), finding.pipeline
    if not isinstance(file, str) or not file:
        return ""
    revisions = [revision for revision in (pipeline.sha, pipeline.ref) if revision]
    revision = contents.revision_with_file(project, revisions, file)
    return "" if revision is None else blob_path(finding, revision)


def _upload_page(project: Project, form: UploadForm) -> str:
    return render_template("vulnerabilities/upload.html", project=project, form=form)


def _address(finding: Finding) -> str:
    return f"/{finding.pipeline.project.full_path}{HOME}/findings/{finding.id}"
