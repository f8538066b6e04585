"""Pages of imports and exports."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

from flask import redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.identity import caller, current_user
from project_service.access.page_parts import panels, sections
from project_service.access.pages import PageBlueprint
from project_service.areas.projects.queries import namespaces_for_projects
from project_service.areas.projects.service import delete_project, path_from
from project_service.domain import instance_settings
from project_service.domain.paths import path_rules
from project_service.domain.projects import Project
from project_service.kit import mail
from project_service.kit.http.errors import BodyTooLarge, InsufficientStorage, Invalid, UnknownRoute, Unprocessable
from project_service.kit.http.forms import Form, confirmation
from project_service.kit.security.outgoing_http import rules
from project_service.transfers import progress, queries, service
from project_service.transfers.forms import ImportForm
from project_service.transfers.models import FAILED, FINISHED, SCHEDULED, STARTED
from project_service.transfers.remote import downloads
from project_service.transfers.remote.sending import NoExport, send_export

pages = PageBlueprint("transfer_pages", __name__)

NOT_AN_ARCHIVE = "has to be a project export, a file that ends in “.gz”"
NOT_GZIP = "is not a project export: it does not begin like a gzip file"
GZIP_MAGIC = b"\x1f\x8b"
UP_TO_HOST = re.compile(r"^(?P<scheme>(?:[a-z][a-z0-9+.-]*://)?).*@", re.IGNORECASE | re.DOTALL)
SHOWN_STATUSES = (SCHEDULED, STARTED, FAILED)


def fill_project(project: Project) -> dict[str, Any]:
    """The panel about the import on the page of a project."""
    status = project.import_status if project.import_status in SHOWN_STATUSES else None
    left_out = queries.count_recent_failures(project) if project.import_status == FINISHED else 0
    return {"status": status, "left_out": left_out, "full_path": project.full_path}


def fill_settings(project: Project) -> dict[str, Any]:
    """The section about exports in the settings of a project."""
    live, newest = queries.live_export_of(project), queries.newest_export_of(project)
    return {
        "live_export": live,
        "export_stage": progress.of_export(live) if live else None,
        "export_file": queries.file_of(project),
        "export_lifetime": queries.EXPORT_LIFETIME,
        "failed_export": newest if newest is not None and live is None and newest.error else None,
        "export_missing": False,
        "export_form": Form(formdata=None),
        "mails": mail.is_on(),
    }


panels.add(panels.Panel("project", 10, "transfers/panel.html", fill_project))
sections.add(
    sections.Section(
        "general",
        "export",
        "Export project",
        80,
        Ability.EXPORT_PROJECT,
        "transfers/section.html",
        fill_settings,
        service.exports_are_on,
    )
)


@pages.get("/projects/new/import")
@pages.signed_in
@pages.allow(Ability.IMPORT_PROJECTS)
def new_import() -> ResponseReturnValue:
    """Show the form for a project from an archive."""
    return render_template("transfers/new.html", form=_form(), largest=instance_settings.setting("max_import_size"))


@pages.post("/projects/new/import", sends_requests=True)
@pages.signed_in
@pages.allow(Ability.IMPORT_PROJECTS)
@pages.large_body(service.largest_body)
def create_import() -> ResponseReturnValue:
    """Create a project and enqueue the import of its archive."""
    form = _form()
    if accepted := form.accepted(lambda: _import(form)):
        return redirect(f"/{accepted.result.full_path}/-/import")
    if form.remote:
        form.url.data = _without_credentials((form.url.data or "").strip())
    return render_template("transfers/new.html", form=form, largest=instance_settings.setting("max_import_size")), 422


@pages.get("/<path:project>/-/import")
@pages.signed_in
@pages.allow(Ability.READ_PROJECT)
def show_import(project: Project) -> ResponseReturnValue:
    """Show the progress or result of an import."""
    project_import = queries.import_of(project)
    return render_template(
        "transfers/import.html",
        project=project,
        project_import=project_import,
        stage=progress.of_import(project_import, project.import_status) if project_import else None,
        failures=queries.failures_of(project),
        failure_count=queries.count_failures(project),
    )


@pages.get("/<path:project>/-/import/delete")
@pages.signed_in
@pages.allow(Ability.OWN_PROJECT)
def ask_delete_failed(project: Project) -> ResponseReturnValue:
    """Ask for confirmation before the project of a failed import is deleted."""
    _check_failed(project)
    return confirmation(
        title="Delete project",
        question=f"Delete {project.full_path}, whose import has failed? Its slug is free again then.",
        button="Delete project",
        back=f"/{project.full_path}/-/import",
        project=project,
    )


@pages.post("/<path:project>/-/import/delete")
@pages.signed_in
@pages.allow(Ability.OWN_PROJECT)
def delete_failed(project: Project) -> ResponseReturnValue:
    """Delete the project of a failed import, and show the form for another import with the same name."""
    _check_failed(project)
    record = queries.import_of(project)
    path, name = project.path, project.name
    if record is not None and record.wanted_path:  # it had a temporary path
        path, name = record.wanted_path, record.wanted_path if name == path else name
    again = {"namespace_id": project.namespace_id, "name": name, "path": path}
    delete_project(project)
    return redirect(f"/projects/new/import?{urlencode(again)}")


@pages.post("/<path:project>/-/settings/general/export")
@pages.signed_in
@pages.allow(Ability.EXPORT_PROJECT)
def start_export(project: Project) -> ResponseReturnValue:
    """Start an export, unless one is running or queued."""
    service.check_exports()
    user = current_user()
    service.count_export(user)
    form = Form()

    def start() -> None:
        if queries.live_export_of(project) is None:
            service.start_export(user, project, description=None, upload=None)

    if form.accepted(start):
        return redirect(f"/{project.full_path}/-/settings/general#export")
    return sections.show(project, "general", status=422, export_form=form)


@pages.get("/<project_path:project>/download_export", is_long=True)
@pages.signed_in
@pages.allow(Ability.EXPORT_PROJECT)
def download_export(project: Project) -> ResponseReturnValue:
    """Download the archive of a project."""
    service.check_exports()
    service.count_download(current_user(), project)
    try:
        response = send_export(project)
    except NoExport as error:
        return sections.show(project, "general", status=error.status, export_missing=True)
    service.record_download(project)
    return response


def _check_failed(project: Project) -> None:
    """Raise ``UnknownRoute`` unless the import of the project has failed."""
    if project.import_status != FAILED:
        raise UnknownRoute


def _form() -> ImportForm:
    user = current_user()
    form = ImportForm(remote=service.remote_imports_are_on(user))
    if request.method == "GET":
        form.name.data, form.path.data = request.args.get("name", ""), request.args.get("path", "")
    form.set_namespaces(namespaces_for_projects(caller(), user))
    return form


def _without_credentials(url: str) -> str:
    """Return an address without credentials, also if it is not valid."""
    match = rules.URL.fullmatch(url)
    if match is None:
        return UP_TO_HOST.sub(r"\g<scheme>", url)
    start, end = match.span("userinfo")
    return url if start < 0 else url[:start] + url[end + 1 :]


def _import(form: ImportForm) -> Project:
    """Start an import; raises ``Invalid`` with the problems of each field."""
    user = current_user()
    name = (form.name.data or "").strip()
    path = form.path.data or path_from(name)
    if not path:
        raise Invalid(name=path_rules.BLANK)
    options = {"name": name, "path": path, "namespace_id": form.namespace_id.data, "overwrite": form.overwrite.data}
    options["override_params"] = form.overrides()
    service.count_import(user)
    try:
        if form.from_url:
            return _import_url(form, options)
        return _import_file(form, options)
    except service.ProjectRefused as error:
        raise Invalid(**error.problems) from error


def _import_file(form: ImportForm, options: dict[str, Any]) -> Project:
    if form.file.data is None:
        raise Invalid(file="has to be chosen")
    is_gzip = form.file.data.stream.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    form.file.data.stream.seek(0)
    if not is_gzip and (form.file.data.filename or "").endswith(".gz"):
        raise Invalid(file=NOT_GZIP)
    try:
        return service.import_file(current_user(), form.file.data, **options)
    except Unprocessable as error:
        raise Invalid(file=NOT_AN_ARCHIVE) from error
    except InsufficientStorage as error:
        raise Invalid(file="has no room on the disk of this server; tell the operator") from error
    except BodyTooLarge as error:
        raise Invalid(file=f"is larger than {instance_settings.setting('max_import_size')} MB") from error


def _import_url(form: ImportForm, options: dict[str, Any]) -> Project:
    url = (form.url.data or "").strip()
    if not url:
        raise Invalid(url=path_rules.BLANK)
    try:
        return service.import_url(current_user(), url, **options)
    except downloads.RemoteFileRefused as error:
        raise Invalid(url=f"cannot be used: {error}") from error
