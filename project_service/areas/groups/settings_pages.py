"""The settings of a group: details, path, deletion."""

from __future__ import annotations

from flask import flash, redirect, render_template
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.identity import caller
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.groups import service
from project_service.areas.groups.forms import GroupDeleteForm, GroupDetailsForm, GroupPathForm
from project_service.areas.groups.schemas import visibility_text
from project_service.domain import page_paths
from project_service.domain.namespaces import Group
from project_service.kit.http import urls
from project_service.kit.http.errors import Invalid
from project_service.kit.http.forms import Form

pages = PageBlueprint("group_settings_pages", __name__)
BASE_PATH = "/groups/<path:group>/-/edit"
navigation.add(navigation.NavigationEntry("General", "/-/edit", 10, Ability.ADMIN_GROUP), "group_settings")


@pages.get(BASE_PATH)
@pages.signed_in
@pages.allow(Ability.ADMIN_GROUP)
def show_settings(group: Group) -> ResponseReturnValue:
    """Show the settings of a group."""
    return _page(group)


@pages.post(f"{BASE_PATH}/details")
@pages.signed_in
@pages.allow(Ability.ADMIN_GROUP)
def save_details(group: Group) -> ResponseReturnValue:
    """Change name, description, visibility and who may create something."""
    form = GroupDetailsForm()
    fields = {name: form[name].data for name in form.data if name != "csrf_token"}
    fields["description"] = (fields["description"] or "").replace("\r\n", "\n")
    if form.accepted(lambda: service.update_group(caller(), group, **fields)):
        return _saved(group, "The group was changed.")
    return _page(group, details_form=form), 422


@pages.post(f"{BASE_PATH}/path")
@pages.signed_in
@pages.allow(Ability.ADMIN_GROUP)
def save_path(group: Group) -> ResponseReturnValue:
    """Change the last part of the address, and with it the paths of all that is below."""
    form = GroupPathForm()
    if form.accepted(lambda: service.update_group(caller(), group, path=(form.path.data or "").strip())):
        return _saved(group, f"The group is now at {group.full_path}.")
    return _page(group, path_form=form), 422


@pages.post(f"{BASE_PATH}/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_GROUP)
def delete(group: Group) -> ResponseReturnValue:
    """Delete a group whose full path was typed, with all that is below it."""
    form = GroupDeleteForm()

    def remove() -> None:
        if (form.typed_path.data or "").strip() != group.full_path:
            raise Invalid(typed_path=f"has to be {group.full_path}")
        service.delete_group(group)

    if form.accepted(remove):
        flash(f"The group {group.full_path} is being deleted.")
        return redirect("/dashboard/groups")
    return _page(group, delete_form=form), 422


def _page(group: Group, **refused: Form) -> str:
    """Render the page; ``refused`` is a form to show again."""
    forms: dict[str, Form] = {
        "details_form": GroupDetailsForm(formdata=None, obj=group),
        "path_form": GroupPathForm(formdata=None, obj=group),
        "delete_form": GroupDeleteForm(formdata=None),
    }
    forms["details_form"].visibility.data = visibility_text(group)  # the column holds a number
    return render_template("groups/settings.html", group=group, base_url=urls.base_url(), **(forms | refused))


def _saved(group: Group, text: str) -> ResponseReturnValue:
    flash(text)
    return redirect(f"{page_paths.base_of(group)}/-/edit")
