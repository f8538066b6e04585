"""Pictures at the addresses that ``avatar_url`` has, and the pages on which they are changed."""

from __future__ import annotations

from typing import Any

from flask import Response, flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, judge
from project_service.access.identity import caller, current_user
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.access.roles import find_project
from project_service.areas.avatars import drawing, serving
from project_service.areas.avatars.forms import PictureForm
from project_service.domain.accounts import user_pictures
from project_service.domain.accounts.avatars import Owner, set_avatar
from project_service.domain.accounts.users import find_user, user_by
from project_service.domain.namespaces import Group, find_group
from project_service.domain.projects import Project
from project_service.kit.http.errors import Invalid

pages = PageBlueprint("avatar_pages", __name__)
BASE_PATH = "/uploads/-/system"
OWN, OF_GROUP, OF_PROJECT = "/-/profile/avatar", "/groups/<path:group>/-/avatar", "/<path:project>/-/avatar"
navigation.add(navigation.NavigationEntry("Picture", OWN, 5, Ability.SIGNED_IN), "account")
navigation.add(navigation.NavigationEntry("Picture", "/-/avatar", 12, Ability.ADMIN_GROUP), "group_settings")


@pages.get(f"{user_pictures.DRAWN}/<int:user_id>")
@pages.allow(Ability.ANYBODY)
def show_drawn_avatar(user_id: int) -> Response:
    """Show the initials of a user, to everybody; signing in shows no more of them."""
    user = user_by(str(user_id))
    return Response(status=404) if user is None else serving.respond_drawn(drawing.draw_initials(user))


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


@pages.get(OWN)
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def edit_own_avatar() -> str:
    """Show your picture, and the form to change it."""
    return _page(current_user(), PictureForm())


@pages.post(OWN)
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def save_own_avatar() -> ResponseReturnValue:
    """Change or remove your picture."""
    return _saved(current_user())


@pages.get(OF_GROUP)
@pages.signed_in
@pages.allow(Ability.ADMIN_GROUP)
def edit_group_avatar(group: Group) -> str:
    """Show the picture of a group, and the form to change it."""
    return _page(group, PictureForm(), group=group)


@pages.post(OF_GROUP)
@pages.signed_in
@pages.allow(Ability.ADMIN_GROUP)
def save_group_avatar(group: Group) -> ResponseReturnValue:
    """Change or remove the picture of a group."""
    return _saved(group, group=group)


@pages.get(OF_PROJECT)
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT)
def edit_project_avatar(project: Project) -> str:
    """Show the picture of a project, and the form to change it."""
    return _page(project, PictureForm(), project=project)


@pages.post(OF_PROJECT)
@pages.signed_in
@pages.allow(Ability.ADMIN_PROJECT)
def save_project_avatar(project: Project) -> ResponseReturnValue:
    """Change or remove the picture of a project."""
    return _saved(project, project=project)


def _saved(owner: Owner, **subject: Any) -> ResponseReturnValue:
    form = PictureForm()
    file = form.avatar.data

    def store() -> None:
        if "remove" not in request.form and not file:
            raise Invalid(avatar="is missing: choose a file")
        set_avatar(owner, None if "remove" in request.form else file)

    if form.accepted(store):
        flash("The picture was removed." if "remove" in request.form else "The picture was changed.")
        return redirect(request.path)
    return _page(owner, form, **subject), 422


def _page(owner: Owner, form: PictureForm, **subject: Any) -> str:
    base = "project.html" if "project" in subject else "account.html"
    template = "groups/avatar.html" if "group" in subject else "avatar.html"
    return render_template(template, owner=owner, form=form, base=base, **subject)
