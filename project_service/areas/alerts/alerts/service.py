"""Rules for changes of alerts by users."""

from __future__ import annotations

import datetime as dt
import re
from contextlib import nullcontext
from typing import Any

from sqlalchemy import func, select, update

from project_service.access import audit
from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.areas.alerts.alerts import hooks, incidents, notifying
from project_service.areas.alerts.alerts.incidents import note
from project_service.areas.alerts.models import ACKNOWLEDGING, Alert, AlertTodo, IncidentSetting, Status
from project_service.domain.projects import Project
from project_service.domain.repositories import contents
from project_service.domain.tracker.issue_rules import check_note
from project_service.domain.tracker.notes import Note
from project_service.domain.users import ACTIVE, User, users
from project_service.kit import clock
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db, insert, unique
from project_service.kit.http.errors import Invalid

MENTION = re.compile(r"(?<![\w@])@([A-Za-z0-9_][A-Za-z0-9_.-]*)")
MAX_MENTIONED_USERS = 50
UNAUDITED = ("issue_template",)  # the text of the template that the audited key names


def change_status(author: User, alert: Alert, status: Status, *, ended_at: dt.datetime | None = None) -> None:
    """Change the status of an alert; it can be reopened only while no other with its fingerprint is open."""
    # locked: a concurrent payload changes it before or after, not in between
    lock_row(alert, "status", "ended_at")
    if alert.status == status:
        return
    before = Status(alert.status)
    if alert.status == Status.RESOLVED and (twin := _open_twin(alert)) is not None:
        raise Invalid(
            status=f"cannot be changed: alert #{twin.iid} with the same fingerprint is already open. Resolve it first."
        )
    opened = unique(Invalid(status="cannot be changed: an alert with the same fingerprint was opened a moment ago."))
    with opened if alert.status == Status.RESOLVED else nullcontext():
        alert.status = status
        alert.ended_at = (ended_at or clock.now()) if status == Status.RESOLVED else None
        if status in ACKNOWLEDGING:
            alert.acknowledged_at = clock.now() if status == Status.ACKNOWLEDGED else None
    hooks.announce_status(alert, author, before)
    notifying.record_status(alert, author, before)
    note(author, alert, f"changed the status to **{status.title}**")
    if status == Status.RESOLVED:
        finish_todo(author, alert)


def assign(author: User, alert: Alert, assignee: User | None) -> None:
    """Assign an alert to a user, who gets a to-do item, or to none."""
    before = alert.assignee
    if (before.id if before else None) == (assignee.id if assignee else None):
        return
    alert.assignee_id = assignee.id if assignee else None
    alert.assignee = assignee
    parts = [f"assigned to @{assignee.username}"] if assignee else []
    parts += [f"unassigned @{before.username}"] if before else []
    ids = {"previous": [before.id] if before else [], "current": [assignee.id] if assignee else []}
    hooks.announce(alert, author, hooks.UPDATE, {"assignee_ids": ids})
    note(author, alert, " and ".join(parts))
    if assignee is not None:
        add_todo(assignee, alert)


def assign_to_id(author: User, alert: Alert, user_id: int | None) -> None:
    """Assign an alert to the user with an id, who must be able to see it; ``None`` and 0 mean none."""
    user = db.session.scalar(users().where(User.id == user_id)) if user_id else None
    assign(author, alert, checked_assignee(alert.project, user) if user_id else None)


def checked_assignee(project: Project, user: User | None) -> User:
    """Return a user who can be assigned to alerts; ``Invalid`` for others."""
    if user is None or user.state != ACTIVE or not allowed(Caller.of(user), Ability.READ_ALERTS, project):
        raise Invalid(base="Assignee has no permissions")
    return user


def comment(author: User, alert: Alert, body: str) -> Note:
    """Comment on an alert, record an event, and add to-do items for mentioned users."""
    check_note(Note(body=body))
    for user in _mentioned(alert, body):
        add_todo(user, alert)
    return incidents.comment(author, alert, body)


def add_todo(user: User, alert: Alert) -> None:
    """Add a to-do item, unless there is one; one that was done is to be done again."""
    now = clock.now()
    row = insert(AlertTodo).values(alert_id=alert.id, user_id=user.id, created_at=now, updated_at=now)
    again = {"done_at": None, "updated_at": now}
    db.session.execute(row.on_conflict_do_update(index_elements=["alert_id", "user_id"], set_=again))


def finish_todo(user: User, alert: Alert) -> None:
    """Mark the to-do item of a user as done."""
    todo = update(AlertTodo).where(AlertTodo.alert_id == alert.id, AlertTodo.user_id == user.id)
    db.session.execute(todo.where(AlertTodo.done_at.is_(None)).values(done_at=clock.now()))


def finish_todos(user: User) -> None:
    """Mark all to-do items of a user as done."""
    waiting = update(AlertTodo).where(AlertTodo.user_id == user.id, AlertTodo.done_at.is_(None))
    db.session.execute(waiting.values(done_at=clock.now()))


def save_incident_setting(project: Project, **fields: Any) -> None:
    """Save the incident settings of a project.

    The current text of the template is stored, so that no repository is read for an incident.
    """
    key = fields.pop("issue_template_key", None)
    template = contents.issue_template(project, key) if key else None
    if key and template is None:
        raise Invalid(issue_template_key="not found")
    fields |= {"issue_template_key": key or None, "issue_template": template}
    row = insert(IncidentSetting).values(project_id=project.id).on_conflict_do_nothing(index_elements=["project_id"])
    db.session.execute(row)
    setting = db.session.scalars(select(IncidentSetting).where(IncidentSetting.project_id == project.id)).one()
    lock_row(setting, *fields)
    before = audit.settings_of(setting, UNAUDITED)
    for name, value in fields.items():
        setattr(setting, name, value)
    audit.record_changes("incident_setting", project, before, audit.settings_of(setting, UNAUDITED))


def _mentioned(alert: Alert, body: str) -> list[User]:
    """Return the mentioned users who may see the alert."""
    names = {name.rstrip(".-").lower() for name in MENTION.findall(body)}
    found = db.session.scalars(users().where(func.lower(User.username).in_(sorted(names)[:MAX_MENTIONED_USERS])))
    return [user for user in found if allowed(Caller.of(user), Ability.READ_ALERTS, alert.project)]


def _open_twin(alert: Alert) -> Alert | None:
    if alert.fingerprint is None:
        return None
    same = select(Alert).where(
        Alert.project_id == alert.project_id, Alert.fingerprint == alert.fingerprint, Alert.id != alert.id
    )
    return db.session.scalar(same.where(Alert.status != Status.RESOLVED))
