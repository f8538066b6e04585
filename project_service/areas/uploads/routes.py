"""The API of uploads (uploads reference, section 1)."""

from __future__ import annotations

from typing import Any

from flask import Response
from sqlalchemy import Select
from sqlalchemy.orm import joinedload

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.guards import numeric
from project_service.access.identity import current_user
from project_service.areas.uploads import schemas, service, serving
from project_service.domain.project_files import ProjectFile, uploads_of
from project_service.domain.projects import Project
from project_service.kit.db.session import NO_LAZY_LOADING
from project_service.kit.http.errors import BadRequest, NotFound

api = ApiBlueprint("uploads", __name__, description="Files that texts and releases of a project refer to.")

UPLOADS = "/projects/<project>/uploads"
BY_SECRET = f"{UPLOADS}/<secret>/<filename>"
NO_UPLOAD = (
    "400 Bad request - The resource that you are attempting to access does not exist or you don't have permission to"
    " perform this action."
)


@api.post(UPLOADS)
@api.large_body(service.max_body_bytes)
@api.signed_in
@api.arguments(schemas.UploadCreateSchema)
@api.allow(Ability.UPLOAD_FILES)
@api.response(201, schemas.AttachmentSchema)
def create_upload(project: Project, fields: dict[str, Any]) -> dict[str, Any]:
    """Upload a file, for use in Markdown and in releases."""
    return service.described(service.add_upload(current_user(), project, fields["file"]))


@api.get(UPLOADS)
@api.signed_in
@api.allow(Ability.ADMIN_PROJECT)
@api.response(200, schemas.ProjectUploadSchema(many=True))
@api.paged
def list_uploads(project: Project) -> Select[ProjectFile]:
    """List the uploads of a project, the newest first."""
    listed = uploads_of(project).order_by(ProjectFile.id.desc())
    return listed.options(joinedload(ProjectFile.uploaded_by), NO_LAZY_LOADING)


@api.get(f"{UPLOADS}/<upload>", is_long=True)
@api.signed_in
@api.allow(Ability.ADMIN_PROJECT)
@api.response(200)
def show_upload(project: Project, upload: str) -> Response:
    """Download an upload by its id."""
    return serving.respond(service.find_upload(project, numeric(upload)))


@api.delete(f"{UPLOADS}/<upload>")
@api.signed_in
@api.allow(Ability.ADMIN_PROJECT)
@api.response(204)
def delete_upload(project: Project, upload: str) -> None:
    """Delete an upload by its id; texts that refer to it keep their links."""
    service.delete_upload(service.find_upload(project, numeric(upload)))


@api.get(BY_SECRET, is_long=True)
@api.allow(Ability.READ_PROJECT)
@api.response(200)
def show_upload_by_secret(project: Project, secret: str, filename: str) -> Response:
    """Download an upload by its secret and name."""
    return serving.respond(service.find_by_secret(project, secret, filename))


@api.delete(BY_SECRET)
@api.signed_in
@api.allow(Ability.ADMIN_PROJECT)
@api.response(204)
def delete_upload_by_secret(project: Project, secret: str, filename: str) -> None:
    """Delete an upload by its secret and name."""
    try:
        upload = service.find_by_secret(project, secret, filename)
    except NotFound as error:
        raise BadRequest(NO_UPLOAD) from error
    service.delete_upload(upload)
