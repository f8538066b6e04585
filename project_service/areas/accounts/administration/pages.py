"""Users in the administration area: search, create, block, make administrator, reset password, delete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.identity import caller
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.accounts.administration import queries, service
from project_service.areas.accounts.administration.forms import DeleteUserForm, NewUserForm
from project_service.areas.accounts.sign_in import two_factor
from project_service.domain.accounts.users import User, find_user
from project_service.kit.http.errors import Forbidden, Invalid, UnknownRoute
from project_service.kit.http.forms import Form
from project_service.kit.http.pagination import read_page

pages = PageBlueprint("user_admin_pages", __name__)
USERS = "/admin/users"
FILTERS = {"all": "All", "active": "Active", "blocked": "Blocked"}
ACTIONS: dict[str, tuple[Callable[[User], Any], str]] = {
    "block": (lambda user: service.block_user(caller().user_id, user), "{} is blocked and signed out."),
    "unblock": (service.unblock_user, "{} may sign in again."),
    "make_admin": (lambda user: service.update_user(user, admin=True), "{} is an administrator."),
    "disable_two_factor": (two_factor.reset_for, "Two-factor authentication of {} is switched off."),
    "remove_admin": (lambda user: service.update_user(user, admin=False), "{} is no longer an administrator."),
}
navigation.add(navigation.NavigationEntry("Users", USERS, 10, Ability.ADMINISTER), "administration")


@pages.get(USERS)
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def list_users() -> ResponseReturnValue:
    """Show the users, the newest first, filtered by state and text."""
    search, state = request.args.get("search", ""), request.args.get("state", "all")
    filters = {"search": search, "order_by": "id", "sort": "desc", state: True}
    page = read_page(queries.users_matching(caller(), **filters), request.args.get("page"), 50)
    chosen = state if state in FILTERS else "all"
    return render_template("accounts/admin/list.html", page=page, search=search, state=chosen, filters=FILTERS)


@pages.get(f"{USERS}/new")
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def new_user() -> ResponseReturnValue:
    """Show the form for a new user."""
    return render_template("accounts/admin/new.html", form=NewUserForm())


@pages.post(f"{USERS}/new")
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def create_user() -> ResponseReturnValue:
    """Create a user and show the first password once."""
    form = NewUserForm()
    fields = {name: form[name].data for name in ("name", "username", "email", "admin")}
    if accepted := form.accepted(lambda: service.create_user_for(**fields)):
        user, password = accepted.result
        return _page(user, password=password), 201
    return render_template("accounts/admin/new.html", form=form), 422


@pages.get(f"{USERS}/<int:user_id>")
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def show_user(user_id: int) -> ResponseReturnValue:
    """Show a user and what can be done."""
    return _page(find_user(user_id))


@pages.post(f"{USERS}/<int:user_id>/<action>")
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def change_user(user_id: int, action: str) -> ResponseReturnValue:
    """Block or unblock a user, or change whether they are an administrator."""
    if action not in ACTIONS:
        raise UnknownRoute
    user, form = find_user(user_id), Form()
    _refuse_own(user)
    act, text = ACTIONS[action]
    if form.accepted(lambda: act(user)):
        flash(text.format(user.username))
        return redirect(f"{USERS}/{user.id}")
    return _page(user, form=form), 422


@pages.post(f"{USERS}/<int:user_id>/reset_password")
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def reset_password(user_id: int) -> ResponseReturnValue:
    """Set a random password, end the sessions, and show the password once."""
    user = find_user(user_id)
    _refuse_own(user)
    return _page(user, password=service.new_password_of(user))


@pages.post(f"{USERS}/<int:user_id>/delete")
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def delete_user(user_id: int) -> ResponseReturnValue:
    """Delete a user whose username was typed."""
    user, form = find_user(user_id), DeleteUserForm()
    _refuse_own(user)

    def remove() -> None:
        if (form.typed_username.data or "").strip() != user.username:
            raise Invalid(typed_username=f"has to be {user.username}")
        service.delete_user(user, hard_delete=form.hard_delete.data)

    if form.accepted(remove):
        flash(f"{user.username} is being deleted.")
        return redirect(USERS)
    return _page(user, delete_form=form), 422


def _refuse_own(user: User) -> None:
    """Raise ``Forbidden`` for the own account: administrators must not lock themselves out by mistake."""
    if user.id == caller().user_id:
        raise Forbidden


def _page(user: User, **values: Any) -> str:
    """Render the page of a user; ``password`` is shown once, ``form`` and ``delete_form`` were refused."""
    context = {"form": Form(formdata=None), "delete_form": DeleteUserForm(formdata=None), "password": None} | values
    return render_template("accounts/admin/show.html", user=user, own=user.id == caller().user_id, **context)
