"""Create, change, delete and promote milestones of projects and groups.

Milestones of groups have no events and no hooks.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, TypedDict, Unpack

from sqlalchemy import ColumnElement, Select, delete, insert, literal, or_, select, update

from project_service.domain.accounts.users import User
from project_service.domain.events import recording
from project_service.domain.events.models import Action, Kind
from project_service.domain.hooks import hook_events
from project_service.domain.hooks.hook_payloads import milestone_payload
from project_service.domain.namespaces import Group, Namespace, descendants_of, groups_above
from project_service.domain.paths import path_registry
from project_service.domain.projects import Project, projects_below
from project_service.domain.repositories.releases import ReleaseMilestone
from project_service.domain.tracker.counters import next_iid_in
from project_service.domain.tracker.issue_rules import LONGEST_TEXT
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.milestones import ACTIVE, CLOSED, Milestone
from project_service.kit import clock
from project_service.kit.db.locking import delete_locked, lock_row
from project_service.kit.db.session import db, unique
from project_service.kit.http.errors import BadRequest, Forbidden, Invalid

LONGEST_TITLE = 255
COUNTER = "milestones"
TAKEN = "already being used for another group or project milestone."
NO_SYNC = {"synchronize_session": False}
PLANNED: tuple[Any, ...] = (Issue, MergeRequest)  # what has a milestone
COPIED = ("title", "description", "start_date", "due_date", "state")


class MilestoneFields(TypedDict, total=False):
    """What is set when a milestone is created or changed; ``state_event`` is for changes."""

    title: str | None
    description: str | None
    due_date: dt.date | None
    start_date: dt.date | None
    state_event: str | None


def create_milestone(author: User, owner: Project | Group, **fields: Unpack[MilestoneFields]) -> Milestone:
    """Create a milestone of a project or a group."""
    milestone = Milestone(**fields)
    milestone.belong_to(owner)
    _lock_tree(owner)
    with db.session.no_autoflush:
        check(milestone)
        milestone.iid = next_iid_in(owner, COUNTER)
    with unique(Invalid(title=TAKEN)):
        db.session.add(milestone)
    _record(author, Action.CREATED, milestone, "create")
    return milestone


def update_milestone(author: User, milestone: Milestone, **fields: Unpack[MilestoneFields]) -> Milestone:
    """Change a milestone; ``state_event`` closes and activates it."""
    state_event = fields.pop("state_event", None)
    if fields.get("title") not in (None, milestone.title):
        _lock_tree(milestone.owner)
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
    """Delete a milestone; issues and merge requests lose it, its events stay without a target.

    Events reference, section 7.
    """
    lock_row(milestone)
    for model in PLANNED:
        lost = update(model).where(model.milestone_id == milestone.id)
        db.session.execute(lost.values(milestone_id=None, updated_at=clock.now()), execution_options=NO_SYNC)
    if milestone.project is not None:
        recording.forget_target(milestone)
        event = recording.record(author, Action.DESTROYED, milestone.project, milestone)
        event.target_id, event.kind = None, Kind.PROJECT
        _announce(milestone, milestone.project, "delete")
    delete_locked(milestone)


def promote_milestone(milestone: Milestone) -> Milestone:
    """Make a milestone of the group of the project's one, which takes the place of all of that title in the group.

    These are the milestones of the projects that are directly in the group.

    Raises:
        Forbidden: the project belongs to no group.
        BadRequest: a group above or below, or a project further below, has a milestone of that title.

    """
    project = milestone.project
    if project is None or not isinstance(project.namespace, Group):
        raise Forbidden
    group = project.namespace
    _lock_tree(group)
    direct = select(Project.id).where(Project.namespace_id == group.id)
    replaced = Milestone.title == milestone.title, Milestone.project_id.in_(direct)
    replaced_ids = list(db.session.scalars(select(Milestone.id).where(*replaced)))
    promoted = Milestone(**{name: getattr(milestone, name) for name in COPIED})
    promoted.belong_to(group)
    with db.session.no_autoflush:
        if db.session.scalar(_same_title(promoted).where(Milestone.id.not_in(replaced_ids)).limit(1)) is not None:
            raise BadRequest(f"Promotion failed - Validation failed: Title {TAKEN}")
        promoted.iid = next_iid_in(group, COUNTER)
    db.session.add(promoted)
    db.session.flush()
    _move_uses(replaced_ids, promoted.id)
    for number in replaced_ids:
        recording.forget_target(db.session.get_one(Milestone, number))
    db.session.execute(delete(Milestone).where(Milestone.id.in_(replaced_ids)), execution_options=NO_SYNC)
    return promoted


def keep_group_milestones(project: Project, former: Namespace) -> None:
    """Copy the milestones of the groups that a project left which its issues and merge requests have."""
    left = (
        Milestone.group_id.in_(groups_above(former.id)),
        Milestone.group_id.not_in(groups_above(project.namespace_id)),
    )
    used = or_(
        *(Milestone.id.in_(select(model.milestone_id).where(model.project_id == project.id)) for model in PLANNED)
    )
    for milestone in db.session.scalars(select(Milestone).where(*left, used).order_by(Milestone.id)).all():
        copy = Milestone(iid=next_iid_in(project, COUNTER), **{name: getattr(milestone, name) for name in COPIED})
        copy.belong_to(project)
        db.session.add(copy)
        db.session.flush()
        for model in PLANNED:
            of_project = model.milestone_id == milestone.id, model.project_id == project.id
            db.session.execute(
                update(model).where(*of_project).values(milestone_id=copy.id, updated_at=model.updated_at),
                execution_options=NO_SYNC,
            )


def check(milestone: Milestone) -> None:
    """Raise ``Invalid`` with the problems of a milestone."""
    problems: dict[str, list[str]] = {}
    if not (milestone.title or "").strip():
        problems["title"] = ["can't be blank"]
    elif len(milestone.title) > LONGEST_TITLE:
        problems["title"] = [f"is too long (maximum is {LONGEST_TITLE} characters)"]
    elif db.session.scalar(_same_title(milestone).limit(1)) is not None:
        problems["title"] = [TAKEN]
    if len(milestone.description or "") > LONGEST_TEXT:
        problems["description"] = [f"is too long (maximum is {LONGEST_TEXT} characters)"]
    if milestone.start_date and milestone.due_date and milestone.start_date >= milestone.due_date:
        problems["due_date"] = ["must be greater than start date"]
    if problems:
        raise Invalid(**problems)


def _same_title(milestone: Milestone) -> Select[int]:
    """Other milestones that may not have its title: of groups above, and of a group's subgroups and their projects."""
    same = select(Milestone.id).where(Milestone.title == milestone.title, Milestone.id != (milestone.id or 0))
    return same.where(or_(*_related(milestone.owner)))


def _related(owner: Project | Group) -> list[ColumnElement[bool]]:
    above = groups_above(owner.id if isinstance(owner, Group) else owner.namespace_id)
    related: list[ColumnElement[bool]] = [Milestone.group_id.in_(above)]
    if isinstance(owner, Group):
        related += [Milestone.group_id.in_(descendants_of(owner)), Milestone.project_id.in_(projects_below(owner))]
    else:
        related.append(Milestone.project_id == owner.id)
    return related


def _lock_tree(owner: Project | Group) -> None:
    """Exclude other writers of milestones in the same tree of groups, in which titles are unique."""
    namespace = owner if isinstance(owner, Group) else owner.namespace
    if isinstance(namespace, Group):
        path_registry.lock_tree(namespace, moving=True)


def _move_uses(milestone_ids: list[int], new_id: int) -> None:
    """Give the issues, merge requests and releases of some milestones another one."""
    for model in PLANNED:
        moved = update(model).where(model.milestone_id.in_(milestone_ids))
        db.session.execute(moved.values(milestone_id=new_id, updated_at=model.updated_at), execution_options=NO_SYNC)
    of_releases = ReleaseMilestone.milestone_id.in_(milestone_ids)
    releases = select(ReleaseMilestone.release_id, literal(new_id)).where(of_releases).distinct()
    db.session.execute(insert(ReleaseMilestone).from_select(["release_id", "milestone_id"], releases))


def _change_state(author: User, milestone: Milestone, state: str, action: Action) -> None:
    lock_row(milestone, "state")  # of two concurrent requests only one closes it
    if milestone.state != state:
        milestone.state = state
        db.session.flush()
        _record(author, action, milestone, "close" if state == CLOSED else "reopen")


def _record(author: User, action: Action, milestone: Milestone, announced: str) -> None:
    """Record what happened to a milestone of a project; those of groups have neither events nor hooks."""
    if milestone.project is not None:
        recording.record(author, action, milestone.project, milestone)
        db.session.flush()
        _announce(milestone, milestone.project, announced)


def _announce(milestone: Milestone, project: Project, action: str) -> None:
    hook_events.announce("milestone_events", project, lambda: milestone_payload(milestone, project, action))
