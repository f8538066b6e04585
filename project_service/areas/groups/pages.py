"""The pages of groups."""

from __future__ import annotations

from flask import redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, judge
from project_service.access.identity import caller, current_user
from project_service.access.page_parts import health_marks, navigation
from project_service.access.page_parts.home_scope import HomeScope
from project_service.access.pages import PageBlueprint
from project_service.areas.groups import queries, service
from project_service.areas.groups.forms import GroupForm
from project_service.domain.namespaces import Group, find_group
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("group_pages", __name__)
navigation.add(navigation.NavigationEntry("Groups", "/dashboard/groups", 10, Ability.SIGNED_IN), "main")
navigation.add(navigation.NavigationEntry("Overview", "", 0, Ability.READ_GROUP), "group")


@pages.get("/dashboard/groups")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def list_groups() -> ResponseReturnValue:
    """Show the groups of the caller."""
    search = request.args.get("search", "")
    statement = queries.groups_matching(caller(), search=search, order_by="path")
    return render_template("groups/list.html", page=read_page(statement, request.args.get("page")), search=search)


@pages.get("/groups/new")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def new_group() -> ResponseReturnValue:
    """Show the form for a new group, below another with ``parent_id``."""
    return render_template("groups/new.html", form=GroupForm(), parent=_parent())


@pages.post("/groups/new")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def create_group() -> ResponseReturnValue:
    """Create a group."""
    parent, form = _parent(), GroupForm()

    def create() -> Group:
        return service.create_group(
            current_user(),
            parent,
            visibility=form.visibility.data,
            name=form.name.data or "",
            path=form.path.data or "",
            description=form.description.data or "",
        )

    if accepted := form.accepted(create):
        return redirect(f"/{accepted.result.full_path}")
    return render_template("groups/new.html", form=form, parent=_parent()), 422


@pages.get("/groups/<path:group>")
@pages.allow(Ability.READ_GROUP)
def show_group_by_api_address(group: Group) -> ResponseReturnValue:
    """Redirect from the ``web_url`` of the API to the page."""
    return redirect(f"/{group.full_path}")


def show_group(group: Group) -> ResponseReturnValue:
    """Show a group; the view of full paths calls this."""
    details = queries.details_of(caller(), group, with_projects=True)
    subgroups = read_page(queries.subgroups_of(caller(), group), None, size=100)
    return render_template(
        "groups/show.html",
        group=group,
        projects=details.projects,
        subgroups=subgroups.rows,
        scope=HomeScope(caller(), group) if caller().user_id is not None else None,
        marks=health_marks.marks_of(caller(), details.projects or []),
    )


def _parent() -> Group | None:
    parent_id = request.args.get("parent_id", "")
    if not parent_id:
        judge(caller(), Ability.CREATE_GROUP)
        return None
    parent = find_group(parent_id)
    judge(caller(), Ability.CREATE_SUBGROUP, parent)
    return parent
