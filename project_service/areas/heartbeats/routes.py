"""The API of heartbeats (heartbeats reference, section 1)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability, allowed
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.guards import numeric
from project_service.access.identity import caller
from project_service.areas.heartbeats import queries, schemas, service
from project_service.domain.heartbeats.models import Heartbeat, HeartbeatPing
from project_service.domain.projects import Project
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("heartbeats", __name__, description="Programs that call regularly, and alerts when they do not.")
HEARTBEATS = "/projects/<project>/heartbeats"
HEARTBEAT = f"{HEARTBEATS}/<heartbeat_id>"


@api.get(HEARTBEATS)
@api.signed_in
@api.allow(Ability.READ_HEARTBEATS)
@api.response(200, schemas.HeartbeatWithUrlSchema(many=True))
@api.paged
def list_heartbeats(project: Project) -> WithSchema:
    """List the heartbeats of a project; only maintainers see the URLs to call."""
    return WithSchema(_schema_for(project), queries.heartbeats_of(project))


@api.post(HEARTBEATS)
@api.signed_in
@api.allow(Ability.ADMIN_HEARTBEATS)
@api.arguments(schemas.HeartbeatCreateSchema)
@api.response(201, schemas.HeartbeatWithUrlSchema)
def create_heartbeat(project: Project, fields: dict[str, Any]) -> Heartbeat:
    """Create a heartbeat."""
    return service.create_heartbeat(project, **fields)


@api.get(HEARTBEAT)
@api.signed_in
@api.allow(Ability.READ_HEARTBEATS)
@api.response(200, schemas.HeartbeatWithUrlSchema)
def show_heartbeat(project: Project, heartbeat_id: str) -> WithSchema:
    """Show one heartbeat; only maintainers see the URL to call."""
    return WithSchema(_schema_for(project), queries.find_heartbeat(project, numeric(heartbeat_id)))


@api.put(HEARTBEAT)
@api.signed_in
@api.allow(Ability.ADMIN_HEARTBEATS)
@api.arguments(schemas.HeartbeatUpdateSchema)
@api.response(200, schemas.HeartbeatWithUrlSchema)
def update_heartbeat(project: Project, fields: dict[str, Any], heartbeat_id: str) -> Heartbeat:
    """Change a heartbeat."""
    return service.update_heartbeat(project, queries.find_heartbeat(project, numeric(heartbeat_id)), **fields)


@api.delete(HEARTBEAT)
@api.signed_in
@api.allow(Ability.ADMIN_HEARTBEATS)
@api.response(204)
def delete_heartbeat(project: Project, heartbeat_id: str) -> None:
    """Delete a heartbeat; an alert of it stays."""
    service.delete_heartbeat(project, unmodified(queries.find_heartbeat(project, numeric(heartbeat_id))))


@api.post(f"{HEARTBEAT}/pause")
@api.signed_in
@api.allow(Ability.ADMIN_HEARTBEATS)
@api.response(201, schemas.HeartbeatWithUrlSchema)
def pause_heartbeat(project: Project, heartbeat_id: str) -> Heartbeat:
    """Expect no calls until the next one."""
    return service.pause_heartbeat(project, queries.find_heartbeat(project, numeric(heartbeat_id)))


@api.post(f"{HEARTBEAT}/resume")
@api.signed_in
@api.allow(Ability.ADMIN_HEARTBEATS)
@api.response(201, schemas.HeartbeatWithUrlSchema)
def resume_heartbeat(project: Project, heartbeat_id: str) -> Heartbeat:
    """End a pause."""
    return service.resume_heartbeat(project, queries.find_heartbeat(project, numeric(heartbeat_id)))


@api.post(f"{HEARTBEAT}/rotate_key")
@api.signed_in
@api.allow(Ability.ADMIN_HEARTBEATS)
@api.response(201, schemas.HeartbeatWithUrlSchema)
def rotate_heartbeat_key(project: Project, heartbeat_id: str) -> Heartbeat:
    """Replace the URL to call."""
    return service.rotate_key(project, queries.find_heartbeat(project, numeric(heartbeat_id)))


@api.get(f"{HEARTBEAT}/pings")
@api.signed_in
@api.allow(Ability.READ_HEARTBEATS)
@api.response(200, schemas.HeartbeatPingSchema(many=True))
@api.paged
def list_heartbeat_pings(project: Project, heartbeat_id: str) -> Select[HeartbeatPing]:
    """List the last calls of a heartbeat, newest first."""
    return queries.pings_of(queries.find_heartbeat(project, numeric(heartbeat_id)))


def _schema_for(project: Project) -> type[schemas.HeartbeatSchema]:
    is_maintainer = allowed(caller(), Ability.ADMIN_HEARTBEATS, project)
    return schemas.HeartbeatWithUrlSchema if is_maintainer else schemas.HeartbeatSchema
