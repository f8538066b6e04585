"""The API of the search (search reference, sections 1 to 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.identity import caller
from project_service.access.references.search_scopes import Search
from project_service.areas.search import schemas, service
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit.http.pagination import Paging, PreparedPage, uncounted_headers
from project_service.kit.http.schemas import Schema

api = ApiBlueprint("search", __name__, description="Search across projects, in a group, and in a project.")


@api.get("/search")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(schemas.SearchSchema)
@api.response(200)
@api.paged
@api.takes_paging
def search_everywhere(fields: dict[str, Any], paging: Paging) -> WithSchema:
    """Search everything that you may see."""
    return _found(service.find, fields, paging)


@api.get("/groups/<group>/search")
@api.signed_in
@api.allow(Ability.READ_GROUP)
@api.arguments(schemas.GroupSearchSchema)
@api.response(200)
@api.paged
@api.takes_paging
def search_group(group: Group, fields: dict[str, Any], paging: Paging) -> WithSchema:
    """Search in a group and all below it."""
    return _found(service.find, fields, paging, group=group)


@api.get("/projects/<project>/search", reads_repository=True)
@api.signed_in
@api.allow(Ability.READ_PROJECT)
@api.arguments(schemas.ProjectSearchSchema)
@api.response(200)
@api.paged
@api.takes_paging
def search_project(project: Project, fields: dict[str, Any], paging: Paging) -> WithSchema:
    """Search in a project."""
    return _found(service.find_in_project, fields, paging, project=project)


# GitLab has these addresses too, and some clients use them
api.get("/groups/<group>/-/search", endpoint="search_group_at_page_path")(search_group)
api.get("/projects/<project>/-/search", endpoint="search_project_at_page_path", reads_repository=True)(search_project)


def _found(
    find: Callable[[Search, str], service.FoundScope],
    fields: dict[str, Any],
    paging: Paging,
    *,
    project: Project | None = None,
    group: Group | None = None,
) -> WithSchema:
    search = Search(
        caller(),
        fields["search"],
        project,
        group,
        state=fields.get("state"),
        confidential=fields.get("confidential"),
        ref=fields.get("ref"),
        sort=fields["sort"],
        include_archived=fields["include_archived"],
    )
    scope, matches = find(service.checked(search), fields["scope"])
    rows = matches.listing.rows(paging.offset, paging.size + 1)
    cut = PreparedPage(rows[: paging.size], uncounted_headers(paging, more=len(rows) > paging.size))
    if scope is None or scope.schema is None:
        return WithSchema(Schema, cut)
    prepare = scope.prepare
    return WithSchema(scope.schema, cut, None if prepare is None else lambda rows: prepare(search, rows))
