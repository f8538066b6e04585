"""Uploads at the addresses of pages, and uploads from fields of pages."""

from __future__ import annotations

from flask import Response, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, judge
from project_service.access.api import json_response
from project_service.access.identity import caller, current_user
from project_service.access.pages import PageBlueprint
from project_service.access.references import text_references
from project_service.access.roles import find_project
from project_service.areas.uploads import service, serving
from project_service.domain.projects import Project
from project_service.kit.http.errors import BadParameters
from project_service.kit.texts import markdown

pages = PageBlueprint("upload_pages", __name__)
NOTHING = "*Nothing to preview.*"


@pages.get("/-/project/<int:project_id>/uploads/<secret>/<filename>", is_long=True)
@pages.allow(Ability.ANYBODY)
def show_upload(project_id: int, secret: str, filename: str) -> Response:
    """Show an upload at the address that stays when the project is renamed, to those who see the project."""
    project = find_project(str(project_id))
    judge(caller(), Ability.READ_PROJECT, project)
    return serving.respond(service.find_by_secret(project, secret, filename))


@pages.get("/<path:project>/uploads/<secret>/<filename>", is_long=True)
@pages.allow(Ability.READ_PROJECT)
def show_upload_at_path(project: Project, secret: str, filename: str) -> Response:
    """Show an upload at the address below that of its project."""
    return serving.respond(service.find_by_secret(project, secret, filename))


@pages.post("/<path:project>/-/preview")
@pages.own_transactions  # nothing is written: writers do not wait for the rendering
@pages.signed_in
@pages.allow(Ability.READ_PROJECT)
def preview_text(project: Project) -> str:
    """Render a text as the pages of the project would show it, for scripts."""
    text = request.form.get("text", "")
    text_references.prepare(caller(), project, [text])
    return markdown.block(text) or markdown.block(NOTHING)


@pages.post("/<path:project>/-/uploads")
@pages.large_body(service.max_body_bytes)
@pages.signed_in
@pages.allow(Ability.UPLOAD_FILES)
def create_upload(project: Project) -> ResponseReturnValue:
    """Upload a file that was pasted or dropped into a field, for scripts."""
    file = request.files.get("file")
    if file is None:
        raise BadParameters("file is missing")
    return json_response(service.described(service.add_upload(current_user(), project, file)), 201)
