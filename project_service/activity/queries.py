"""Which events there are for whom: the rows a caller may see, and no others, so that pages are full.

What somebody sees of a project is judged once per project, in Python (``sight_of``, the rules of the events reference,
section 5), and becomes a condition on columns that the index of the feed carries: a page is cut, and the total counted,
inside the index. The statements give ids, which the index has; ``targets.events_with_targets`` fetches what a page
shows of them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    Select,
    and_,
    bindparam,
    column,
    false,
    func,
    literal,
    or_,
    select,
    union_all,
)

from project_service.access.abilities import opened_to, own_issues, role_of
from project_service.access.identity import Caller
from project_service.activity.scattered import Part, Scattered
from project_service.core.levels import Role
from project_service.core.memberships import levels_by_project
from project_service.core.projects import ENABLED, PRIVATE, Project
from project_service.core.users import ACTIVE, User
from project_service.events.models import Action, Event, Kind, Restriction
from project_service.kit.database import db
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
LEVELS = tuple(dict.fromkeys(f"{feature}_access_level" for needed in FEATURES.values() for feature, _ in needed))
# the lowest role to which a restriction leaves an event
LEFT_TO = {
    Restriction.NONE: Role.NONE,
    Restriction.SIGNED_IN: Role.MINIMAL,
    Restriction.MEMBERS: Role.GUEST,
    Restriction.CONFIDENTIAL: Role.REPORTER,
    Restriction.INTERNAL: Role.REPORTER,
    Restriction.DEVELOPERS: Role.DEVELOPER,
}
# so many projects are merged from the index of each in one statement; more of them are ``Scattered``
MERGED = 200
NO_PROJECT = 0


@dataclass(frozen=True, slots=True)
class Sight:
    """What somebody sees of a project: events of these kinds, as far as they are under one of these restrictions."""

    kinds: tuple[Kind, ...]
    restrictions: tuple[Restriction, ...]

    @property
    def shape(self) -> tuple[bool, bool, bool]:
        """Which conditions it takes to say so, whatever their values."""
        some_kinds, some_restrictions = len(self.kinds) < len(Kind), len(self.restrictions) < len(Restriction)
        return some_kinds, some_restrictions, Restriction.CONFIDENTIAL in self.restrictions


def events_of_author(caller: Caller, author_id: int, **wanted: Any) -> Select[int]:
    """What somebody did, as far as the caller may see it."""
    sights = _sights(caller, _worked_in(author_id))
    return _ordered(Event, wanted).where(Event.author_id == author_id, _seen_in(caller, sights), *_wanted(wanted))


def events_of_user(caller: Caller, user: User, **wanted: Any) -> Select[int]:
    """The same for a profile: private ones, and those of blocked users, show nothing to others."""
    hidden = user.private_profile or user.state != ACTIVE
    if hidden and user.id != caller.user_id and not caller.admin:
        return _ordered(Event, wanted).where(false())
    return events_of_author(caller, user.id, **wanted)


def events_of_memberships(caller: Caller, **wanted: Any) -> Select[int] | Scattered:
    """What anybody did in the projects the caller belongs to."""
    sights = _sights(caller)
    if not sights:
        return _ordered(Event, wanted).where(false())
    if len(sights) <= MERGED:
        return _merged(caller, sights, wanted)
    parts = (
        Part(tuple(projects), (*_within(caller, sight), *_wanted(wanted))) for sight, projects in _alike(sights).items()
    )
    walk = _ordered(Event, wanted).where(_seen_in(caller, sights), *_wanted(wanted))
    return Scattered(tuple(parts), walk, tuple(_days(wanted)), wanted.get("sort") == "asc")


def events_of_project(caller: Caller, project: Project, **wanted: Any) -> Select[int]:
    """What happened in a project, as far as the caller may see it."""
    sight = sight_of(caller, role_of(caller, project), project)
    return _ordered(Event, wanted).where(Event.project_id == project.id, *_within(caller, sight), *_wanted(wanted))


def sight_of(caller: Caller, role: int, project: Any) -> Sight:
    """What somebody with this role sees of a project."""
    opened = opened_to(caller, project.visibility)
    loaded = {} if project.loading else FEATURES  # what an archive brings appears when all of it is there
    kinds = [kind for kind, features in loaded.items() if _any_open(project, features, role, opened=opened)]
    if opened or role > Role.NONE:
        kinds.append(Kind.PROJECT)
    trusted = caller.user_id is not None and not caller.external
    return Sight(
        tuple(kinds),
        tuple(
            restriction
            for restriction, least in LEFT_TO.items()
            if role >= least or (restriction is Restriction.SIGNED_IN and trusted)
        ),
    )


def _any_open(project: Any, features: tuple[tuple[str, Role], ...], role: int, *, opened: bool) -> bool:
    levels = [(getattr(project, f"{feature}_access_level"), least) for feature, least in features]
    return any(
        (level == ENABLED and (opened or role >= least)) or (level == PRIVATE and role >= least)
        for level, least in levels
    )


def _worked_in(author_id: int) -> CTE:
    """The projects somebody has events in: one step in the index for each, however many events those are."""
    author = Event.author_id == author_id
    worked = select(func.min(Event.project_id).label("project_id")).where(author).cte("worked", recursive=True)
    following = select(func.min(Event.project_id)).where(author, Event.project_id > worked.c.project_id)
    return worked.union_all(
        select(following.correlate(worked).scalar_subquery()).where(worked.c.project_id.is_not(None))
    )


def _sights(caller: Caller, worked: CTE | None = None) -> dict[int, Sight]:
    """What the caller sees of the projects somebody worked in, or of those the caller belongs to.

    Projects without anything to see are left out.
    """
    levels = levels_by_project(caller.user_id or 0)
    role = literal(int(Role.OWNER)) if caller.admin else func.coalesce(levels.c.access_level, int(Role.NONE))
    columns = (getattr(Project, name) for name in LEVELS)
    statement = select(Project.id, role.label("role"), Project.visibility, Project.loading, *columns)
    if worked is None:
        statement = statement.join(levels, levels.c.project_id == Project.id).where(levels.c.access_level >= Role.GUEST)
    else:
        statement = statement.join(worked, worked.c.project_id == Project.id)
        statement = statement.outerjoin(levels, levels.c.project_id == Project.id)
    found = db.session.execute(statement.where(Project.deleting_since.is_(None)).order_by(Project.id))
    sights = {row.id: sight_of(caller, row.role, row) for row in found}
    return {project_id: sight for project_id, sight in sights.items() if sight.kinds}


def _seen_in(caller: Caller, sights: dict[int, Sight]) -> ColumnElement[bool]:
    """The condition on events of several projects."""
    # as a sum it is no reason for a database to leave the order of the feed's index for that of another;
    # written out, for there may be more ids than a statement can have parameters
    project = Event.project_id + 0
    return or_(
        false(),
        *(
            and_(project.in_(bindparam(None, ids, expanding=True, literal_execute=True)), *_within(caller, sight))
            for sight, ids in _alike(sights).items()
        ),
    )


def _alike(sights: dict[int, Sight]) -> dict[Sight, list[int]]:
    """The projects of each sight."""
    alike: dict[Sight, list[int]] = {}
    for project_id, sight in sights.items():
        alike.setdefault(sight, []).append(project_id)
    return alike


def _merged(caller: Caller, sights: dict[int, Sight], wanted: dict[str, Any]) -> Select[int]:
    """The events of several projects: each has its own index, which the database reads in order and merges.

    PostgreSQL takes it from the order of every part, SQLite from that of the union, which it keeps; for any other both
    would read all there are and sort them.
    Statements are kept compiled, which takes time and memory: so that there are few of them for many callers, the
    parts stand together by what conditions they have, and are filled up to 1, 2, 4, 8 … with a project there is not.
    """
    events = Event.__table__.c
    parts: dict[Sight, Select[Any]] = {
        sight: select(events.id, events.created_at).where(*_within(caller, sight), *_wanted(wanted))
        for sight in set(sights.values())
    }
    alike: dict[tuple[bool, ...], list[tuple[int, Sight]]] = {}
    for number, sight in sights.items():
        alike.setdefault(sight.shape, []).append((number, sight))
    for group in alike.values():
        missing = (1 << (len(group) - 1).bit_length()) - len(group)
        group.extend([(NO_PROJECT, group[0][1])] * missing)
    found = [
        parts[sight].where(events.project_id == number) for _, group in sorted(alike.items()) for number, sight in group
    ]
    if db.engine.dialect.name == "sqlite":
        order = _order(column("created_at"), column("id"), wanted)
        return select(union_all(*found).order_by(*order).subquery().c.id)
    order = _order(events.created_at, events.id, wanted)
    return _ordered(union_all(*(select(part.order_by(*order).subquery()) for part in found)).subquery().c, wanted)


def _within(caller: Caller, sight: Sight) -> Iterable[ColumnElement[bool]]:
    """The conditions on the events of a project; none at all for most members."""
    some_kinds, some_restrictions, confidential_too = sight.shape
    if some_kinds:
        yield Event.kind.in_(sight.kinds)
    if not some_restrictions:
        return
    left: ColumnElement[bool] = Event.restriction.in_(sight.restrictions)
    if caller.user_id is not None and not confidential_too:
        mine = Event.issue_id.in_(own_issues(caller.user_id))
        left = or_(left, and_(Event.restriction == Restriction.CONFIDENTIAL, mine))
    yield left


def _wanted(wanted: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    if wanted.get("action"):
        yield Event.action == Action[wanted["action"].upper()]
    if wanted.get("target_type"):
        yield _targets(wanted["target_type"])
    yield from _days(wanted)


def _days(wanted: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    if wanted.get("before"):
        yield Event.created_at < _midnight(wanted["before"])
    if wanted.get("after"):
        yield Event.created_at > dt.datetime.combine(wanted["after"], dt.time.max, dt.UTC)


def _ordered(events: Any, wanted: dict[str, Any]) -> Select[int]:
    return select(events.id).order_by(*_order(events.created_at, events.id, wanted))


def _order(created_at: Any, number: Any, wanted: dict[str, Any]) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    if wanted.get("sort") == "asc":
        return created_at.asc(), number.asc()
    return created_at.desc(), number.desc()


def _targets(name: str) -> ColumnElement[bool]:
    if name != "project":
        return Event.target_type == TARGETS[name]
    untyped = and_(Event.target_type.is_(None), Event.action.in_(ABOUT_PROJECT))
    return or_(untyped, Event.target_type == "Project")


def _midnight(day: dt.date) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(), dt.UTC)
