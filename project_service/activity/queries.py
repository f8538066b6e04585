"""Which events there are for whom: the rows a caller may see, and no others, so that pages are full.

A project's feed is judged once, in Python, and cut from its index; feeds over several projects join the caller's roles.
The rules are those of the events reference, section 5.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, false, func, or_, select, true
from sqlalchemy.orm import selectinload

from project_service.access.abilities import own_issues, role_of
from project_service.access.identity import Caller
from project_service.core.levels import Role, Visibility
from project_service.core.memberships import authorized_projects, levels_by_project
from project_service.core.projects import ENABLED, PRIVATE, Project
from project_service.core.users import ACTIVE, User
from project_service.events.models import Action, Event, Kind, Restriction
from project_service.tracker import issues, milestones, notes, others

TARGETS = {
    "issue": issues.TARGET,
    "milestone": milestones.TARGET,
    "merge_request": others.MERGE_REQUEST,
    "note": notes.TARGET,
    "snippet": others.SNIPPET,
    "user": "User",
    "wiki": others.WIKI_PAGE,
    "design": others.DESIGN,
}
ABOUT_PROJECT = (Action.CREATED, Action.PUSHED, Action.JOINED, Action.LEFT, Action.EXPIRED)
# which features open a kind of event, and from which role on where the project or the feature is for members only
FEATURES: dict[Kind, tuple[tuple[str, Role], ...]] = {
    Kind.CODE: (("repository", Role.REPORTER),),
    Kind.ISSUE: (("issues", Role.GUEST),),
    Kind.MERGE_REQUEST: (("merge_requests", Role.REPORTER),),
    Kind.MILESTONE: (("issues", Role.GUEST), ("merge_requests", Role.GUEST)),
    Kind.WIKI: (("wiki", Role.GUEST),),
    Kind.SNIPPET: (("snippets", Role.GUEST),),
}


def events_of_author(caller: Caller, author_id: int, **wanted: Any) -> Select[Event]:
    """What somebody did, as far as the caller may see it."""
    return _ordered(_seen(caller).where(Event.author_id == author_id), wanted)


def events_of_user(caller: Caller, user: User, **wanted: Any) -> Select[Event]:
    """The same for a profile: private ones, and those of blocked users, show nothing to others."""
    statement = events_of_author(caller, user.id, **wanted)
    hidden = user.private_profile or user.state != ACTIVE
    return statement.where(false()) if hidden and user.id != caller.user_id and not caller.admin else statement


def events_of_memberships(caller: Caller, **wanted: Any) -> Select[Event]:
    """What anybody did in the projects the caller belongs to."""
    own = authorized_projects(caller.user_id or 0)
    return _ordered(_seen(caller).where(Event.project_id.in_(own)), wanted)


def events_of_project(caller: Caller, project: Project, **wanted: Any) -> Select[Event]:
    """What happened in a project, as far as the caller may see it."""
    statement = select(Event).where(Event.project_id == project.id, visible_in(caller, project))
    return _ordered(statement, wanted)


def visible_in(caller: Caller, project: Project) -> ColumnElement[bool]:
    """The condition on the events of one project that the caller sees; none at all for most members."""
    role = role_of(caller, project)
    opened = project.visibility == Visibility.PUBLIC or (
        project.visibility == Visibility.INTERNAL and caller.user_id is not None and not caller.external
    )
    closed = [kind for kind, features in FEATURES.items() if not _any_open(project, features, role, opened=opened)]
    conditions: list[ColumnElement[bool]] = [Event.kind.not_in(closed)] if closed else []
    if role < Role.REPORTER:
        restrictions = [Restriction.NONE, *([Restriction.MEMBERS] if role >= Role.GUEST else [])]
        allowed: ColumnElement[bool] = Event.restriction.in_(restrictions)
        if caller.user_id is not None:
            mine = Event.issue_id.in_(own_issues(caller.user_id))
            allowed = or_(allowed, and_(Event.restriction == Restriction.CONFIDENTIAL, mine))
        conditions.append(allowed)
    return and_(true(), *conditions)


def _any_open(project: Project, features: tuple[tuple[str, Role], ...], role: Role, *, opened: bool) -> bool:
    levels = [(getattr(project, f"{feature}_access_level"), least) for feature, least in features]
    return any(
        (level == ENABLED and (opened or role >= least)) or (level == PRIVATE and role >= least)
        for level, least in levels
    )


def _seen(caller: Caller) -> Select[Event]:
    """All events of projects the caller sees, judged row by row in the database."""
    statement = select(Event).join(Project, Project.id == Event.project_id).where(Project.deleting_since.is_(None))
    if caller.admin:
        return statement
    roles = levels_by_project(caller.user_id or 0)
    role = func.coalesce(roles.c.access_level, 0)
    least_open = Visibility.PUBLIC if caller.external or caller.user_id is None else Visibility.INTERNAL
    opened = Project.visibility >= least_open
    by_kind = [and_(Event.kind == Kind.PROJECT, or_(opened, role > 0))]
    by_kind += [
        and_(Event.kind == kind, or_(*(_open(feature, least, role, opened) for feature, least in features)))
        for kind, features in FEATURES.items()
    ]
    restricted = or_(
        Event.restriction == Restriction.NONE,
        role >= Role.REPORTER,
        and_(Event.restriction == Restriction.MEMBERS, role >= Role.GUEST),
        and_(Event.restriction == Restriction.CONFIDENTIAL, Event.issue_id.in_(own_issues(caller.user_id or 0))),
    )
    return statement.outerjoin(roles, roles.c.project_id == Event.project_id).where(or_(*by_kind), restricted)


def _open(feature: str, least: Role, role: Any, opened: Any) -> ColumnElement[bool]:
    level = getattr(Project, f"{feature}_access_level")
    return or_(and_(level == ENABLED, or_(opened, role >= least)), and_(level == PRIVATE, role >= least))


def _ordered(statement: Select[Event], wanted: dict[str, Any]) -> Select[Event]:
    if wanted.get("action"):
        statement = statement.where(Event.action == Action[wanted["action"].upper()])
    if wanted.get("target_type"):
        statement = statement.where(_targets(wanted["target_type"]))
    if wanted.get("before"):
        statement = statement.where(Event.created_at < _midnight(wanted["before"]))
    if wanted.get("after"):
        statement = statement.where(Event.created_at >= _midnight(wanted["after"] + dt.timedelta(days=1)))
    columns = (Event.created_at, Event.id)
    order = columns if wanted.get("sort") == "asc" else tuple(column.desc() for column in columns)
    return statement.order_by(*order).options(selectinload(Event.author))


def _targets(name: str) -> ColumnElement[bool]:
    if name != "project":
        return Event.target_type == TARGETS[name]
    untyped = and_(Event.target_type.is_(None), Event.action.in_(ABOUT_PROJECT))
    return or_(untyped, Event.target_type == "Project")


def _midnight(day: dt.date) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(), dt.UTC)
