"""Rules for changes of alerts by users."""

from __future__ import annotations

import datetime as dt
from contextlib import nullcontext

from sqlalchemy import select

from project_service.access import audit
from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.access.references import mentions
from project_service.areas.alerts.effects import hooks, incidents, notifying
from project_service.areas.alerts.effects.incidents import note
from project_service.areas.alerts.models import ACKNOWLEDGING, TARGET, Alert, IncidentSetting, Status
from project_service.domain import page_paths, todos
from project_service.domain.accounts.users import ACTIVE, User, users
from project_service.domain.notifications import levels
from project_service.domain.projects import Project
from project_service.domain.repositories import contents
from project_service.domain.todos import TodoAction
from project_service.domain.tracker.issue_rules import check_note
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db, insert, unique
from project_service.kit.http import urls
from project_service.kit.http.errors import Invalid

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
        todos.finish(author.id, TARGET, [alert.id])


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
        todos.add([assignee.id], TodoAction.ASSIGNED, alert.project_id, TARGET, [alert.id], author=author)
        address = urls.absolute(f"/{alert.project.full_path}{page_paths.alert(alert.iid)}")
        levels.mail_assignees([assignee.id], author, alert.project, f"Alert: {alert.title}", address)


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
    """Comment on an alert, record an event, and notify mentioned users who may see it."""
    check_note(Note(body=body))
    written = incidents.comment(author, alert, body)
    mentions.notify(
        mentions.mentioned_users(body, lambda user: allowed(user, Ability.READ_ALERTS, alert.project)),
        author,
        alert.project,
        (TARGET, alert.id),
        title=f"{alert.title} (alert #{alert.iid})",
        address=f"{hooks.address_of(alert)}?note={written.id}#note_{written.id}",
        text=body,
        note=written,
    )
    return written


def mark(user: User, alert: Alert) -> None:
    """Add a to-do item of one's own."""
    todos.add([user.id], TodoAction.MARKED, alert.project_id, TARGET, [alert.id], author=user)


def unmark(user: User, alert: Alert) -> None:
    """Mark one's to-do item as done."""
    todos.finish(user.id, TARGET, [alert.id])


def save_incident_setting(
    project: Project, *, create_issue: bool, auto_close_incident: bool, issue_template_key: str | None
) -> None:
    """Save the incident settings of a project.

    The current text of the template is stored, so that no repository is read for an incident.
    """
    key = issue_template_key or None
    template = contents.issue_template(project, key) if key else None
    if key and template is None:
        raise Invalid(issue_template_key="not found")
    row = insert(IncidentSetting).values(project_id=project.id).on_conflict_do_nothing(index_elements=["project_id"])
    db.session.execute(row)
    setting = db.session.scalars(select(IncidentSetting).where(IncidentSetting.project_id == project.id)).one()
    lock_row(setting, "create_issue", "auto_close_incident", "issue_template_key", "issue_template")
    before = audit.settings_of(setting, UNAUDITED)
    setting.create_issue, setting.auto_close_incident = create_issue, auto_close_incident
    setting.issue_template_key, setting.issue_template = key, template
    audit.record_changes("incident_setting", project, before, audit.settings_of(setting, UNAUDITED))


def _open_twin(alert: Alert) -> Alert | None:
    if alert.fingerprint is None:
        return None
    same = select(Alert).where(
        Alert.project_id == alert.project_id, Alert.fingerprint == alert.fingerprint, Alert.id != alert.id
    )
    return db.session.scalar(same.where(Alert.status != Status.RESOLVED))
