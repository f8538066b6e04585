"""The API of silences (silences reference, section 1)."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability, allowed
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.guards import numeric
from project_service.access.identity import caller, current_user
from project_service.areas.silences import queries, schemas, service
from project_service.areas.silences.service import SilenceOwner
from project_service.domain.projects import Project
from project_service.domain.silences.models import Silence
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("silences", __name__, description="Times in which nobody is notified of the alerts that match.")
OF_PROJECT, OF_GROUP = "/projects/<project>/silences", "/groups/<group>/silences"


@api.get(OF_PROJECT, endpoint="list_project_silences")
@api.get(OF_GROUP, endpoint="list_group_silences")
@api.signed_in
@api.allow(project=Ability.READ_SILENCES, group=Ability.READ_GROUP_NOTIFICATIONS)
@api.arguments(schemas.SilenceFilterSchema)
@api.response(200, schemas.SilenceSchema(many=True))
@api.paged
def list_silences(owner: SilenceOwner, fields: dict[str, Any]) -> WithSchema:
    """List the silences of a project or group and of the groups above it, newest first."""
    return WithSchema(schemas.SilenceSchema, queries.silences_of(owner, fields.get("state")), queries.load_counts)


@api.post(OF_PROJECT, endpoint="create_project_silence")
@api.post(OF_GROUP, endpoint="create_group_silence")
@api.signed_in
@api.allow(project=Ability.CREATE_SILENCES, group=Ability.ADMIN_GROUP_NOTIFICATIONS)
@api.arguments(schemas.SilenceCreateSchema)
@api.response(201, schemas.SilenceSchema)
def create_silence(owner: SilenceOwner, fields: dict[str, Any]) -> Silence:
    """Create a silence; only maintainers silence a whole project."""
    return service.create_silence(current_user(), owner, is_maintainer=_is_maintainer(owner), **fields)


@api.get(f"{OF_PROJECT}/<silence_id>", endpoint="show_project_silence")
@api.get(f"{OF_GROUP}/<silence_id>", endpoint="show_group_silence")
@api.signed_in
@api.allow(project=Ability.READ_SILENCES, group=Ability.READ_GROUP_NOTIFICATIONS)
@api.response(200, schemas.SilenceSchema)
def show_silence(owner: SilenceOwner, silence_id: str) -> Silence:
    """Show one silence."""
    return queries.find_silence(owner, numeric(silence_id))


@api.put(f"{OF_PROJECT}/<silence_id>", endpoint="update_project_silence")
@api.put(f"{OF_GROUP}/<silence_id>", endpoint="update_group_silence")
@api.signed_in
@api.allow(project=Ability.CREATE_SILENCES, group=Ability.ADMIN_GROUP_NOTIFICATIONS)
@api.arguments(schemas.SilenceUpdateSchema)
@api.response(200, schemas.SilenceSchema)
def update_silence(owner: SilenceOwner, fields: dict[str, Any], silence_id: str) -> Silence:
    """Change end and comment of a silence, and everything before it starts; developers change their own."""
    silence = queries.find_own_silence(owner, numeric(silence_id))
    return service.update_silence(current_user(), owner, silence, is_maintainer=_is_maintainer(owner), **fields)


@api.delete(f"{OF_PROJECT}/<silence_id>", endpoint="end_project_silence")
@api.delete(f"{OF_GROUP}/<silence_id>", endpoint="end_group_silence")
@api.signed_in
@api.allow(project=Ability.CREATE_SILENCES, group=Ability.ADMIN_GROUP_NOTIFICATIONS)
@api.response(204)
def end_silence(owner: SilenceOwner, silence_id: str) -> None:
    """End a silence now; it stays in the list for 30 days."""
    silence = unmodified(queries.find_own_silence(owner, numeric(silence_id)))
    service.end_silence(current_user(), owner, silence, is_maintainer=_is_maintainer(owner))


def _is_maintainer(owner: SilenceOwner) -> bool:
    return not isinstance(owner, Project) or allowed(caller(), Ability.ADMIN_SILENCES, owner)
