"""API of vulnerability findings and of the upload of security reports."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.areas.vulnerabilities import ingestion, queries
from project_service.areas.vulnerabilities.ingestion import Ingested
from project_service.areas.vulnerabilities.schemas import (
    FindingFilterSchema,
    FindingSchema,
    IngestedSchema,
    ReportUploadSchema,
)
from project_service.domain.projects import Project
from project_service.kit.http.errors import NotFound

api = ApiBlueprint("vulnerabilities", __name__, description="Vulnerability findings of projects.")
MAX_REPORT_BYTES = 512 << 20


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
    pipeline = queries.pipeline_meant(project, fields.pop("pipeline_id", None))
    return WithSchema(FindingSchema, queries.findings_of(pipeline, **fields), queries.prepare)


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
def create_security_report(project: Project, fields: dict[str, Any]) -> Ingested:
    """Ingest a report of a scanner into a new pipeline, or into an existing one."""
    return ingestion.ingest(project, fields.pop("file"), fields.pop("report_type"), **fields)
