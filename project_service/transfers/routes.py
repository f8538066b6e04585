"""The API of imports and exports (import reference, section 1; export reference, section 1)."""

from __future__ import annotations

from typing import Any

from flask import Response

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.identity import current_user
from project_service.domain.projects import Project
from project_service.transfers import queries, schemas, service
from project_service.transfers.remote.sending import send_export

api = ApiBlueprint("transfers", __name__, description="Project export and import.")


def with_import(project: Project) -> Project:
    """Return the project with its import and failures as attributes, for its schema."""
    project.record = queries.import_of(project)
    project.failures = queries.failures_of(project)
    return project


@api.post("/projects/import")
@api.signed_in
@api.allow(Ability.IMPORT_PROJECTS)
@api.large_body(service.largest_body)
@api.arguments(schemas.ImportCreateSchema)
@api.response(201, schemas.ImportStatusSchema)
def import_project(fields: dict[str, Any]) -> Project:
    """Import a project from an archive."""
    user = current_user()
    service.count_import(user)
    return with_import(service.import_file(user, fields.pop("file"), **fields))


@api.post("/projects/remote-import", sends_requests=True)
@api.signed_in
@api.allow(Ability.IMPORT_PROJECTS)
@api.arguments(schemas.RemoteImportCreateSchema)
@api.response(201, schemas.ImportStatusSchema)
def import_remote_project(fields: dict[str, Any]) -> Project:
    """Import a project from an archive that another server has."""
    user = current_user()
    service.count_import(user)
    service.check_remote_flag(user)
    return with_import(service.import_url(user, fields.pop("url"), **fields))


@api.get("/projects/<project>/import")
@api.signed_in
@api.allow(Ability.READ_PROJECT)
@api.response(200, schemas.ImportStatusSchema)
def show_import(project: Project) -> Project:
    """Show how the import of a project goes."""
    return with_import(project)


@api.post("/projects/<project>/export")
@api.first(service.check_exports)
@api.signed_in
@api.allow(Ability.EXPORT_PROJECT)
@api.arguments(schemas.ExportCreateSchema)
@api.response(202)
def start_export(project: Project, fields: dict[str, Any]) -> dict[str, str]:
    """Ask for an archive of a project."""
    user = current_user()
    service.count_export(user)
    service.start_export(user, project, fields.get("description"), fields.get("upload"))
    return {"message": "202 Accepted"}


@api.get("/projects/<project>/export")
@api.first(service.check_exports)
@api.signed_in
@api.allow(Ability.EXPORT_PROJECT)
@api.response(200, schemas.ExportStatusSchema)
def show_export(project: Project) -> Project:
    """Show how the export of a project goes."""
    project.record = queries.newest_export_of(project)
    project.export_status = queries.status_of(project)
    return project


@api.get("/projects/<project>/export/download", is_long=True)
@api.first(service.check_exports)
@api.signed_in
@api.allow(Ability.EXPORT_PROJECT)
@api.response(200)
def download_export(project: Project) -> Response:
    """Download the archive of a project."""
    service.count_download(current_user(), project)
    response = send_export(project)
    service.record_download(project)
    return response
