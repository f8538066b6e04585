"""Feeds of events: authors."""

from __future__ import annotations

import datetime as dt
import random

import pytest

from project_service.domain.access_levels import Role
from project_service.domain.events.models import Action
from project_service.kit import clock
from tests.areas.activity.support import DAY, NEWS, ids, limit_scan, make_issue, of_project, of_user, own, write
from tests.support.sample_data import (
    ADA,
    DEV,
    GUS,
    RITA,
    SAM,
    add_member,
    make_group,
    make_project,
    share,
)


@pytest.mark.both_databases
def test_the_three_feeds_select_different_events(people, project, shop, as_):
    own_event = write(people[DEV], Action.JOINED, project)
    others_event = write(people[RITA], Action.JOINED, project)
    own_event_in_shop = write(people[DEV], Action.JOINED, shop)
    others_event_in_shop = write(people[RITA], Action.JOINED, shop)

    client = as_(DEV)

    assert ids(client.get(own())) == [own_event_in_shop, own_event]
    assert ids(client.get(of_user(people[RITA]))) == [others_event_in_shop, others_event]
    assert ids(client.get(of_project(project))) == [others_event, own_event]
    assert ids(client.get(own(scope="all"))) == [others_event, own_event]


@pytest.mark.parametrize("scope", ["", "own", "ALL", "al"])
def test_any_other_scope_than_all_is_ignored(scope, people, project, as_):
    write(people[RITA], Action.JOINED, project)
    own_event = write(people[DEV], Action.JOINED, project)

    assert ids(as_(DEV).get(own(scope=scope))) == [own_event]


@pytest.mark.both_databases
def test_the_scope_is_ignored_outside_of_the_callers_feed(people, project, shop, as_):
    write(people[DEV], Action.JOINED, project)
    event = write(people[SAM], Action.JOINED, shop)

    client = as_(DEV)

    assert ids(client.get(of_user(people[SAM], scope="all"))) == [event]
    assert ids(client.get(of_project(shop, scope="all"))) == [event]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "membership", ["direct", "group", "parent", "share of the project", "share of the group", "owner"]
)
def test_scope_all_includes_projects_of_every_kind_of_membership(membership, people, as_):
    parent = make_group("parent")
    group, invited = make_group("child", parent), make_group("invited")
    project = make_project("shop", people[SAM] if membership == "owner" else group)
    if membership.startswith("share"):
        share(project if membership == "share of the project" else group, invited, Role.GUEST)
    target = {"direct": project, "group": group, "parent": parent}.get(membership, invited)
    add_member(target, people[SAM], Role.REPORTER)
    event = write(people[DEV], Action.JOINED, project)

    assert ids(as_(SAM).get(own(scope="all"))) == [event]


@pytest.mark.both_databases
def test_scope_all_excludes_projects_without_membership(people, shop, as_):
    write(people[DEV], Action.JOINED, shop)

    assert [ids(as_(name).get(own(scope="all"))) for name in (SAM, ADA)] == [[], []]


@pytest.mark.both_databases
def test_scope_all_excludes_projects_of_expired_memberships(people, project, as_):
    add_member(project, people[SAM], Role.DEVELOPER, expires_at=clock.today())
    write(people[DEV], Action.JOINED, project)

    assert ids(as_(SAM).get(own(scope="all"))) == []


@pytest.mark.both_databases
@pytest.mark.parametrize(("scanned", "per_result"), [(0, 0), (3, 1), (10_000, 20)])
def test_scope_all_is_the_same_however_much_is_scanned(scanned, per_result, people, as_, monkeypatch):
    limit_scan(monkeypatch, scanned, per_result)
    group = make_group()
    add_member(group, people[SAM], Role.DEVELOPER)
    projects = [make_project(namespace=group) for _ in range(3)]
    events = [
        write(people[DEV], Action.JOINED, projects[number % 3], at=NEWS + DAY * (number % 4)) for number in range(9)
    ]
    ordered = sorted(events, key=lambda event: (events.index(event) % 4, event), reverse=True)

    client = as_(SAM)

    assert ids(client.get(own(scope="all"))) == ordered
    assert ids(client.get(own(scope="all", sort="asc", per_page=4, page=2))) == ordered[::-1][4:8]
    assert client.get(own(scope="all", per_page=4)).headers["X-Total"] == "9"
    assert ids(client.get(own(scope="all", per_page=5, page=2))) == ordered[5:]
    assert ids(client.get(own(scope="all", page=2))) == []


@pytest.mark.both_databases
@pytest.mark.parametrize("sort", ["asc", "desc"])
@pytest.mark.parametrize("bounds", [{}, {"after": "2021-03-02", "before": "2021-03-20"}])
@pytest.mark.parametrize("frequency", ["daily", "at times"])
def test_deep_pages_are_the_same_scanned_and_merged(frequency, bounds, sort, people, as_, monkeypatch):
    group = make_group()
    add_member(group, people[SAM], Role.DEVELOPER)
    projects = [make_project(namespace=group) for _ in range(3)]
    rng = random.Random(7)
    for number in range(60):
        day = dt.datetime(2021, 3, 1, tzinfo=dt.UTC)
        # equal times, times close together and times far apart
        irregular = DAY * rng.choice([0, 1, 2, 2, 2, 10, 18, 19, 4000])
        irregular += dt.timedelta(microseconds=rng.choice([0, 0, 1, 5_000_000]))
        at = day + (irregular if frequency == "at times" else DAY * number)
        write(people[DEV], Action.JOINED, rng.choice(projects), at=at)
    pages = [
        own(scope="all", sort=sort, per_page=size, page=page, **bounds) for size in (3, 20) for page in range(1, 23)
    ]
    client = as_(SAM)
    merged = [ids(client.get(page)) for page in pages]
    limit_scan(monkeypatch, 0, 2)

    assert [ids(client.get(f"{page}&x=1")) for page in pages] == merged


@pytest.mark.both_databases
@pytest.mark.parametrize("scanned", [0, 2])
def test_projects_read_one_by_one_use_the_same_filters_and_visibility(scanned, people, as_, monkeypatch):
    group, other = make_group(), make_group("other")
    add_member(group, people[SAM], Role.GUEST)
    add_member(other, people[SAM], Role.DEVELOPER)
    projects = [make_project(f"p{number}", namespace=namespace) for number in range(2) for namespace in (group, other)]
    foreign = make_project("strange", visibility="public")
    for number, project in enumerate([*projects, foreign] * 2):
        at = NEWS + DAY * number
        write(people[DEV], Action.PUSHED, project, data={"action": "pushed"}, at=at)
        write(people[DEV], Action.JOINED, project, at=at)
        write(
            people[DEV], Action.CREATED, project, make_issue(project, people[DEV], confidential=bool(number % 2)), at=at
        )
    client = as_(SAM)
    queries = [
        {},
        {"action": "pushed"},
        {"target_type": "issue", "sort": "asc"},
        {"after": (NEWS + DAY * 2).date(), "before": (NEWS + DAY * 6).date()},
        {"per_page": 3, "page": 2, "sort": "asc"},
    ]

    merged = [client.get(own(scope="all", **query)) for query in queries]
    limit_scan(monkeypatch, scanned)
    scanned_first = [client.get(own(scope="all", **query, x=scanned)) for query in queries]

    assert [ids(response) for response in scanned_first] == [ids(response) for response in merged]
    assert [response.headers["X-Total"] for response in scanned_first] == [
        response.headers["X-Total"] for response in merged
    ]
    assert all(ids(response) for response in merged)


@pytest.mark.both_databases
def test_a_user_is_found_by_id_and_by_name_in_any_case(people, shop, as_):
    event = write(people[DEV], Action.JOINED, shop)

    responses = [as_(SAM).get(f"/users/{user}/events") for user in (people[DEV].id, "dev", "DEV")]

    assert [ids(response) for response in responses] == [[event]] * 3


def test_a_project_is_found_by_id_and_by_path(people, project, as_):
    event = write(people[DEV], Action.JOINED, project)

    responses = [as_(GUS).get(f"/projects/{name}/events") for name in (project.id, "acme%2Fshop", "ACME%2FShop")]

    assert [ids(response) for response in responses] == [[event]] * 3
