"""Pages: list of projects, project, new project, settings."""

from __future__ import annotations

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access import first_commits
from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller, current_user
from project_service.access.page_parts import health_marks, navigation, sections
from project_service.access.pages import PageBlueprint
from project_service.areas.projects import queries, service
from project_service.areas.projects.forms import ProjectForm
from project_service.domain.namespaces import find_namespace
from project_service.domain.projects import Project
from project_service.kit.http.errors import Invalid, UnknownRoute
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("project_pages", __name__)
navigation.add(navigation.NavigationEntry("Projects", "/dashboard/projects", 0, Ability.SIGNED_IN), "main")
navigation.add(navigation.NavigationEntry("Overview", "", 0, Ability.READ_PROJECT))


@pages.get("/dashboard/projects", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def list_projects() -> ResponseReturnValue:
    """Show the projects of the current user."""
    search = request.args.get("search", "")
    statement = queries.projects_matching(
        caller(), membership=True, search=search, order_by="last_activity_at", sort="desc"
    )
    page = read_page(statement, request.args.get("page"))
    marks = health_marks.marks_of(caller(), page.rows)
    return render_template("projects/dashboard.html", page=page, search=search, marks=marks)


@pages.get("/projects/new")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def new_project() -> ResponseReturnValue:
    """Show the form for a new project."""
    return render_template("projects/new.html", form=_form())


@pages.post("/projects/new")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def create_project() -> ResponseReturnValue:
    """Create a project."""
    form = _form()

    def create() -> Project:
        namespace = find_namespace(form.namespace_id.data)
        if not allowed(caller(), Ability.CREATE_PROJECT, namespace):
            raise Invalid(namespace_id="is not valid")
        return service.create_project(
            current_user(),
            namespace,
            name=form.name.data or "",
            path=form.path.data or None,
            description=form.description.data or None,
            visibility=form.visibility.data,
        )

    if accepted := form.accepted(create):
        if form.initialize_with_readme.data and (refusal := first_commits.add_readme(current_user(), accepted.result)):
            flash(f"The project was created without a README. {refusal}")
        return redirect(f"/{accepted.result.full_path}")
    return render_template("projects/new.html", form=form), 422


@pages.get("/<path:project>/-/settings/<page>")
@pages.signed_in
@pages.allow(Ability.READ_PROJECT)
def show_settings(project: Project, page: str) -> ResponseReturnValue:
    """Show a settings page of a project."""
    if page not in sections.PAGES:
        raise UnknownRoute
    return sections.show(project, page)


def show_project(project: Project) -> ResponseReturnValue:
    """Show a project; the route of full paths calls this function."""
    return render_template("projects/show.html", project=project)


def _form() -> ProjectForm:
    form = ProjectForm()
    form.set_namespaces(queries.namespaces_for_projects(caller(), current_user()))
    return form
