"""The variables on the CI/CD settings page."""

from __future__ import annotations

import re
from typing import Any

from flask import redirect, render_template, request, url_for

from project_service.access import sections
from project_service.access.abilities import Ability
from project_service.access.pages import PageBlueprint
from project_service.areas.variables import queries, service
from project_service.areas.variables.forms import VariableForm
from project_service.domain.projects import Project
from project_service.kit.db.pagination import read_page
from project_service.kit.http.forms import confirmation

pages = PageBlueprint("variable_pages", __name__)
HERE = "/<path:project>/-/settings/ci_cd/variables"
PER_PAGE = 50
LINE_END = re.compile(r"\r\n?")


def fill(project: Project) -> dict[str, Any]:
    """Return the template variables of the section."""
    return {
        "variables": read_page(queries.variables_of(project), request.args.get("page"), PER_PAGE),
        "variable_form": VariableForm(formdata=None),
        "revealed": request.args.get("reveal") == "1",
    }


sections.add(
    sections.Section("ci_cd", "variables", "Variables", 10, Ability.ADMIN_VARIABLES, "variables/section.html", fill)
)


@pages.post(HERE)
@pages.signed_in
@pages.allow(Ability.ADMIN_VARIABLES)
def create_variable(project: Project) -> Any:
    """Add a variable."""
    form = VariableForm()
    if form.accepted(lambda: service.create_variable(project, **_fields(form), key=form.key.data)):
        return redirect(_settings(project))
    return sections.show(project, "ci_cd", status=422, variable_form=form)


@pages.get(f"{HERE}/<int:variable_id>/edit")
@pages.signed_in
@pages.allow(Ability.ADMIN_VARIABLES)
def edit_variable(project: Project, variable_id: int) -> Any:
    """Show the form of one variable."""
    variable = queries.find_variable_by_id(project, variable_id)
    form = VariableForm(obj=variable)
    if variable.hidden:
        form.value.data = None
    return render_template("variables/edit.html", project=project, variable=variable, form=form)


@pages.post(f"{HERE}/<int:variable_id>/edit")
@pages.signed_in
@pages.allow(Ability.ADMIN_VARIABLES)
def update_variable(project: Project, variable_id: int) -> Any:
    """Change a variable."""
    variable = queries.find_variable_by_id(project, variable_id)
    form = VariableForm()
    fields = _fields(form)
    shown = "" if variable.hidden else variable.value  # a hidden value is not in the form: an empty field keeps it
    if fields["value"] == _as_typed(shown):
        del fields["value"]
    if form.accepted(lambda: service.update_variable(variable, **fields)):
        return redirect(_settings(project))
    return render_template("variables/edit.html", project=project, variable=variable, form=form), 422


@pages.get(f"{HERE}/<int:variable_id>/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_VARIABLES)
def ask_delete_variable(project: Project, variable_id: int) -> Any:
    """Ask before a variable is deleted."""
    variable = queries.find_variable_by_id(project, variable_id)
    return confirmation(
        title="Delete variable",
        question=f"Delete the variable {variable.key} ({variable.environment_scope})? It cannot be brought back.",
        button="Delete variable",
        back=_settings(project),
        project=project,
    )


@pages.post(f"{HERE}/<int:variable_id>/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_VARIABLES)
def delete_variable(project: Project, variable_id: int) -> Any:
    """Delete a variable."""
    service.delete_variable(queries.find_variable_by_id(project, variable_id))
    return redirect(_settings(project))


def _fields(form: VariableForm) -> dict[str, Any]:
    names = ("value", "variable_type", "environment_scope", "protected", "masked", "raw")
    fields: dict[str, Any] = {name: form[name].data for name in names}
    fields["value"] = _as_typed(fields["value"])
    return fields | {"description": form.description.data or None}


def _as_typed(value: str | None) -> str:
    """Return a value with line ends as LF: browsers send every line end of a form as CR LF."""
    return LINE_END.sub("\n", value or "")


def _settings(project: Project) -> str:
    return url_for("project_pages.show_settings", project=project.full_path, page="ci_cd")
