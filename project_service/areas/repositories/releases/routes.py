"""API of releases (repositories reference, section 4.6)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.identity import caller
from project_service.areas.repositories.releases import queries, schemas, service
from project_service.areas.repositories.releases.queries import ReleaseRow, ReleaseRows
from project_service.domain.projects import Project
from project_service.domain.repositories.releases import Release, ReleaseLink

api = ApiBlueprint("releases", __name__, description="Releases: notes and links of tags.")

RELEASES = "/projects/<project>/releases"
RELEASE = f"{RELEASES}/<tag>"
LINKS = f"{RELEASE}/assets/links"


@api.get(RELEASES, reads_repository=True)
@api.allow(Ability.READ_RELEASES)
@api.arguments(schemas.ReleaseListSchema)
@api.response(200, schemas.ReleaseSchema(many=True))
@api.paged
def list_releases(project: Project, fields: dict[str, Any]) -> ReleaseRows:
    """List the releases of a project."""
    return queries.releases_of(project, **fields)


@api.get(f"{RELEASES}/permalink/latest", reads_repository=True)
@api.allow(Ability.READ_RELEASES)
@api.response(200, schemas.ReleaseSchema)
def show_latest_release(project: Project) -> ReleaseRow:
    """Show the newest release that is not an upcoming one."""
    return _row(project, queries.find_latest_release(project))


@api.get(RELEASE, reads_repository=True)
@api.allow(Ability.READ_RELEASES)
@api.response(200, schemas.ReleaseSchema)
def show_release(project: Project, tag: str) -> ReleaseRow:
    """Show the release of a tag."""
    return _row(project, queries.find_release(project, tag))


@api.post(RELEASES, reads_repository=True)
@api.signed_in
@api.allow(Ability.ADMIN_RELEASES)
@api.arguments(schemas.ReleaseCreateSchema)
@api.response(201, schemas.ReleaseSchema)
def create_release(project: Project, fields: dict[str, Any]) -> ReleaseRow:
    """Create a release; its tag too, at ``ref``, if that does not exist."""
    links = (fields.pop("assets", None) or {}).get("links") or ()
    service.create_release(caller(), project, links=links, **fields)
    return _row(project, queries.find_release(project, fields["tag_name"]))


@api.put(RELEASE, reads_repository=True)
@api.signed_in
@api.allow(Ability.ADMIN_RELEASES)
@api.arguments(schemas.ReleaseUpdateSchema)
@api.response(200, schemas.ReleaseSchema)
def update_release(project: Project, fields: dict[str, Any], tag: str) -> ReleaseRow:
    """Change the name, the notes, the time or the milestones of a release."""
    return _row(project, service.update_release(caller(), queries.find_release(project, tag), **fields))


@api.delete(RELEASE, reads_repository=True)
@api.signed_in
@api.allow(Ability.ADMIN_RELEASES)
@api.response(200, schemas.ReleaseSchema)
def delete_release(project: Project, tag: str) -> ReleaseRow:
    """Delete a release; its tag stays."""
    row = _row(project, queries.find_release(project, tag))
    service.delete_release(caller(), row.release)
    return row


@api.get(LINKS)
@api.allow(Ability.READ_RELEASES)
@api.response(200, schemas.LinkedAsset(many=True))
@api.paged
def list_release_links(project: Project, tag: str) -> Select[ReleaseLink]:
    """List the links of a release."""
    return queries.links_of(queries.find_release(project, tag))


@api.get(f"{LINKS}/<int:link_id>")
@api.allow(Ability.READ_RELEASES)
@api.response(200, schemas.LinkedAsset)
def show_release_link(project: Project, tag: str, link_id: int) -> ReleaseLink:
    """Show one link of a release."""
    return queries.find_link(queries.find_release(project, tag), link_id)


@api.post(LINKS)
@api.signed_in
@api.allow(Ability.ADMIN_RELEASES)
@api.arguments(schemas.LinkCreateSchema)
@api.response(201, schemas.LinkedAsset)
def create_release_link(project: Project, fields: dict[str, Any], tag: str) -> ReleaseLink:
    """Add a link to a release."""
    return service.create_link(caller(), queries.find_release(project, tag), **fields)


@api.put(f"{LINKS}/<int:link_id>")
@api.signed_in
@api.allow(Ability.ADMIN_RELEASES)
@api.arguments(schemas.LinkUpdateSchema)
@api.response(200, schemas.LinkedAsset)
def update_release_link(project: Project, fields: dict[str, Any], tag: str, link_id: int) -> ReleaseLink:
    """Change a link of a release."""
    release = queries.find_release(project, tag)
    return service.update_link(caller(), release, queries.find_link(release, link_id), **fields)


@api.delete(f"{LINKS}/<int:link_id>")
@api.signed_in
@api.allow(Ability.ADMIN_RELEASES)
@api.response(200, schemas.LinkedAsset)
def delete_release_link(project: Project, tag: str, link_id: int) -> ReleaseLink:
    """Delete a link of a release."""
    release = queries.find_release(project, tag)
    return service.delete_link(caller(), release, queries.find_link(release, link_id))


def _row(project: Project, release: Release) -> ReleaseRow:
    return queries.release_rows(project, [release])[0]
