"""The pages of imported merge requests, read-only."""

from __future__ import annotations

from flask import render_template, request

from project_service.access import visible_notes
from project_service.access.abilities import Ability
from project_service.access.identity import caller
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.access.references import text_references
from project_service.areas.merge_requests import queries
from project_service.domain.projects import Project
from project_service.domain.tracker.merge_requests import find_merge_request
from project_service.kit.http.fields import LARGEST_INTEGER
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("merge_request_pages", __name__)
navigation.add(navigation.NavigationEntry("Merge requests", "/-/merge_requests", 60, Ability.READ_MERGE_REQUESTS))

BASE_PATH = "/<path:project>/-/merge_requests"
TABS = {"opened": "Open", "merged": "Merged", "closed": "Closed", "all": "All"}


@pages.get(BASE_PATH)
@pages.allow(Ability.READ_MERGE_REQUESTS)
def list_merge_requests(project: Project) -> str:
    """Show the merge requests of a project."""
    state = request.args.get("state", "opened")
    state = state if state in TABS else "opened"
    search = request.args.get("search", "")
    matching = queries.merge_requests_matching(caller(), project, state=state, search=search)
    page = read_page(matching, request.args.get("page"))
    queries.add_notes_counts(page.rows)
    return render_template(
        "merge_requests/list.html", project=project, page=page, state=state, tabs=TABS, search=search
    )


@pages.get(f"{BASE_PATH}/<int:iid>")
@pages.allow(Ability.READ_MERGE_REQUESTS)
def show_merge_request(project: Project, iid: int) -> str:
    """Show one merge request with its notes."""
    merge_request = find_merge_request(project, min(iid, LARGEST_INTEGER))
    matching = visible_notes.notes_matching(caller(), merge_request, sort="asc")
    notes = visible_notes.read_notes(matching, request.args)
    texts = [merge_request.description, *(note.body for note in notes.rows)]
    text_references.prepare(caller(), project, texts)
    return render_template("merge_requests/show.html", project=project, merge_request=merge_request, notes=notes)
