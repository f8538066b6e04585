"""The panel of to-do items on the home page."""

from __future__ import annotations

from typing import Any

from project_service.access.page_parts import panels
from project_service.access.page_parts.home_scope import HomeScope
from project_service.areas.todos import queries
from project_service.areas.todos.pages import REASONS
from project_service.kit.db.session import db

MAX_SHOWN = 5


def fill(scope: HomeScope) -> dict[str, Any]:
    """Return the newest to-do items of the caller."""
    todos = db.session.scalars(queries.todos_of(scope.caller).limit(MAX_SHOWN + 1)).all()
    rows = queries.with_targets(todos[:MAX_SHOWN])
    return {"rows": rows, "is_more": len(todos) > MAX_SHOWN, "reasons": REASONS}


panels.add(panels.Panel("home_side", 10, "todos/home.html", fill))
