"""Pictures at the addresses that ``avatar_url`` has."""

from __future__ import annotations

from flask import Response

from project_service.access.abilities import Ability, judge
from project_service.access.identity import caller
from project_service.access.pages import PageBlueprint
from project_service.access.roles import find_project
from project_service.areas.avatars import serving
from project_service.domain.namespaces import find_group
from project_service.domain.users import find_user

pages = PageBlueprint("avatar_pages", __name__)
BASE_PATH = "/uploads/-/system"


@pages.get(f"{BASE_PATH}/user/avatar/<int:user_id>/<filename>")
@pages.allow(Ability.ANYBODY)
def show_user_avatar(user_id: int, filename: str) -> Response:
    """Show the picture of a user, to everybody."""
    return serving.respond(find_user(user_id), cache=serving.PUBLIC)


@pages.get(f"{BASE_PATH}/project/avatar/<int:project_id>/<filename>")
@pages.allow(Ability.ANYBODY)
def show_project_avatar(project_id: int, filename: str) -> Response:
    """Show the picture of a project, to those who see it."""
    project = find_project(str(project_id))
    judge(caller(), Ability.READ_PROJECT, project)
    return serving.respond(project)


@pages.get(f"{BASE_PATH}/group/avatar/<int:group_id>/<filename>")
@pages.allow(Ability.ANYBODY)
def show_group_avatar(group_id: int, filename: str) -> Response:
    """Show the picture of a group, to those who see it."""
    group = find_group(str(group_id))
    judge(caller(), Ability.READ_GROUP, group)
    return serving.respond(group)
