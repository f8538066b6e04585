"""The general settings of a project: details, features, path, transfer, archiving, deletion."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, allowed, judge
from project_service.access.identity import caller, current_user
from project_service.access.page_parts import sections
from project_service.access.pages import PageBlueprint
from project_service.areas.projects import queries, service
from project_service.areas.projects.settings_forms import (
    SERVED,
    DeleteForm,
    DetailsForm,
    FeaturesForm,
    PathForm,
    TransferForm,
)
from project_service.domain.namespaces import find_namespace
from project_service.domain.projects import Project
from project_service.kit.http import urls
from project_service.kit.http.errors import Invalid
from project_service.kit.http.forms import Form

pages = PageBlueprint("project_settings_pages", __name__)
BASE_PATH = "/<path:project>/-/settings/general"


def fill_details(project: Project) -> dict[str, Any]:
    """Return the template variables of the section on details."""
    return {"details_form": DetailsForm.of(project)}


def fill_features(project: Project) -> dict[str, Any]:
    """Return the template variables of the section on features."""
    return {"features_form": FeaturesForm.of(project), "served": SERVED}


def fill_path(project: Project) -> dict[str, Any]:
    """Return the template variables of the section on the path."""
    return {"path_form": PathForm(formdata=None, obj=project), "base_url": urls.base_url()}


def fill_transfer(project: Project) -> dict[str, Any]:
    """Return the template variables of the section on the namespace."""
    return {"transfer_form": _transfer_form(project, formdata=None)}


def fill_archive(project: Project) -> dict[str, Any]:
    """Return the template variables of the section on archiving."""
    return {"archive_form": Form(formdata=None)}


def fill_delete(project: Project) -> dict[str, Any]:
    """Return the template variables of the section on deletion."""
    return {"delete_form": DeleteForm(formdata=None)}


for _name, _title, _order, _ability, _fill in (
    ("details", "Name, description and visibility", 10, Ability.ADMIN_PROJECT, fill_details),
    ("features", "Features", 20, Ability.ADMIN_PROJECT, fill_features),
    ("path", "Change path", 85, Ability.ADMIN_PROJECT, fill_path),
    ("transfer", "Transfer project", 90, Ability.OWN_PROJECT, fill_transfer),
    ("archive", "Archive project", 92, Ability.OWN_PROJECT, fill_archive),
    ("delete", "Delete project", 95, Ability.OWN_PROJECT, fill_delete),
):
    sections.add(sections.Section("general", _name, _title, _order, _ability, f"projects/settings/{_name}.html", _fill))


@pages.post(f"{BASE_PATH}/details")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT)
def save_details(project: Project) -> ResponseReturnValue:
    """Change name, description, topics, default branch and visibility."""
    form = DetailsForm()
    owner = allowed(caller(), Ability.OWN_PROJECT, project)
    if form.accepted(lambda: _update(project, form.fields(owner=owner))):
        return _saved(project, "details", "The project was changed.")
    if not owner:
        form.name.data, form.visibility.data = project.name, DetailsForm.of(project).visibility.data
    return sections.show(project, "general", status=422, details_form=form)


@pages.post(f"{BASE_PATH}/features")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT)
def save_features(project: Project) -> ResponseReturnValue:
    """Switch features on or off."""
    form = FeaturesForm.sent(project)
    if form.accepted(lambda: _update(project, form.fields())):
        return _saved(project, "features", "The features were changed.")
    return sections.show(project, "general", status=422, features_form=form)


@pages.post(f"{BASE_PATH}/path")
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT)
def save_path(project: Project) -> ResponseReturnValue:
    """Change the last part of the address."""
    form = PathForm()
    if form.accepted(lambda: _update(project, {"path": (form.path.data or "").strip()})):
        return _saved(project, "path", f"The project is now at {project.full_path}.")
    return sections.show(project, "general", status=422, path_form=form)


@pages.post(f"{BASE_PATH}/transfer")
@pages.signed_in
@pages.allow(Ability.OWN_PROJECT)
def transfer(project: Project) -> ResponseReturnValue:
    """Move a project to another namespace."""
    form = _transfer_form(project)

    def move() -> None:
        namespace = find_namespace(form.namespace.data)
        judge(caller(), Ability.CREATE_PROJECT, namespace)
        service.transfer_project(project, namespace)

    if form.accepted(move):
        flash(f"The project is now at {project.full_path}.")
        may_still = allowed(caller(), Ability.ADMIN_PROJECT, project)
        return redirect(f"/{project.full_path}/-/settings/general" if may_still else f"/{project.full_path}")
    return sections.show(project, "general", status=422, transfer_form=form)


@pages.post(f"{BASE_PATH}/archive")
@pages.signed_in
@pages.allow(Ability.OWN_PROJECT)
def archive(project: Project) -> ResponseReturnValue:
    """Archive a project."""
    service.archive_project(project, archived=True)
    return _saved(project, "archive", "The project is archived.")


@pages.post(f"{BASE_PATH}/unarchive")
@pages.signed_in
@pages.allow(Ability.OWN_PROJECT)
def unarchive(project: Project) -> ResponseReturnValue:
    """Make an archived project active again."""
    service.archive_project(project, archived=False)
    return _saved(project, "archive", "The project is active again.")


@pages.post(f"{BASE_PATH}/delete")
@pages.signed_in
@pages.allow(Ability.OWN_PROJECT)
def delete(project: Project) -> ResponseReturnValue:
    """Delete a project whose full path was typed."""
    form = DeleteForm()

    def remove() -> None:
        if (form.typed_path.data or "").strip() != project.full_path:
            raise Invalid(typed_path=f"has to be {project.full_path}")
        service.delete_project(project)

    if form.accepted(remove):
        flash(f"The project {project.full_path} is being deleted.")
        return redirect("/")
    return sections.show(project, "general", status=422, delete_form=form)


def _update(project: Project, fields: dict[str, Any]) -> None:
    service.check_changes(caller(), project, fields)
    service.update_project(caller(), project, **fields)


def _transfer_form(project: Project, **options: Any) -> TransferForm:
    form = TransferForm(**options)
    form.set_namespaces(queries.namespaces_for_projects(caller(), current_user()), project.namespace_id)
    return form


def _saved(project: Project, section: str, text: str) -> ResponseReturnValue:
    flash(text)
    return redirect(f"/{project.full_path}/-/settings/general#{section}")
