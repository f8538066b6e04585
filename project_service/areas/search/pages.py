"""The page of the search."""

from __future__ import annotations

from typing import Any

from flask import render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, judge
from project_service.access.identity import caller
from project_service.access.pages import PageBlueprint
from project_service.access.references.search_scopes import MAX_WORDS, Hit, Search, SearchScope
from project_service.access.roles import find_project
from project_service.areas.search import service
from project_service.domain.namespaces import find_group
from project_service.kit.http.errors import ServiceError
from project_service.kit.http.pagination import ShownPage, read_page

pages = PageBlueprint("search_pages", __name__)
ALL = "all"
PROBLEMS = {
    408: "That takes too long. Search for something more specific.",
    400: f"Search for less: at most {MAX_WORDS} words.",
    429: "You have searched very often in the last minute. Wait a moment, then try again.",
}


@pages.get("/search", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def search_everything() -> ResponseReturnValue:
    """Show what is found, in the project or group that the address names, or everywhere."""
    search = _search()
    scopes = service.scopes_of(search.level)
    name = request.args.get("scope", ALL)
    name = name if name in {scope.name for scope in scopes} else ALL
    context: dict[str, Any] = {"parts": [], "page": None, "hits": [], "is_cut": False, "problem": None}
    status = 200
    if search.text.strip():
        try:
            context |= _found(service.checked(search), name)
        except ServiceError as error:
            if error.status not in PROBLEMS:
                raise
            status, context["problem"] = error.status, PROBLEMS[error.status]
    tabs = {ALL: "All"} | {scope.name: scope.title for scope in scopes}
    html = render_template("search/show.html", search=search, scope=name, tabs=tabs, **context)
    return html, status


def _search() -> Search:
    """The search of the address; its project and its group must be visible."""
    project = group = None
    if project_id := request.args.get("project_id"):
        project = find_project(project_id)
        judge(caller(), Ability.READ_PROJECT, project)
    elif group_id := request.args.get("group_id"):
        group = find_group(group_id)
        judge(caller(), Ability.READ_GROUP, group)
    return Search(caller(), request.args.get("search", ""), project, group, include_archived=True)


def _found(search: Search, name: str) -> dict[str, Any]:
    if name == ALL:
        return {"parts": list(service.overview(search))}
    scope, matches = service.find_in_project(search, name)
    if scope is None:
        return {}
    page = read_page(matches.listing, request.args.get("page"))
    return {"page": page, "hits": _hits(search, scope, page), "is_cut": matches.is_cut}


def _hits(search: Search, scope: SearchScope, page: ShownPage) -> list[Hit]:
    if scope.prepare is not None:
        scope.prepare(search, page.rows)
    return [scope.show(row) for row in page.rows]
