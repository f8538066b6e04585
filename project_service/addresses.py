"""The pages of users, groups and projects: whatever lives at a full path."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability, judge
from project_service.access.identity import caller
from project_service.access.pages import PageBlueprint
from project_service.accounts import pages as accounts
from project_service.core.namespaces import Group
from project_service.core.places import at
from project_service.core.projects import Project
from project_service.groups import pages as groups
from project_service.kit.errors import UnknownRoute
from project_service.projects import pages as projects

pages = PageBlueprint("addresses", __name__)


@pages.get("/<path:full_path>")
@pages.allow(Ability.ANYBODY)
def show_place(full_path: str) -> Any:
    """Show what lives here, to those who may see it."""
    place = at(full_path.strip("/"))
    if isinstance(place, Project):
        judge(caller(), Ability.READ_PROJECT, place)
        return projects.show_project(place)
    if isinstance(place, Group):
        judge(caller(), Ability.READ_GROUP, place)
        return groups.show_group(place)
    if place is None or place.owner is None:
        raise UnknownRoute
    return accounts.show_user(place.owner)
