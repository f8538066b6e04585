"""Changes of many alerts with a few statements: status and assignee of those selected in a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Select, select, update

from project_service.areas.alerts.models import ACKNOWLEDGING, TARGET, Alert, Status
from project_service.domain import todos
from project_service.domain.accounts.users import User
from project_service.domain.notifications import levels
from project_service.domain.projects import Project
from project_service.domain.todos import TodoAction
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.session import db, insert, unique
from project_service.kit.http import urls
from project_service.kit.http.errors import Invalid

MAX_ALERTS = 1000  # of one request
OPENED_MEANWHILE = "Of one of the alerts another was opened a moment ago. Try again."


class AlertState(NamedTuple):
    """What a change of an alert depends on."""

    id: int
    status: int
    fingerprint: str | None
    assignee_id: int | None


@dataclass(slots=True)
class BulkChange:
    """How many alerts were changed, and how many stayed resolved because a newer one of the same identity is open."""

    changed: int = 0
    refused: int = 0
    is_cut: bool = False  # there were more


def change_alerts(
    author: User,
    project: Project,
    selected: Select[int, int, str | None, int | None],
    status: Status | None,
    assignee: User | None,
    *,
    assign: bool,
) -> BulkChange:
    """Change the status of at most ``MAX_ALERTS`` alerts and, if ``assign``, their assignee (``None``: nobody).

    ``selected`` has the columns of ``AlertState``.
    """
    rows = db.session.execute(selected.limit(MAX_ALERTS + 1).with_for_update(of=Alert, key_share=True)).all()
    states = sorted((AlertState(*row) for row in rows[:MAX_ALERTS]), reverse=True)
    change = BulkChange(is_cut=len(rows) > MAX_ALERTS)
    changed: set[int] = set()
    if status is not None:
        twins = _with_open_twin(project, states) if status != Status.RESOLVED else set()
        change.refused = len(twins)
        changed |= _set_status(author, project, [state for state in states if state.id not in twins], status)
    if assign:
        changed |= _assign(author, project, states, assignee)
    change.changed = len(changed)
    return change


def _set_status(author: User, project: Project, states: Sequence[AlertState], status: Status) -> set[int]:
    ids = [state.id for state in states if state.status != status]
    if not ids:
        return set()
    ended_at = clock.now() if status == Status.RESOLVED else None
    with unique(Invalid(base=OPENED_MEANWHILE)):
        values: dict[str, Any] = {"status": status, "ended_at": ended_at}
        if status in ACKNOWLEDGING:
            values["acknowledged_at"] = clock.now() if status == Status.ACKNOWLEDGED else None
        db.session.execute(update(Alert).where(Alert.id.in_(ids)).values(**values))
    _add_notes(author, project, dict.fromkeys(ids, f"changed the status to **{status.title}**"))
    if status == Status.RESOLVED:
        todos.finish(author.id, TARGET, ids)
    return set(ids)


def _assign(author: User, project: Project, states: Sequence[AlertState], assignee: User | None) -> set[int]:
    assignee_id = assignee.id if assignee is not None else None
    before = {state.id: state.assignee_id for state in states if state.assignee_id != assignee_id}
    if not before:
        return set()
    named = select(User.id, User.username).where(User.id.in_({user_id for user_id in before.values() if user_id}))
    usernames: dict[int, str] = dict(db.session.execute(named).all())
    db.session.execute(update(Alert).where(Alert.id.in_(before)).values(assignee_id=assignee_id))
    added = [f"assigned to @{assignee.username}"] if assignee is not None else []
    notes = {
        number: " and ".join([*added, *([f"unassigned @{usernames[user_id]}"] if user_id in usernames else [])])
        for number, user_id in before.items()
    }
    _add_notes(author, project, notes)
    if assignee is not None:
        todos.add([assignee.id], TodoAction.ASSIGNED, project.id, TARGET, before, author=author)
        address = urls.absolute(f"/{project.full_path}/-/alert_management?assignee_username={assignee.username}")
        number = f"{len(before)} alert{'' if len(before) == 1 else 's'}"
        levels.mail_assignees([assignee.id], author, project, number, address)
    return set(before)


def _with_open_twin(project: Project, states: Sequence[AlertState]) -> set[int]:
    """Return the resolved alerts that cannot be opened: another of the same identity is, or will be, open."""
    resolved = [state for state in states if state.status == Status.RESOLVED and state.fingerprint is not None]
    named = {state.fingerprint for state in resolved}
    opened = select(Alert.fingerprint).where(Alert.project_id == project.id, Alert.status != Status.RESOLVED)
    taken = set(db.session.scalars(opened.where(Alert.fingerprint.in_(named)))) if named else set()
    twins = set()
    for state in resolved:  # the newest first: of several only that is opened
        if state.fingerprint in taken:
            twins.add(state.id)
        taken.add(state.fingerprint)
    return twins


def _add_notes(author: User, project: Project, bodies: dict[int, str]) -> None:
    own = {"project_id": project.id, "noteable_type": TARGET, "system": True, "author_id": author.id}
    db.session.execute(insert(Note), [own | {"noteable_id": number, "body": body} for number, body in bodies.items()])
