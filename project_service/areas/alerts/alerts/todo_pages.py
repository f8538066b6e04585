"""The page of the to-do items of the signed-in user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import redirect, render_template, request

from project_service.access import navigation
from project_service.access.abilities import Ability
from project_service.access.identity import caller, current_user
from project_service.access.pages import PageBlueprint
from project_service.access.rules import projects_with_alerts
from project_service.areas.alerts import queries
from project_service.areas.alerts.alerts import service
from project_service.areas.alerts.models import Severity, Status
from project_service.kit.http.forms import Form
from project_service.kit.http.pagination import SelectedRows, read_page

pages = PageBlueprint("todo_pages", __name__)
BASE_PATH = "/dashboard/todos"
TABS = {"pending": "To do", "done": "Done"}
navigation.add(navigation.NavigationEntry("To-do list", BASE_PATH, 20, Ability.SIGNED_IN), "main")


@pages.get(BASE_PATH)
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def list_todos() -> Any:
    """Show the to-do items of the current user, those to be done or those that are done."""
    return _page(Form())


@pages.post(f"{BASE_PATH}/<int:todo_id>/<any(done,restore):change>")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def change_todo_item(todo_id: int, change: str) -> Any:
    """Mark a to-do item as done, or as to be done again."""
    todo = queries.find_todo(caller().user_id or 0, todo_id)
    act = service.finish_todo if change == "done" else service.add_todo
    return _acted(lambda: act(current_user(), todo.alert), done=change == "restore")


@pages.post(f"{BASE_PATH}/done")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def finish_all_todos() -> Any:
    """Mark all to-do items of the current user as done."""
    return _acted(lambda: service.finish_todos(current_user()), done=False)


def _acted(act: Callable[[], Any], *, done: bool) -> Any:
    form = Form()
    if form.accepted(act):
        return redirect(f"{BASE_PATH}?state=done" if done else BASE_PATH)
    return _page(form), 422


def _page(form: Form) -> str:
    user_id, seen = caller().user_id or 0, projects_with_alerts(caller())
    asked = request.args.get("state", "pending")
    state = asked if asked in TABS else "pending"
    waiting = queries.todos_of(seen, user_id, done=False)
    return render_template(
        "alerts/todos.html",
        page=read_page(queries.todos_of(seen, user_id, done=state == "done"), request.args.get("page")),
        count=SelectedRows(waiting).total,
        state=state,
        tabs=TABS,
        severity=Severity,
        status=Status,
        form=form,
    )
