"""Pages of CI/CD variables: in the settings of a project and of a group, and in the administration area."""

from __future__ import annotations

import re
from typing import Any

from flask import redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.page_parts import navigation, sections
from project_service.access.pages import PageBlueprint
from project_service.areas.variables import queries, service
from project_service.areas.variables.effective.precedence import record_reading
from project_service.areas.variables.forms import (
    HiddenVariableForm,
    InstanceVariableForm,
    NewVariableForm,
    VariableFields,
    VariableForm,
)
from project_service.areas.variables.models import AnyVariable, InstanceVariable, VariableOwner
from project_service.domain import page_paths
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit.db.session import writing
from project_service.kit.http.forms import Form, confirmation
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("variable_pages", __name__)
SETTINGS = "/-/settings/ci_cd"
OF_PROJECT, OF_GROUP, OF_INSTANCE = f"/<path:project>{SETTINGS}", f"/groups/<path:group>{SETTINGS}", "/admin/ci_cd"
PER_PAGE = 50
LINE_END = re.compile(r"\r\n?")

navigation.add(navigation.NavigationEntry("CI/CD", SETTINGS, 20, Ability.ADMIN_GROUP), "group_settings")
navigation.add(navigation.NavigationEntry("CI/CD variables", OF_INSTANCE, 25, Ability.ADMINISTER), "administration")


def fill(owner: VariableOwner) -> dict[str, Any]:
    """Return the template variables of the list and the form; values that are shown are recorded."""
    variables = read_page(queries.variables_of(owner), request.args.get("page"), PER_PAGE)
    revealed = request.args.get("reveal") == "1"
    if revealed and request.method == "GET":
        _record(owner, variables.rows)
    return {
        "variables": variables,
        "variable_form": _new_form(owner, formdata=None),
        "variables_address": f"{_settings(owner)}/variables",
        "variables_api": _api_path(owner),
        "revealed": revealed,
    }


sections.add(
    sections.Section("ci_cd", "variables", "Variables", 10, Ability.ADMIN_VARIABLES, "variables/section.html", fill)
)


@pages.get(OF_GROUP)
@pages.signed_in
@pages.allow(Ability.ADMIN_GROUP)
def show_group_variables(group: Group) -> ResponseReturnValue:
    """Show the variables of a group."""
    return _list(group)


@pages.get(OF_INSTANCE)
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def show_instance_variables() -> ResponseReturnValue:
    """Show the variables of the instance."""
    return _list(None)


@pages.post(f"{OF_PROJECT}/variables", endpoint="create_project_variable")
@pages.post(f"{OF_GROUP}/variables", endpoint="create_group_variable")
@pages.post(f"{OF_INSTANCE}/variables", endpoint="create_instance_variable")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_VARIABLES, group=Ability.ADMIN_GROUP, instance=Ability.ADMINISTER)
def create_variable(owner: VariableOwner) -> ResponseReturnValue:
    """Add a variable."""
    form = _new_form(owner)
    if form.accepted(lambda: service.create_variable(owner, **_fields(form), key=form.key.data)):
        return redirect(_settings(owner))
    return _list(owner, status=422, variable_form=form)


@pages.get(f"{OF_PROJECT}/variables/<int:variable_id>/edit", endpoint="edit_project_variable")
@pages.get(f"{OF_GROUP}/variables/<int:variable_id>/edit", endpoint="edit_group_variable")
@pages.get(f"{OF_INSTANCE}/variables/<int:variable_id>/edit", endpoint="edit_instance_variable")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_VARIABLES, group=Ability.ADMIN_GROUP, instance=Ability.ADMINISTER)
def edit_variable(owner: VariableOwner, variable_id: int) -> ResponseReturnValue:
    """Show the form of one variable; its value is recorded as read."""
    variable = queries.find_variable_by_id(owner, variable_id)
    form = _form_of(variable)(obj=variable)
    if variable.hidden:
        form.value.data = None
    elif request.method == "GET":
        _record(owner, [variable])
    return _edit(owner, variable, form)


@pages.post(f"{OF_PROJECT}/variables/<int:variable_id>/edit", endpoint="update_project_variable")
@pages.post(f"{OF_GROUP}/variables/<int:variable_id>/edit", endpoint="update_group_variable")
@pages.post(f"{OF_INSTANCE}/variables/<int:variable_id>/edit", endpoint="update_instance_variable")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_VARIABLES, group=Ability.ADMIN_GROUP, instance=Ability.ADMINISTER)
def update_variable(owner: VariableOwner, variable_id: int) -> ResponseReturnValue:
    """Change a variable."""
    variable = queries.find_variable_by_id(owner, variable_id)
    form = _form_of(variable)()
    fields = _fields(form)
    form_value = "" if variable.hidden else variable.value  # a hidden value is not in the form: an empty field keeps it
    if fields["value"] == _as_typed(form_value):
        del fields["value"]
    if form.accepted(lambda: service.update_variable(variable, **fields)):
        return redirect(_settings(owner))
    return _edit(owner, variable, form), 422


@pages.get(f"{OF_PROJECT}/variables/<int:variable_id>/delete", endpoint="ask_delete_project_variable")
@pages.get(f"{OF_GROUP}/variables/<int:variable_id>/delete", endpoint="ask_delete_group_variable")
@pages.get(f"{OF_INSTANCE}/variables/<int:variable_id>/delete", endpoint="ask_delete_instance_variable")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_VARIABLES, group=Ability.ADMIN_GROUP, instance=Ability.ADMINISTER)
def ask_delete_variable(owner: VariableOwner, variable_id: int) -> ResponseReturnValue:
    """Ask before a variable is deleted."""
    variable = queries.find_variable_by_id(owner, variable_id)
    scope = "" if owner is None else f" ({variable.environment_scope})"
    return confirmation(
        title="Delete variable",
        question=f"Delete the variable {variable.key}{scope}? It cannot be brought back.",
        button="Delete variable",
        back=_settings(owner),
        base=_base(owner),
        **_place(owner),
    )


@pages.post(f"{OF_PROJECT}/variables/<int:variable_id>/delete", endpoint="delete_project_variable")
@pages.post(f"{OF_GROUP}/variables/<int:variable_id>/delete", endpoint="delete_group_variable")
@pages.post(f"{OF_INSTANCE}/variables/<int:variable_id>/delete", endpoint="delete_instance_variable")
@pages.signed_in
@pages.allow(project=Ability.ADMIN_VARIABLES, group=Ability.ADMIN_GROUP, instance=Ability.ADMINISTER)
def delete_variable(owner: VariableOwner, variable_id: int) -> ResponseReturnValue:
    """Delete a variable."""
    service.delete_variable(queries.find_variable_by_id(owner, variable_id))
    return redirect(_settings(owner))


def _list(owner: VariableOwner, *, status: int = 200, **filled: Any) -> ResponseReturnValue:
    """Render the page with the list; ``filled`` has a form to show again that was refused."""
    if isinstance(owner, Project):
        return sections.show(owner, "ci_cd", status=status, **filled)
    template = "variables/instance.html" if owner is None else "variables/group.html"
    return render_template(template, **_place(owner), **(fill(owner) | filled)), status


def _edit(owner: VariableOwner, variable: AnyVariable, form: Form) -> str:
    name = "Administration" if owner is None else owner.name
    values = {"base": _base(owner), "back": _settings(owner), "place_name": name} | _place(owner)
    return render_template("variables/edit.html", variable=variable, form=form, **values)


def _new_form(owner: VariableOwner, **options: Any) -> InstanceVariableForm:
    return InstanceVariableForm(**options) if owner is None else NewVariableForm(**options)


def _form_of(variable: AnyVariable) -> type[VariableFields]:
    if variable.hidden:
        return HiddenVariableForm
    return InstanceVariableForm if isinstance(variable, InstanceVariable) else VariableForm


def _fields(form: VariableFields) -> dict[str, Any]:
    return form.fields() | {"value": _as_typed(form.value.data)}


def _as_typed(value: str | None) -> str:
    """Return a value with line ends as LF: browsers send every line end of a form as CR LF."""
    return LINE_END.sub("\n", value or "")


def _record(owner: VariableOwner, variables: list[AnyVariable]) -> None:
    """Record that values were shown; hidden ones never are."""
    with writing():
        record_reading(owner, [variable for variable in variables if not variable.hidden], "page")


def _settings(owner: VariableOwner) -> str:
    if owner is None:
        return OF_INSTANCE
    return f"{page_paths.base_of(owner)}{SETTINGS}"


def _api_path(owner: VariableOwner) -> str:
    if owner is None:
        return "/admin/ci/variables"
    return f"/{'projects' if isinstance(owner, Project) else 'groups'}/{owner.id}/variables"


def _base(owner: VariableOwner) -> str:
    if owner is None:
        return "administration.html"
    return "project.html" if isinstance(owner, Project) else "group.html"


def _place(owner: VariableOwner) -> dict[str, Any]:
    """Return what the templates of a project or group need."""
    if owner is None:
        return {}
    return {"project" if isinstance(owner, Project) else "group": owner}
