"""The API of releases of errors and of uploaded source maps (source maps reference, section 22)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability, allowed
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.identity import caller, current_user
from project_service.areas.error_tracking.errors import queries as error_queries
from project_service.areas.error_tracking.releases import arrivals, queries, schemas
from project_service.areas.error_tracking.releases.models import SourceMapArtifact, SourceMapBundle
from project_service.areas.error_tracking.releases.queries import ReleaseSummary
from project_service.domain.projects import Project
from project_service.kit.db.locking import delete_locked

api = ApiBlueprint("error_releases", __name__, description="Releases of errors, and uploaded source maps.")

RELEASES = "/projects/<project>/error_tracking/releases"
SOURCE_MAPS = "/projects/<project>/error_tracking/source_maps"


@api.get(RELEASES)
@api.signed_in
@api.allow(Ability.READ_ERRORS)
@api.arguments(schemas.ReleaseFilterSchema)
@api.response(200, schemas.ErrorReleaseSchema(many=True))
@api.paged
def list_error_releases(project: Project, fields: dict[str, Any]) -> WithSchema:
    """List the releases of a project that are not archived, newest first."""
    rows = queries.releases_of(project, fields.get("search") or "")
    tags = allowed(caller(), Ability.READ_CODE, project)
    return WithSchema(
        schemas.ErrorReleaseSchema, rows, prepare=lambda page: queries.summaries_of(project, page, with_tags=tags)
    )


@api.get(f"{RELEASES}/<version>")
@api.signed_in
@api.allow(Ability.READ_ERRORS)
@api.response(200, schemas.ErrorReleaseSchema)
def show_error_release(project: Project, version: str) -> ReleaseSummary:
    """Show one release."""
    release = queries.find_release(project, version)
    return queries.summaries_of(project, [release], with_tags=allowed(caller(), Ability.READ_CODE, project))[0]


@api.get(SOURCE_MAPS)
@api.signed_in
@api.allow(Ability.READ_ERRORS)
@api.arguments(schemas.SourceMapFilterSchema)
@api.response(200, schemas.SourceMapBundleSchema(many=True))
@api.paged
def list_source_maps(project: Project, fields: dict[str, Any]) -> Select[SourceMapBundle]:
    """List the uploads of source maps, newest first; failed ones for 7 days."""
    return queries.bundles_matching(project, **fields)


@api.get(f"{SOURCE_MAPS}/<int:bundle_id>/files")
@api.signed_in
@api.allow(Ability.READ_ERRORS)
@api.response(200, schemas.SourceMapFileSchema(many=True))
@api.paged
def list_source_map_files(project: Project, bundle_id: int) -> Select[SourceMapArtifact]:
    """List the files of an upload."""
    return queries.files_of(queries.find_bundle(project, bundle_id))


@api.delete(f"{SOURCE_MAPS}/<int:bundle_id>")
@api.signed_in
@api.allow(Ability.DELETE_ERRORS)
@api.response(204)
def delete_source_map(project: Project, bundle_id: int) -> None:
    """Remove an upload with its files; stacks that were resolved stay so."""
    delete_locked(queries.find_bundle(project, bundle_id))


@api.post("/projects/<project>/error_tracking/errors/<error_id>/events/<event_id>/resolve")
@api.signed_in
@api.allow(Ability.UPDATE_ERRORS)
@api.response(202)
def resolve_error_event(project: Project, error_id: str, event_id: str) -> None:
    """Resolve the stack of an event again, with the source maps that there are now."""
    event = error_queries.find_event(error_queries.find_error(project, error_id), event_id)
    arrivals.resolve_again(current_user(), event)
