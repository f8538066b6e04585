"""Changes of one thing of an issue, as the sidebar of its page sends them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

from project_service.access.identity import Caller, caller, current_user
from project_service.access.rules import sees
from project_service.areas.issues import service
from project_service.domain.accounts.users import user_by
from project_service.domain.tracker.issues import Issue
from project_service.kit.http.errors import Invalid
from project_service.kit.http.fields import whole_number

ME = "me"


def change_field(issue: Issue, sent: Mapping[str, str]) -> Issue:
    """Change what ``field`` names to ``value``.

    Raises:
        Invalid: there is no such field, or the value does not fit.

    """
    change = CHANGES.get(sent.get("field", ""))
    if change is None:
        raise Invalid(base="This cannot be changed here.")
    return service.update_issue(caller(), issue, **change(issue, sent.get("value", "").strip()))


def _assign(issue: Issue, value: str) -> dict[str, Any]:
    user = current_user() if value == ME else user_by(value.removeprefix("@"))
    if user is None or not sees(Caller.of(user), issue.project):
        raise Invalid(assignee=f"{value or 'nobody'} is no one who sees this project. Choose a username from the list.")
    return {"assignee_ids": [*(assignee.id for assignee in issue.assignees), user.id]}


def _unassign(issue: Issue, value: str) -> dict[str, Any]:
    return {"assignee_ids": [assignee.id for assignee in issue.assignees if assignee.username != value] or [0]}


def _add_label(_issue: Issue, value: str) -> dict[str, Any]:
    if not value or "," in value:
        raise Invalid(label="must be one title, without commas.")
    return {"add_labels": [value]}


def _remove_label(_issue: Issue, value: str) -> dict[str, Any]:
    return {"remove_labels": [value]}


def _milestone(_issue: Issue, value: str) -> dict[str, Any]:
    return {"milestone_id": whole_number(value) or None}


def _due_date(_issue: Issue, value: str) -> dict[str, Any]:
    try:
        return {"due_date": dt.date.fromisoformat(value) if value else None}
    except ValueError as error:
        raise Invalid(due_date="must be a day, such as 2030-12-31.") from error


def _confidential(_issue: Issue, value: str) -> dict[str, Any]:
    return {"confidential": value == "true"}


CHANGES: dict[str, Callable[[Issue, str], dict[str, Any]]] = {
    "assign": _assign,
    "unassign": _unassign,
    "add_label": _add_label,
    "remove_label": _remove_label,
    "milestone": _milestone,
    "due_date": _due_date,
    "confidential": _confidential,
}
TITLES = {  # of what each of them changes
    "assign": "Assignees",
    "unassign": "Assignees",
    "add_label": "Labels",
    "remove_label": "Labels",
    "milestone": "Milestone",
    "due_date": "Due date",
    "confidential": "Visibility",
}
