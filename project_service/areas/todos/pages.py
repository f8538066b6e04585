"""The page of the to-do items of the signed-in user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.identity import caller
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.todos import queries
from project_service.areas.todos.queries import DONE, PENDING
from project_service.domain import todos
from project_service.kit.http.forms import Form
from project_service.kit.http.pagination import SelectedRows, read_page

pages = PageBlueprint("todo_pages", __name__)
BASE_PATH = "/dashboard/todos"
TABS = {PENDING: "To do", DONE: "Done"}
REASONS = {
    "assigned": "assigned to you",
    "mentioned": "mentions you",
    "build_failed": "import or export failed",
    "marked": "added by you",
}
navigation.add(navigation.NavigationEntry("To-do list", BASE_PATH, 20, Ability.SIGNED_IN), "main")


@pages.get(BASE_PATH)
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def list_todos() -> ResponseReturnValue:
    """Show the to-do items of the current user, those to be done or those that are done."""
    return _page(Form())


@pages.post(f"{BASE_PATH}/<int:todo_id>/<any(done,restore):change>")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def change_todo_item(todo_id: int, change: str) -> ResponseReturnValue:
    """Mark a to-do item as done, or as to be done again."""
    todo = todos.find_todo(caller().user_id or 0, todo_id)

    def act() -> None:
        if change == DONE:
            todos.finish_these(todo.user_id, [todo.id])
        else:
            todos.restore(todo)

    return _acted(act, done=change == "restore")


@pages.post(f"{BASE_PATH}/done")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def finish_all_todos() -> ResponseReturnValue:
    """Mark all to-do items of the current user as done."""
    return _acted(lambda: todos.finish_these(caller().user_id or 0, queries.ids_of(caller())), done=False)


def _acted(act: Callable[[], Any], *, done: bool) -> ResponseReturnValue:
    form = Form()
    if form.accepted(act):
        return redirect(f"{BASE_PATH}?state=done" if done else BASE_PATH)
    return _page(form), 422


def _page(form: Form) -> str:
    asked = request.args.get("state", PENDING)
    state = asked if asked in TABS else PENDING
    page = read_page(queries.todos_of(caller(), state=state), request.args.get("page"))
    return render_template(
        "todos/list.html",
        page=page,
        rows=queries.with_targets(page.rows),
        count=SelectedRows(queries.todos_of(caller())).total,
        state=state,
        tabs=TABS,
        reasons=REASONS,
        form=form,
    )
