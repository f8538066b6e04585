"""Create, change and delete milestones."""

from __future__ import annotations

import datetime as dt
from typing import TypedDict, Unpack

from sqlalchemy import select

from project_service.domain import hook_events
from project_service.domain.events import recording
from project_service.domain.events.models import Action, Kind
from project_service.domain.hook_payloads import milestone_payload
from project_service.domain.projects import Project
from project_service.domain.tracker.counters import next_iid
from project_service.domain.tracker.issue_rules import LONGEST_TEXT
from project_service.domain.tracker.milestones import ACTIVE, CLOSED, Milestone
from project_service.domain.users import User
from project_service.kit.db.locking import delete_locked, lock_row
from project_service.kit.db.session import db, unique
from project_service.kit.http.errors import Invalid

LONGEST_TITLE = 255
COUNTER = "milestones"
TAKEN = "already being used for another group or project milestone."


class MilestoneFields(TypedDict, total=False):
    """What is set when a milestone is created or changed; ``state_event`` is for changes."""

    title: str | None
    description: str | None
    due_date: dt.date | None
    start_date: dt.date | None
    state_event: str | None


def create_milestone(author: User, project: Project, **fields: Unpack[MilestoneFields]) -> Milestone:
    """Create a milestone of a project."""
    milestone = Milestone(project_id=project.id, project=project, **fields)
    with db.session.no_autoflush:
        check(milestone)
        milestone.iid = next_iid(project.id, COUNTER)
    with unique(Invalid(title=TAKEN)):
        db.session.add(milestone)
    recording.record(author, Action.CREATED, project, milestone)
    _announce(milestone, "create")
    return milestone


def update_milestone(author: User, milestone: Milestone, **fields: Unpack[MilestoneFields]) -> Milestone:
    """Change a milestone; ``state_event`` closes and activates it."""
    state_event = fields.pop("state_event", None)
    with db.session.no_autoflush:
        for name, value in fields.items():
            setattr(milestone, name, value)
        check(milestone)
    with unique(Invalid(title=TAKEN)):
        db.session.flush()
    if state_event == "close":
        _change_state(author, milestone, CLOSED, Action.CLOSED)
    elif state_event == "activate":
        _change_state(author, milestone, ACTIVE, Action.REOPENED)
    return milestone


def delete_milestone(author: User, milestone: Milestone) -> None:
    """Delete a milestone; its events stay without a target (events reference, section 7)."""
    recording.forget_target(milestone)
    event = recording.record(author, Action.DESTROYED, milestone.project, milestone)
    event.target_id, event.kind = None, Kind.PROJECT
    _announce(milestone, "delete")
    delete_locked(milestone)


def _announce(milestone: Milestone, action: str) -> None:
    hook_events.announce("milestone_events", milestone.project, lambda: milestone_payload(milestone, action))


def check(milestone: Milestone) -> None:
    """Raise ``Invalid`` with the problems of a milestone."""
    problems: dict[str, list[str]] = {}
    if not (milestone.title or "").strip():
        problems["title"] = ["can't be blank"]
    elif len(milestone.title) > LONGEST_TITLE:
        problems["title"] = [f"is too long (maximum is {LONGEST_TITLE} characters)"]
    elif _title_taken(milestone):
        problems["title"] = [TAKEN]
    if len(milestone.description or "") > LONGEST_TEXT:
        problems["description"] = [f"is too long (maximum is {LONGEST_TEXT} characters)"]
    if milestone.start_date and milestone.due_date and milestone.start_date > milestone.due_date:
        problems["due_date"] = ["must be greater than start date"]
    if problems:
        raise Invalid(**problems)


def _change_state(author: User, milestone: Milestone, state: str, action: Action) -> None:
    lock_row(milestone, "state")  # of two concurrent requests only one closes it
    if milestone.state != state:
        milestone.state = state
        recording.record(author, action, milestone.project, milestone)
        db.session.flush()
        _announce(milestone, "close" if state == CLOSED else "reopen")


def _title_taken(milestone: Milestone) -> bool:
    same = select(Milestone.id).where(
        Milestone.project_id == milestone.project_id,
        Milestone.title == milestone.title,
        Milestone.id != (milestone.id or 0),
    )
    return db.session.scalar(same) is not None
