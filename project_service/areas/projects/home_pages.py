"""The home page of a signed-in user, and the same for a screen on the wall."""

from __future__ import annotations

from flask import render_template, request

from project_service.access.abilities import Ability, judge
from project_service.access.identity import caller
from project_service.access.page_parts import health_marks
from project_service.access.page_parts.home_scope import HomeScope
from project_service.access.pages import PageBlueprint
from project_service.access.rules import visible_projects
from project_service.areas.projects import queries
from project_service.domain.namespaces import Group, find_group
from project_service.domain.project_visits import visited_by
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("home_pages", __name__)
WALL_REFRESH_SECONDS = 30
MAX_PROJECTS_SHOWN = 10  # of users who have not visited any yet


@pages.get("/")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def show_home() -> str:
    """Show what needs the caller now, and the projects visited last with their health marks."""
    asking = caller()
    projects = list(db.session.scalars(visited_by(asking.user_id or 0).where(visible_projects(asking))).unique())
    is_visited = bool(projects)
    if not is_visited:
        projects = _own_projects()
    return render_template(
        "projects/home.html",
        scope=HomeScope(asking),
        projects=projects,
        is_visited=is_visited,
        marks=health_marks.marks_of(asking, projects),
        # the page of a new instance shows the first steps
        is_new=not projects and not queries.has_projects(),
    )


@pages.get("/-/overview")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def show_wall() -> str:
    """Show the state of the caller's projects, or of a ``group``, in large type; the page refreshes itself."""
    return render_template(
        "projects/wall.html",
        scope=HomeScope(caller(), _group()),
        refresh_seconds=WALL_REFRESH_SECONDS,
        now=clock.now(),
    )


def _group() -> Group | None:
    path = request.args.get("group", "")
    if not path:
        return None
    group = find_group(path)
    judge(caller(), Ability.READ_GROUP, group)
    return group


def _own_projects() -> list[Project]:
    statement = queries.projects_matching(caller(), membership=True, order_by="last_activity_at", sort="desc")
    return read_page(statement, None, MAX_PROJECTS_SHOWN).rows
