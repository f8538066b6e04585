"""The pages of environments."""

from __future__ import annotations

from flask import redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.page_parts import navigation, panels
from project_service.access.pages import PageBlueprint
from project_service.areas.environments import service
from project_service.areas.environments.forms import EnvironmentForm
from project_service.domain.projects import Project
from project_service.domain.tracker.environments import environments_of, find_environment
from project_service.kit.http.forms import confirmation
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("environment_pages", __name__)
navigation.add(navigation.NavigationEntry("Environments", "/-/environments", 65, Ability.ADMIN_ENVIRONMENTS))

BASE_PATH = "/<path:project>/-/environments"
ONE = f"{BASE_PATH}/<int:environment_id>"


@pages.get(BASE_PATH)
@pages.signed_in
@pages.allow(Ability.ADMIN_ENVIRONMENTS)
def list_environments(project: Project) -> ResponseReturnValue:
    """Show the environments of a project."""
    page = read_page(environments_of(project), request.args.get("page"))
    panels.prepare("environment", page.rows)
    return render_template("environments/list.html", project=project, page=page)


@pages.get(f"{BASE_PATH}/new")
@pages.signed_in
@pages.allow(Ability.ADMIN_ENVIRONMENTS)
def new_environment(project: Project) -> ResponseReturnValue:
    """Show the form for a new environment."""
    return render_template("environments/edit.html", project=project, environment=None, form=EnvironmentForm())


@pages.post(f"{BASE_PATH}/new")
@pages.signed_in
@pages.allow(Ability.ADMIN_ENVIRONMENTS)
def create_environment(project: Project) -> ResponseReturnValue:
    """Add an environment."""
    form = EnvironmentForm()
    if form.accepted(
        lambda: service.create_environment(project, name=form.name.data, external_url=form.external_url.data)
    ):
        return redirect(_list_path(project))
    return render_template("environments/edit.html", project=project, environment=None, form=form), 422


@pages.get(ONE)
@pages.signed_in
@pages.allow(Ability.ADMIN_ENVIRONMENTS)
def show_environment(project: Project, environment_id: int) -> ResponseReturnValue:
    """Show one environment with its open alerts."""
    environment = find_environment(project, environment_id)
    panels.prepare("environment", [environment])
    return render_template("environments/show.html", project=project, environment=environment)


@pages.get(f"{ONE}/edit")
@pages.signed_in
@pages.allow(Ability.ADMIN_ENVIRONMENTS)
def edit_environment(project: Project, environment_id: int) -> ResponseReturnValue:
    """Show the form of one environment."""
    environment = find_environment(project, environment_id)
    form = EnvironmentForm(obj=environment)
    return render_template("environments/edit.html", project=project, environment=environment, form=form)


@pages.post(f"{ONE}/edit")
@pages.signed_in
@pages.allow(Ability.ADMIN_ENVIRONMENTS)
def update_environment(project: Project, environment_id: int) -> ResponseReturnValue:
    """Change an environment."""
    environment, form = find_environment(project, environment_id), EnvironmentForm()
    fields = {"name": form.name.data or "", "external_url": form.external_url.data}
    if form.accepted(lambda: service.update_environment(environment, **fields)):
        return redirect(_list_path(project))
    return render_template("environments/edit.html", project=project, environment=environment, form=form), 422


@pages.get(f"{ONE}/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_ENVIRONMENTS)
def ask_delete_environment(project: Project, environment_id: int) -> ResponseReturnValue:
    """Ask before an environment is deleted."""
    environment = find_environment(project, environment_id)
    return confirmation(
        title="Delete environment",
        question=f"Delete the environment {environment.name}? Its alerts stay and belong to no environment then.",
        button="Delete environment",
        back=_list_path(project),
        project=project,
    )


@pages.post(f"{ONE}/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_ENVIRONMENTS)
def delete_environment(project: Project, environment_id: int) -> ResponseReturnValue:
    """Delete an environment."""
    service.delete_environment(find_environment(project, environment_id))
    return redirect(_list_path(project))


def _list_path(project: Project) -> str:
    return f"/{project.full_path}/-/environments"
