"""The list of all groups in the administration area."""

from __future__ import annotations

from flask import render_template, request

from project_service.access.abilities import Ability
from project_service.access.identity import caller
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.groups import queries
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("group_admin_pages", __name__)
LIST = "/admin/groups"
PAGE_SIZE = 50
navigation.add(navigation.NavigationEntry("Groups", LIST, 14, Ability.ADMINISTER), "administration")


@pages.get(LIST)
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def list_all_groups() -> str:
    """Show all groups by path."""
    search = request.args.get("search", "")
    statement = queries.groups_matching(caller(), search=search, order_by="path", all_available=True)
    page = read_page(statement, request.args.get("page"), PAGE_SIZE)
    return render_template("groups/admin.html", page=page, search=search)
