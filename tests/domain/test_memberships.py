"""Who belongs where: the rule in SQL against the same rule in plain Python (common reference, section 7)."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from project_service.access.identity import ANONYMOUS, Caller
from project_service.access.rules import sees, visible_groups, visible_projects
from project_service.areas.members.queries import all_members_of, inherited_role
from project_service.domain.access_levels import MEMBER_ROLES, Role, Visibility
from project_service.domain.accounts.users import User
from project_service.domain.memberships import (
    Membership,
    Share,
    authorized_namespaces,
    authorized_projects,
    choice_in,
    find_project_and_role,
    levels_by_project,
    members_for_choice,
    role_in,
    roles_in_groups,
    user_ids_with,
)
from project_service.domain.namespaces import Group, Namespace, groups
from project_service.domain.paths import path_registry
from project_service.domain.projects import Project, projects
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import make_user

pytestmark = pytest.mark.both_databases

TODAY = clock.today()
DAYS = st.sampled_from([None, None, TODAY + dt.timedelta(days=1), TODAY, TODAY - dt.timedelta(days=1)])
LEVELS = st.sampled_from(MEMBER_ROLES)
VISIBILITIES = st.sampled_from(Visibility)
MOST_GROUPS, MOST_PROJECTS, USERS = 6, 4, 3


@dataclass
class World:
    """A drawing: groups point up to their parents, projects to a group or, below zero, to a user.

    A place is ``("group", number)`` or ``("project", number)``.
    """

    parents: list[int | None]
    homes: list[int]
    external: bool
    group_visibility: list[Visibility]
    project_visibility: list[Visibility]
    memberships: dict[tuple[int, tuple[str, int]], tuple[Role, dt.date | None]] = field(default_factory=dict)
    shares: dict[tuple[int, tuple[str, int]], tuple[Role, dt.date | None]] = field(default_factory=dict)


@st.composite
def worlds(draw):
    parents = [
        draw(st.none() | st.integers(0, number - 1)) if number else None
        for number in range(draw(st.integers(1, MOST_GROUPS)))
    ]
    homes = draw(st.lists(st.integers(-USERS, len(parents) - 1), max_size=MOST_PROJECTS))
    spots = [("group", number) for number in range(len(parents))] + [
        ("project", number) for number in range(len(homes))
    ]
    grants = st.tuples(LEVELS, DAYS)
    users = st.tuples(st.integers(0, USERS - 1), st.sampled_from(spots))
    invitations = st.tuples(st.integers(0, len(parents) - 1), st.sampled_from(spots))
    return World(
        parents,
        homes,
        draw(st.booleans()),
        draw(st.lists(VISIBILITIES, min_size=len(parents), max_size=len(parents))),
        draw(st.lists(VISIBILITIES, min_size=len(homes), max_size=len(homes))),
        draw(st.dictionaries(users, grants, max_size=8)),
        draw(st.dictionaries(invitations, grants, max_size=5)),
    )


# The rule, as slowly and plainly as it can be said.


def counts(day):
    return day is None or day > TODAY


def chain(world, group):
    """A group and all above it."""
    while group is not None:
        yield group
        group = world.parents[group]


def places_of(world, place):
    """The places whose memberships and shares count in a place: itself, and the groups above."""
    kind, number = place
    if kind == "project":
        yield place
        number = world.homes[number]
        if number < 0:
            return
    for group in chain(world, number):
        yield "group", group


def own(world, user, place):
    """The level of a membership that counts, or none."""
    level, day = world.memberships.get((user, place), (Role.NONE, None))
    return level if counts(day) else Role.NONE


def granted(world, user, place):
    """The highest level of memberships and shares."""
    best = Role.NONE
    for here in places_of(world, place):
        best = max(best, own(world, user, here))
        for (group, shared), (cap, day) in world.shares.items():
            if shared == here and counts(day):
                best = max(best, *(min(cap, own(world, user, ("group", above))) for above in chain(world, group)))
    return best


def role(world, user, place):
    """The effective role: the owner of a personal namespace owns what is in it."""
    kind, number = place
    if kind == "project" and world.homes[number] == -1 - user:
        return Role.OWNER
    return granted(world, user, place)


def inherited(world, user, place):
    """The highest level of memberships above a place."""
    return max([own(world, user, here) for here in places_of(world, place) if here != place], default=Role.NONE)


def seen(world, user, place):
    """Whether a place is visible; a group also to members of a place below."""
    kind, number = place
    visibility = (world.group_visibility if kind == "group" else world.project_visibility)[number]
    if visibility == Visibility.PUBLIC or (visibility == Visibility.INTERNAL and not (world.external and user == 0)):
        return True
    below = [other for other in spots_of(world) if place in places_of(world, other)]
    return any(role(world, user, other) > Role.NONE for other in below)


def spots_of(world):
    yield from (("group", number) for number in range(len(world.parents)))
    yield from (("project", number) for number in range(len(world.homes)))


@dataclass
class Stored:
    """The drawing in the database."""

    users: list[User]
    at: dict[tuple[str, int], Group | Project]


def store(world, people):
    people[0].external = world.external
    at = {}
    for number, parent in enumerate(world.parents):
        group = Group(path=f"g{number}", name=f"g{number}", visibility=world.group_visibility[number])
        path_registry.store_namespace(group, None if parent is None else at["group", parent], AssertionError("taken"))
        at["group", number] = group
    for number, home in enumerate(world.homes):
        place = at["group", home] if home >= 0 else db.session.get_one(Namespace, people[-1 - home].namespace_id)
        project = Project(path=f"p{number}", name=f"p{number}", namespace=place, namespace_id=place.id, attributes={})
        project.visibility = world.project_visibility[number]
        path_registry.store_project(project, AssertionError("taken"))
        at["project", number] = project
    for (user, place), (level, day) in world.memberships.items():
        member = Membership(user_id=people[user].id, access_level=level, expires_at=day)
        db.session.add(put(member, at[place]))
    for (group, place), (level, day) in world.shares.items():
        db.session.add(put(Share(group_id=at["group", group].id, access_level=level, expires_at=day), at[place]))
    db.session.flush()
    return Stored(people, at)


def put(row, place):
    setattr(row, "project_id" if isinstance(place, Project) else "namespace_id", place.id)
    return row


@pytest.fixture
def stored(app):
    """Stores a drawing, and takes the one before away."""
    ids = [make_user(f"user{number}").id for number in range(USERS)]

    def storing(world):
        db.session.rollback()
        return store(world, [db.session.get_one(User, user_id) for user_id in ids])

    yield storing
    db.session.rollback()


on_many_worlds = settings(
    max_examples=25,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@on_many_worlds
@given(world=worlds())
def test_a_role_is_the_highest_of_all_memberships(stored, world):
    made = stored(world)

    found = {
        (user, spot): role_in(made.users[user].id, place) for user in range(USERS) for spot, place in made.at.items()
    }

    assert found == {(user, spot): role(world, user, spot) for user in range(USERS) for spot in made.at}


@on_many_worlds
@given(world=worlds())
def test_a_role_loaded_with_its_project_is_the_same(stored, world):
    made = stored(world)
    ways = {spot: (place.id, place.full_path.upper()) for spot, place in made.at.items() if isinstance(place, Project)}

    found = {
        (user, spot, way): find_project_and_role(made.users[user].id, way)
        for user in range(USERS)
        for spot in ways
        for way in ways[spot]
    }

    assert {key: (project.id, project.namespace.id, level) for key, (project, level) in found.items()} == {
        (user, spot, way): (made.at[spot].id, made.at[spot].namespace_id, role(world, user, spot))
        for user, spot, way in found
    }


@on_many_worlds
@given(world=worlds())
def test_an_inherited_role_is_the_highest_of_the_ancestors(stored, world):
    made = stored(world)

    for user in range(USERS):
        for spot, place in made.at.items():
            level, group = inherited_role(made.users[user].id, place)
            assert level == inherited(world, user, spot)
            assert (group is None) == (level == Role.NONE)
            assert group is None or own(world, user, next(at for at, row in made.at.items() if row is group)) == level


@on_many_worlds
@given(world=worlds(), least=LEVELS)
def test_lists_contain_projects_and_groups_with_a_role(stored, world, least):
    made = stored(world)

    for user in range(USERS):
        ids = {
            "group": set(db.session.scalars(authorized_namespaces(made.users[user].id, least))),
            "project": set(db.session.scalars(authorized_projects(made.users[user].id, least))),
        }
        for spot, place in made.at.items():
            assert (place.id in ids[spot[0]]) == (role(world, user, spot) >= least)


@on_many_worlds
@given(world=worlds())
def test_all_members_are_listed_with_their_role(stored, world):
    made = stored(world)

    for spot, place in made.at.items():
        found = [(member.user_id, member.level) for member in db.session.scalars(all_members_of(place))]
        wanted = [(made.users[user].id, granted(world, user, spot)) for user in range(USERS)]
        assert found == [(user_id, level) for user_id, level in wanted if level > Role.NONE]


@on_many_worlds
@given(world=worlds(), least=LEVELS)
def test_mails_and_choices_reach_exactly_those_with_the_role(stored, world, least):
    made = stored(world)

    for spot, place in made.at.items():
        wanted = {made.users[user].id for user in range(USERS) if role(world, user, spot) >= least}
        assert set(db.session.scalars(user_ids_with(least, place))) == wanted
        if isinstance(place, Project):
            assert set(db.session.scalars(members_for_choice(), choice_in(place, least))) == wanted


@on_many_worlds
@given(world=worlds())
def test_roles_loaded_for_many_places_are_those_of_single_checks(stored, world):
    made = stored(world)
    groups_by_id = {place.id: spot for spot, place in made.at.items() if spot[0] == "group"}

    for user in range(USERS):
        user_id = made.users[user].id
        in_groups = roles_in_groups(user_id, list(groups_by_id))
        assert in_groups == {number: role(world, user, spot) for number, spot in groups_by_id.items()}
        levels = dict(db.session.execute(select(levels_by_project(user_id, TODAY))).all())
        for spot, place in made.at.items():
            assert spot[0] == "group" or levels.get(place.id, Role.NONE) == role(world, user, spot)


@on_many_worlds
@given(world=worlds())
def test_lists_contain_exactly_the_visible_rows(stored, world):
    made = stored(world)

    for user in range(USERS):
        caller = Caller.of(made.users[user])
        listed = {
            "group": {group.id for group in db.session.scalars(groups().where(visible_groups(caller)))},
            "project": {project.id for project in db.session.scalars(projects().where(visible_projects(caller)))},
        }
        for spot, place in made.at.items():
            assert (sees(caller, place), place.id in listed[spot[0]]) == (seen(world, user, spot),) * 2
    public = {project.id for project in db.session.scalars(projects().where(visible_projects(ANONYMOUS)))}
    assert public == {place.id for place in made.at.values() if isinstance(place, Project) and place.visibility == 20}


def test_shares_are_not_transitive(stored):
    far = ("group", 2)
    world = World([None, None, None], [], False, [Visibility.PRIVATE] * 3, [])
    world.memberships[0, far] = (Role.OWNER, None)
    world.shares = {(2, ("group", 1)): (Role.OWNER, None), (1, ("group", 0)): (Role.OWNER, None)}
    made = stored(world)

    roles = [role_in(made.users[0].id, made.at["group", number]) for number in range(3)]

    assert roles == [Role.NONE, Role.OWNER, Role.OWNER]
    assert db.session.scalars(select(Share.id)).all() != []
