"""The API of what a job gets (group and instance variables reference, section 5)."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint, WithSchema, json_response
from project_service.areas.variables import queries, schemas
from project_service.areas.variables.effective.expansion import expand
from project_service.areas.variables.effective.precedence import effective_variables, record_reading
from project_service.areas.variables.formats import JSON, render
from project_service.domain.projects import Project
from project_service.kit.db.session import writing

api = ApiBlueprint("effective_variables", __name__, description="The CI/CD variables that a job gets.")
KEY = "effective"  # a legal key: the parameter ``environment`` makes the difference
HEADERS = {"Cache-Control": "no-store", "Vary": "Accept"}


@api.get(f"/projects/<project>/variables/{KEY}")
@api.signed_in
@api.allow(Ability.ADMIN_VARIABLES)
@api.arguments(schemas.EffectiveFilterSchema)
@api.response(200, schemas.EffectiveVariableSchema(many=True))
def show_effective_variables(project: Project, fields: dict[str, Any]) -> WithSchema | Response:
    """Show what a job gets in an environment, as JSON or as text; without ``environment`` one variable."""
    if "environment" not in fields:
        scope = (fields.get("filter") or {}).get("environment_scope")
        return WithSchema(schemas.VariableSchema, queries.find_variable(project, KEY, scope))
    variables = effective_variables(project, fields["environment"] or "", protected=fields["protected"])
    if fields["expand"]:
        variables = expand(variables)
    if keys := fields.get("key"):
        variables = [variable for variable in variables if variable.key in keys]
    if request.method == "GET":
        with writing():
            record_reading(project, variables, "api")
    form = fields.get("format") or ("dotenv" if request.accept_mimetypes.best == "text/plain" else JSON)
    if form == JSON:
        return json_response(schemas.EffectiveVariableSchema.dump_value(variables), headers=HEADERS)
    return Response(render(variables, form), headers=HEADERS, content_type="text/plain; charset=utf-8")
