"""Which events there are for whom: the rows a caller may see, and no others, so that pages are full.

What somebody sees of a project is judged once per project, in Python (``sights``), and becomes a condition on columns
that the index of the feed carries: a page is cut, and the total counted, inside the index. The statements give ids,
which the index has; ``targets.events_with_targets`` fetches what a page shows of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, false, literal, literal_column, or_, select, union_all

from project_service.access.abilities import role_of
from project_service.access.identity import Caller
from project_service.areas.activity.filters import Filter
from project_service.areas.activity.merged_feed import Merged, merged
from project_service.areas.activity.scattered import Part, Scattered
from project_service.areas.activity.visibility import (
    NOBODY,
    Shape,
    Sight,
    seen,
    sight_of,
    sights_of_memberships,
    sights_of_work,
    within,
)
from project_service.domain.events.models import Event
from project_service.domain.projects import Project
from project_service.domain.users import ACTIVE, User
from project_service.kit.db.base import Key
from project_service.kit.db.bulk import listed, one_of
from project_service.kit.db.reading import Given, Listed, made_once

# so many projects are merged from the index of each in one statement; more of them are ``Scattered``
MERGED = 200


def events_of_author(caller: Caller, author_id: int, **wanted: Any) -> Listed:
    """What somebody did, as far as the caller may see it."""
    wish, theirs = Filter.of(**wanted), Event.author_id == author_id
    alike = _alike(sights_of_work(caller, author_id))
    found = _found(wish, theirs, _seen_in(caller, alike))
    return Listed(found, None if wish.is_narrow else _open_to_all_alike(theirs, alike))


def events_of_user(caller: Caller, user: User, **wanted: Any) -> Listed:
    """The same for a profile: private ones, and those of blocked users, show nothing to others."""
    hidden = user.private_profile or user.state != ACTIVE
    if hidden and user.id != caller.user_id and not caller.admin:
        return Listed(_found(Filter.of(**wanted), false()))
    return events_of_author(caller, user.id, **wanted)


def events_of_memberships(caller: Caller, **wanted: Any) -> Select[int] | Merged | Scattered:
    """What anybody did in the projects the caller belongs to."""
    wish = Filter.of(**wanted)
    sights = sights_of_memberships(caller)
    if not sights:
        return _found(wish, false())
    if len(sights) <= MERGED:
        return merged(caller, sights, wish)
    alike = _alike(sights)
    parts = (Part(tuple(projects), (*seen(caller, sight), *wish.conditions())) for sight, projects in alike.items())
    return Scattered(tuple(parts), _found(wish, _seen_in(caller, alike)), wish)


def events_of_project(caller: Caller, project: Project, **wanted: Any) -> Given:
    """What happened in a project, as far as the caller may see it."""
    sight, wish = sight_of(caller, role_of(caller, project), project), Filter.of(**wanted)
    values = {"user": caller.user_id or NOBODY, "kinds": sight.kinds, "restrictions": sight.restrictions}
    return _of_project(sight.shape, wish.shape, project=project.id, **values, **wish.moments)


@made_once
def _of_project(shape: Shape, wish: Filter) -> Select[int]:
    """The events of a project that are seen under a sight of this shape."""
    names = ("kinds", "restrictions", "user")
    kinds, restrictions, user = (bindparam(name, type_=Key) for name in names)
    return _found(wish, Event.project_id == bindparam("project"), *within(shape, kinds, restrictions, user))


def _found(wish: Filter, *conditions: ColumnElement[bool]) -> Select[int]:
    return select(Event.id).where(*conditions, *wish.conditions()).order_by(*wish.order(Event))


def _seen_in(caller: Caller, alike: Mapping[Sight, list[int]]) -> ColumnElement[bool]:
    """The condition on events of several projects."""
    # as a sum it is no reason for a database to leave the order of the feed's index for that of another
    project = Event.project_id + literal_column("0")
    # most rows are found under the first of these
    most_first = sorted(alike.items(), key=lambda one: -len(one[1]))
    here = (and_(project.in_(select(listed(ids).c.value)), *seen(caller, sight)) for sight, ids in most_first)
    return or_(false(), *here)


def _open_to_all_alike(theirs: ColumnElement[bool], alike: Mapping[Sight, list[int]]) -> Select[int] | None:
    """Those of somebody's events whose restriction alone says that they are seen: an index of its own finds them."""
    parts = [
        select(literal(1).label("one")).where(
            theirs, one_of(Event.project_id, ids), one_of(Event.restriction, sight.each_restriction)
        )
        for sight, ids in alike.items()
        if not sight.shape.some_kinds
    ]
    return select(union_all(*parts).subquery().c.one) if parts else None


def _alike(sights: Mapping[int, Sight]) -> dict[Sight, list[int]]:
    """The projects of each sight."""
    alike: dict[Sight, list[int]] = {}
    for project_id, sight in sights.items():
        alike.setdefault(sight, []).append(project_id)
    return alike
