"""The list of all projects in the administration area."""

from __future__ import annotations

from flask import render_template, request

from project_service.access.abilities import Ability
from project_service.access.identity import caller
from project_service.access.page_parts import health_marks, navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.projects import queries
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("project_admin_pages", __name__)
LIST = "/admin/projects"
PAGE_SIZE = 50
navigation.add(navigation.NavigationEntry("Projects", LIST, 12, Ability.ADMINISTER), "administration")


@pages.get(LIST)
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def list_all_projects() -> str:
    """Show all projects, those with the newest activity first."""
    search = request.args.get("search", "")
    statement = queries.projects_matching(caller(), search=search, order_by="last_activity_at", sort="desc")
    page = read_page(statement, request.args.get("page"), PAGE_SIZE)
    marks = health_marks.marks_of(caller(), page.rows)
    return render_template("projects/admin.html", page=page, search=search, marks=marks)
