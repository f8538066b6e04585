"""Pages of a project: what a job gets of all variables, and which ones come from its groups.

Group and instance variables reference, section 6.
"""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import urlencode

from flask import Response, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.access.page_parts import sections
from project_service.access.pages import PageBlueprint
from project_service.access.roles import load_roles
from project_service.areas.variables import queries
from project_service.areas.variables.effective import precedence
from project_service.areas.variables.effective.expansion import expand
from project_service.areas.variables.effective.precedence import EffectiveVariable
from project_service.areas.variables.formats import JSON, render
from project_service.areas.variables.models import ANY_SCOPE
from project_service.areas.variables.schemas import MAX_ENVIRONMENT_LENGTH, EffectiveVariableSchema
from project_service.domain import page_paths
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.domain.tracker.environments import environments_of
from project_service.kit import exact_json
from project_service.kit.db.session import db, writing
from project_service.kit.http import urls
from project_service.kit.http.errors import NotFound
from project_service.kit.http.pagination import ListedRows, read_page

pages = PageBlueprint("effective_variable_pages", __name__)
BASE_PATH = "/<path:project>/-/settings/ci_cd/job_variables"
PER_PAGE = 50
MAX_SUGGESTED_ENVIRONMENTS = 100
# what a browser saves a format as
FILE_NAMES = {JSON: "variables.json", "dotenv": ".env", "docker": "docker.env", "shell": "variables.sh"}
FILE_NAMES |= {"systemd": "systemd.env"}


def fill_inherited(project: Project) -> dict[str, Any]:
    """Return the template variables of the section: variables of groups and, for administrators, of the instance."""
    inherited = read_page(queries.inherited_by(project), request.args.get("inherited_page"), PER_PAGE)
    is_last = inherited.following is None
    of_instance = list(db.session.scalars(queries.variables_of(None))) if is_last and _is_administrator() else []
    keys = {variable.key for variable in [*inherited.rows, *of_instance]}
    own = {(key, scope) for key, scope in db.session.execute(queries.keys_and_scopes(project, keys))}
    return {
        "inherited": inherited,
        "inherited_from_instance": of_instance,
        "inherited_from": {group.id: group for group in precedence.groups_above(project)},
        "inherited_links": _links(project),
        "is_overridden": lambda variable: bool(
            own & {(variable.key, ANY_SCOPE), (variable.key, variable.environment_scope)}
        ),
    }


sections.add(
    sections.Section(
        "ci_cd",
        "inherited-variables",
        "Group variables (inherited)",
        11,
        Ability.ADMIN_VARIABLES,
        "variables/inherited.html",
        fill_inherited,
    )
)


@pages.get(BASE_PATH)
@pages.signed_in
@pages.allow(Ability.ADMIN_VARIABLES)
def show_job_variables(project: Project) -> ResponseReturnValue:
    """Show what a job of an environment gets, where it comes from and what it hides."""
    variables, query = _asked(project)
    page = read_page(ListedRows(variables), request.args.get("page"), PER_PAGE)
    revealed = request.args.get("reveal") == "1"
    links = _links(project)
    if revealed:
        # overridden values reach no job: they are shown to users who manage the variables of that owner
        hidden = [other for row in page.rows for other in row.overridden if other.source_path in links]
        _record(project, [*page.rows, *hidden])
    names = [
        environment.name
        for environment in db.session.scalars(environments_of(project).limit(MAX_SUGGESTED_ENVIRONMENTS))
    ]
    return render_template(
        "variables/job.html",
        project=project,
        page=page,
        asked=query,
        revealed=revealed,
        environments=names,
        formats=tuple(FILE_NAMES),
        links=links,
        query=urlencode(_sent(query)),
        curl=_curl(project, query),
        command=_command(project, query),
    )


@pages.get(f"{BASE_PATH}/download")
@pages.signed_in
@pages.allow(Ability.ADMIN_VARIABLES)
def download_job_variables(project: Project) -> Response:
    """Download what a job of an environment gets, in one of the formats."""
    form = request.args.get("format", "")
    if form not in FILE_NAMES:
        raise NotFound("Format")
    variables, _ = _asked(project)
    _record(project, variables)
    if form == JSON:
        content: str | bytes = exact_json.dumps(EffectiveVariableSchema.dump_value(variables))
    else:
        content = render(variables, form)
    headers = {"Content-Disposition": f'attachment; filename="{FILE_NAMES[form]}"', "Cache-Control": "no-store"}
    kind = "application/json" if form == JSON else "text/plain; charset=utf-8"
    return Response(content, headers=headers, content_type=kind)


def _asked(project: Project) -> tuple[list[EffectiveVariable], dict[str, Any]]:
    """Return the variables for the parameters of the address, and those parameters."""
    query: dict[str, Any] = {
        "environment": request.args.get("environment", "").strip()[:MAX_ENVIRONMENT_LENGTH],
        "protected": request.args.get("protected") == "true",
        "expand": request.args.get("expand") == "true",
    }
    variables = precedence.effective_variables(project, query["environment"], protected=query["protected"])
    return expand(variables) if query["expand"] else variables, query


def _record(project: Project, variables: list[EffectiveVariable]) -> None:
    """Record who saw values of masked variables."""
    if request.method == "GET":
        with writing():
            precedence.record_reading(project, variables, "page")


def _links(project: Project) -> dict[str | None, str]:
    """Return the pages on which the caller may change the variables of a full path; ``None`` is the instance."""
    groups = [group for group in precedence.groups_above(project) if isinstance(group, Group)]
    load_roles(caller(), groups)
    links: dict[str | None, str] = {project.full_path: f"{page_paths.base_of(project)}/-/settings/ci_cd"}
    for group in groups:
        if allowed(caller(), Ability.ADMIN_GROUP, group):
            links[group.full_path] = f"{page_paths.base_of(group)}/-/settings/ci_cd"
    if _is_administrator():
        links[None] = "/admin/ci_cd"
    return links


def _is_administrator() -> bool:
    return allowed(caller(), Ability.ADMINISTER)


def _sent(query: dict[str, Any]) -> dict[str, str]:
    """Return the parameters as addresses have them; the flags only if they are set."""
    return {"environment": query["environment"]} | {name: "true" for name in ("protected", "expand") if query[name]}


def _curl(project: Project, query: dict[str, Any]) -> str:
    address = urls.absolute_api(f"/projects/{project.id}/variables/effective")
    parameters = urlencode(_sent(query) | {"format": "dotenv"})
    return f"""curl --fail --silent --header "PRIVATE-TOKEN: $TOKEN" '{address}?{parameters}'"""


def _command(project: Project, query: dict[str, Any]) -> str:
    options = ["--environment", query["environment"]] if query["environment"] else []
    options += [f"--{name}" for name in ("protected", "expand") if query[name]]
    return shlex.join(["project-service", "variables", "export", project.full_path, *options])
