"""The API of silences (silences reference, section 1)."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability, allowed
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.guards import numeric
from project_service.access.identity import caller, current_user
from project_service.areas.silences import queries, schemas, service
from project_service.domain.projects import Project
from project_service.domain.silences.models import Silence
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("silences", __name__, description="Times in which nobody is told of the alerts that match.")
SILENCES = "/projects/<project>/silences"
SILENCE = f"{SILENCES}/<silence_id>"


@api.get(SILENCES)
@api.signed_in
@api.allow(Ability.READ_SILENCES)
@api.arguments(schemas.SilenceFilterSchema)
@api.response(200, schemas.SilenceSchema(many=True))
@api.paged
def list_silences(project: Project, fields: dict[str, Any]) -> WithSchema:
    """List the silences of a project, newest first."""
    return WithSchema(schemas.SilenceSchema, queries.silences_of(project, fields.get("state")), queries.load_counts)


@api.post(SILENCES)
@api.signed_in
@api.allow(Ability.CREATE_SILENCES)
@api.arguments(schemas.SilenceCreateSchema)
@api.response(201, schemas.SilenceSchema)
def create_silence(project: Project, fields: dict[str, Any]) -> Silence:
    """Create a silence; only maintainers silence a whole project."""
    return service.create_silence(current_user(), project, is_maintainer=_is_maintainer(project), **fields)


@api.get(SILENCE)
@api.signed_in
@api.allow(Ability.READ_SILENCES)
@api.response(200, schemas.SilenceSchema)
def show_silence(project: Project, silence_id: str) -> Silence:
    """Show one silence."""
    return queries.find_silence(project, numeric(silence_id))


@api.put(SILENCE)
@api.signed_in
@api.allow(Ability.CREATE_SILENCES)
@api.arguments(schemas.SilenceUpdateSchema)
@api.response(200, schemas.SilenceSchema)
def update_silence(project: Project, fields: dict[str, Any], silence_id: str) -> Silence:
    """Change end and comment of a silence, and everything before it starts; developers change their own."""
    silence = queries.find_silence(project, numeric(silence_id))
    return service.update_silence(current_user(), project, silence, is_maintainer=_is_maintainer(project), **fields)


@api.delete(SILENCE)
@api.signed_in
@api.allow(Ability.CREATE_SILENCES)
@api.response(204)
def end_silence(project: Project, silence_id: str) -> None:
    """End a silence now; it stays in the list for 30 days."""
    silence = unmodified(queries.find_silence(project, numeric(silence_id)))
    service.end_silence(current_user(), project, silence, is_maintainer=_is_maintainer(project))


def _is_maintainer(project: Project) -> bool:
    return allowed(caller(), Ability.ADMIN_SILENCES, project)
