"""API of vulnerability findings and of the upload of security reports."""

from __future__ import annotations

from typing import Any

from flask import Response

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint, WithSchema, json_response
from project_service.areas.vulnerabilities.exports.files import export_response
from project_service.areas.vulnerabilities.findings import dependencies, queries
from project_service.areas.vulnerabilities.findings.schemas import (
    DependencyFilterSchema,
    DependencySchema,
    FindingFilterSchema,
    FindingSchema,
    IngestedSchema,
    ReportUploadSchema,
)
from project_service.areas.vulnerabilities.formats.documents.unpacking import MAX_REPORT_BYTES
from project_service.areas.vulnerabilities.ingestion import ingestion
from project_service.areas.vulnerabilities.ingestion.uploads import Ingested
from project_service.areas.vulnerabilities.tracking import gate
from project_service.areas.vulnerabilities.tracking import queries as tracking_queries
from project_service.areas.vulnerabilities.tracking.schemas import (
    FindingExportSchema,
    SecurityGateFilterSchema,
    SecurityGateSchema,
    TrackedFindingFilterSchema,
    TrackedFindingSchema,
)
from project_service.domain.projects import Project
from project_service.kit.http.errors import Invalid, NotFound
from project_service.kit.http.pagination import OrderedRows

GATE_OPTIONS = ("fail_on", "fail_on_unknown", "list_new")

api = ApiBlueprint("vulnerabilities", __name__, description="Vulnerability findings of projects.")


class RenamedRoute(NotFound):
    """A route that was renamed; the message names the new one."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.message = f"404 Not Found: use {name}"


@api.get("/projects/<project>/vulnerability_findings")
@api.signed_in
@api.arguments(FindingFilterSchema)
@api.allow(Ability.READ_VULNERABILITIES)
@api.response(200, FindingSchema(many=True))
@api.paged
def list_vulnerability_findings(project: Project, fields: dict[str, Any]) -> WithSchema:
    """List the findings of a pipeline, by default of the newest one of the default branch."""
    pipeline = queries.requested_pipeline(project, fields.pop("pipeline_id", None))
    return WithSchema(FindingSchema, queries.findings_of(pipeline, **fields), queries.prepare)


@api.get("/projects/<project>/tracked_findings")
@api.signed_in
@api.arguments(TrackedFindingFilterSchema)
@api.allow(Ability.READ_VULNERABILITIES)
@api.response(200, TrackedFindingSchema(many=True))
@api.paged
def list_tracked_findings(project: Project, fields: dict[str, Any]) -> WithSchema:
    """List the findings of a branch across its reports, with their state, by default those of the default branch."""
    statement = tracking_queries.tracked_findings_of(project, fields.pop("branch", None), **fields)
    return WithSchema(TrackedFindingSchema, OrderedRows(statement), tracking_queries.prepare)


@api.get("/projects/<project>/tracked_findings/export", is_long=True)
@api.signed_in
@api.arguments(FindingExportSchema)
@api.allow(Ability.READ_VULNERABILITIES)
@api.response(200, content_type="*/*")
def export_tracked_findings(project: Project, fields: dict[str, Any]) -> Response:
    """Export the findings of a branch as CSV, SARIF or CycloneDX (VEX), by default those of the default branch."""
    return export_response(project, fields.pop("format"), fields.pop("branch", None), fields)


@api.get("/projects/<project>/security_gate")
@api.signed_in
@api.arguments(SecurityGateFilterSchema)
@api.allow(Ability.READ_VULNERABILITIES)
@api.response(200, SecurityGateSchema)
def show_security_gate(project: Project, fields: dict[str, Any]) -> dict[str, Any]:
    """Judge what a pipeline has that the default branch did not have before it."""
    return gate.judge(project, **fields)


@api.get("/projects/<project>/dependencies")
@api.signed_in
@api.arguments(DependencyFilterSchema)
@api.allow(Ability.READ_VULNERABILITIES)
@api.response(200, DependencySchema(many=True))
@api.paged
def list_dependencies(project: Project, fields: dict[str, Any]) -> WithSchema:
    """List the components of the newest bills of materials of a branch, by default of the default branch."""
    branch = fields.pop("branch", None)
    components = dependencies.components_of(project, branch, **fields)
    return WithSchema(DependencySchema, components, lambda rows: dependencies.with_findings(project, branch, rows))


@api.get("/projects/<project>/vulnerabilities")
@api.allow(Ability.ANYBODY)
@api.response(200)
def list_vulnerabilities(**_url: str) -> None:
    """Return the new name of the list of findings."""
    raise RenamedRoute("vulnerability_findings")


@api.post("/projects/<project>/security_reports")
@api.large_body(lambda: MAX_REPORT_BYTES)
@api.signed_in
@api.arguments(ReportUploadSchema)
@api.allow(Ability.CREATE_SECURITY_REPORTS)
@api.response(201, IngestedSchema)
def create_security_report(project: Project, fields: dict[str, Any]) -> Ingested | Response:
    """Ingest a report of a scanner, whose format is found out, and store its findings in a pipeline."""
    file, report_type = fields.pop("file"), fields.pop("report_type", None)
    ref, sha = (_either(fields, *names) for names in (("ref", "branch"), ("sha", "commit")))
    options = {name: value for name in GATE_OPTIONS if (value := fields.pop(name, None)) not in (None, False)}
    ingested = ingestion.ingest(
        project, file, report_type, **fields | {"ref": ref, "sha": sha}, gate_options=options or None
    )
    return json_response(IngestedSchema.dump_value(ingested)) if ingested.pipeline_id is None else ingested


def _either(fields: dict[str, Any], name: str, other_name: str) -> str | None:
    """Return a parameter that has two names.

    Raises:
        Invalid: both are given, and differ.

    """
    value, other = fields.pop(name, None), fields.pop(other_name, None)
    if value is not None and other is not None and value != other:
        raise Invalid(**{other_name: f"is not the {name}"})
    value = other if value is None else value
    return None if value is None else str(value)
