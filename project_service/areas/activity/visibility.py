"""What somebody sees of a project's events: judged once per project, a condition on columns of the event from then on.

The rules are those of the events reference, section 5.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    CTE,
    ColumnElement,
    Date,
    Integer,
    Select,
    and_,
    bindparam,
    cast,
    func,
    literal,
    literal_column,
    or_,
    select,
)

from project_service.access.abilities import opened_to, own_issues
from project_service.access.identity import Caller
from project_service.domain.access_levels import Role
from project_service.domain.events.models import Event, Kind, Restriction
from project_service.domain.memberships import levels_by_project
from project_service.domain.projects import ENABLED, PRIVATE, Project
from project_service.kit import clock
from project_service.kit.db.base import Key
from project_service.kit.db.session import db
from project_service.kit.db.statements import prepared

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
NOBODY = 0  # the id of no user


class Shape(NamedTuple):
    """Which conditions it takes to say what is seen, whatever their values."""

    some_kinds: bool
    some_restrictions: bool
    confidential_too: bool


@dataclass(frozen=True, slots=True)
class Sight:
    """What somebody sees of a project: events of some kinds, as far as they are under one of some restrictions.

    Both are sets of small numbers, and held as the bits of one number: that is one value of a statement.
    """

    kinds: int
    restrictions: int

    @classmethod
    def of(cls, kinds: Iterable[Kind], restrictions: Iterable[Restriction]) -> Sight:
        """The sight of these."""
        return cls(_bits(kinds), _bits(restrictions))

    @property
    def each_restriction(self) -> list[int]:
        """The restrictions one by one."""
        return [restriction for restriction in Restriction if self.restrictions >> restriction & 1]

    @property
    def shape(self) -> Shape:
        """Which conditions it takes to say so."""
        confidential_too = bool(self.restrictions >> Restriction.CONFIDENTIAL & 1)
        return Shape(self.kinds != ALL_KINDS, self.restrictions != ALL_RESTRICTIONS, confidential_too)


def sight_of(caller: Caller, role: int, project: Any) -> Sight:
    """What somebody with this role sees of a project."""
    opened = opened_to(caller, project.visibility)
    loaded = {} if project.loading else FEATURES  # what an archive brings appears when all of it is there
    kinds = [kind for kind, features in loaded.items() if _any_open(project, features, role, opened=opened)]
    if opened or role > Role.NONE:
        kinds.append(Kind.PROJECT)
    trusted = caller.user_id is not None and not caller.external
    return Sight.of(
        kinds,
        (
            restriction
            for restriction, least in LEFT_TO.items()
            if role >= least or (restriction is Restriction.SIGNED_IN and trusted)
        ),
    )


def sights_of_memberships(caller: Caller) -> dict[int, Sight]:
    """What the caller sees of the projects the caller belongs to; those without anything to see are left out."""
    return _sights(caller, _joined(user=caller.user_id or NOBODY, today=clock.today()))


def sights_of_work(caller: Caller, author_id: int) -> dict[int, Sight]:
    """The same of the projects that somebody has events in."""
    return _sights(caller, _worked(author=author_id, user=caller.user_id or NOBODY, today=clock.today()))


def within(shape: Shape, kinds: Any, restrictions: Any, user: Any) -> Iterable[ColumnElement[bool]]:
    """The conditions on the events of a project under a sight of this shape; none at all for most members."""
    if shape.some_kinds:
        yield _is_in(Event.kind, kinds)
    if not shape.some_restrictions:
        return
    left = _is_in(Event.restriction, restrictions)
    if not shape.confidential_too:
        mine = Event.issue_id.in_(own_issues(user))
        left = or_(left, and_(Event.restriction == literal_column(str(int(Restriction.CONFIDENTIAL))), mine))
    yield left


def seen(caller: Caller, sight: Sight) -> Iterable[ColumnElement[bool]]:
    """The same for a sight and a caller."""
    user = literal(caller.user_id or NOBODY, Key)
    return within(sight.shape, literal(sight.kinds, Key), literal(sight.restrictions, Key), user)


def _is_in(column: Any, bits: Any) -> ColumnElement[bool]:
    # PostgreSQL shifts by no larger numbers; SQLite has one kind of them, and would take time to see so
    places = column if db.engine.dialect.name == "sqlite" else cast(column, Integer)
    found: ColumnElement[bool] = bits.bitwise_rshift(places).bitwise_and(ONE) == ONE
    return found


def _bits(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in set(numbers))


def _any_open(project: Any, features: tuple[tuple[str, Role], ...], role: int, *, opened: bool) -> bool:
    levels = [(getattr(project, f"{feature}_access_level"), least) for feature, least in features]
    return any(
        (level == ENABLED and (opened or role >= least)) or (level == PRIVATE and role >= least)
        for level, least in levels
    )


def _sights(caller: Caller, found: Iterable[Any]) -> dict[int, Sight]:
    sights = {row.id: sight_of(caller, Role.OWNER if caller.admin else row.role, row) for row in found}
    return {project_id: sight for project_id, sight in sights.items() if sight.kinds}


@prepared
def _joined() -> Any:
    levels, statement = _judged()
    return statement.join(levels, levels.c.project_id == Project.id).where(levels.c.access_level >= int(Role.GUEST))


@prepared
def _worked() -> Any:
    levels, statement = _judged()
    worked = _worked_in(bindparam("author"))
    statement = statement.join(worked, worked.c.project_id == Project.id)
    return statement.outerjoin(levels, levels.c.project_id == Project.id)


def _judged() -> tuple[CTE, Select[Any]]:
    """The roles of a user, and projects with what is judged by."""
    levels = levels_by_project(bindparam("user"), bindparam("today", type_=Date))
    role = func.coalesce(levels.c.access_level, int(Role.NONE)).label("role")
    columns = (getattr(Project, name) for name in LEVELS)
    statement = select(Project.id, role, Project.visibility, Project.loading, *columns)
    return levels, statement.where(Project.deleting_since.is_(None)).order_by(Project.id)


def _worked_in(author_id: Any) -> CTE:
    """The projects somebody has events in: one step in the index for each, however many events those are."""
    author = Event.author_id == author_id
    worked = select(func.min(Event.project_id).label("project_id")).where(author).cte("worked", recursive=True)
    following = select(func.min(Event.project_id)).where(author, Event.project_id > worked.c.project_id)
    return worked.union_all(
        select(following.correlate(worked).scalar_subquery()).where(worked.c.project_id.is_not(None))
    )


ALL_KINDS, ALL_RESTRICTIONS = _bits(Kind), _bits(Restriction)
ONE: ColumnElement[int] = literal_column("1")
