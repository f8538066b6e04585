"""The three feeds of activity events through HTTP (events reference)."""

from __future__ import annotations

import contextvars
import datetime as dt
import random
from dataclasses import dataclass, field
from urllib.parse import quote

import pygit2
import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select, update

from project_service.areas.activity import merged_feed
from project_service.areas.alerts.alerts import incidents
from project_service.areas.alerts.models import Alert
from project_service.domain.access_levels import Role, Visibility
from project_service.domain.events.models import Action, Event, Restriction
from project_service.domain.events.recording import change_confidentiality, record
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.designs import Design
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import Note
from project_service.domain.tracker.snippets import Snippet
from project_service.domain.tracker.wiki_pages import WikiPage
from project_service.domain.users import BLOCKED, DEACTIVATED
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.http import pagination
from tests import conftest
from tests.support.git_repositories import keep_repository
from tests.support.sample_data import (
    ADA,
    DEV,
    GUS,
    MAX,
    NOBODY,
    OLIVE,
    RITA,
    ROLES,
    SAM,
    add_member,
    make_group,
    make_project,
    make_user,
    reload,
    share,
)

COMMIT = "c" * 40
PUSH = {
    "commit_count": 2,
    "action": "pushed",
    "ref_type": "branch",
    "commit_from": "1" * 40,
    "commit_to": "2" * 40,
    "ref": "main",
    "commit_title": "Fix totals",
    "ref_count": None,
}
NEWS = dt.datetime(2026, 3, 14, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
FEEDS = ["/events", "/users/{user}/events", "/projects/{project}/events"]


@pytest.fixture(autouse=True)
def _own_contexts(monkeypatch):
    # a request in the context of the test would see the ``g`` of the previous one
    send = FlaskClient.open
    monkeypatch.setattr(FlaskClient, "open", lambda *args, **options: contextvars.Context().run(send, *args, **options))


def of_project(project, **query):
    return address(f"/projects/{project.id}/events", query)


def of_user(user, **query):
    return address(f"/users/{user.id}/events", query)


def own(**query):
    return address("/events", query)


def in_project(project):
    return lambda **query: of_project(project, **query)


def address(path, query):
    return path + ("?" + "&".join(f"{name}={value}" for name, value in query.items()) if query else "")


def ids(response):
    assert response.status_code == 200, response.json
    return [event["id"] for event in response.json]


def store(*rows):
    db.session.add_all(rows)
    db.session.commit()
    return rows[0]


def change(row, **fields):
    """Change a row in the database and refresh the test's object."""
    loaded = db.session.get(type(row), row.id)
    for changed in {id(loaded): loaded, id(row): row}.values():
        for name, value in fields.items():
            setattr(changed, name, value)
    db.session.commit()


def write(author, action, project, target=None, data=None, at=None):
    """Record an event as the services do; return its id."""
    with unit_of_work():
        event = record(author, action, project, target, data)
        if at is not None:
            event.created_at = at
        db.session.flush()
    return event.id


def make_issue(project, author, **fields):
    number = len(db.session.scalars(select(Issue.id)).all()) + 1
    fields = {"iid": number, "title": f"Issue {number}"} | fields
    return store(Issue(project_id=project.id, author_id=author.id, **fields))


def make_note(project, author, target, **fields):
    kind = "DesignManagement::Design" if isinstance(target, Design) else type(target).__name__
    fields = {"noteable_type": kind, "noteable_id": target and target.id, "body": "a word"} | fields
    return store(Note(project_id=project.id, author_id=author.id, **fields))


def every_kind(project, author):
    """One event of every kind with a different text, by name; their targets were created by another user."""
    other = make_user()
    fields = {"project_id": project.id, "author_id": other.id}
    plain, secret = make_issue(project, other), make_issue(project, other, confidential=True)
    merge_request = store(MergeRequest(iid=1, title="Better totals", **fields))
    milestone = store(Milestone(project_id=project.id, iid=1, title="1.0"))
    wiki = store(WikiPage(project_id=project.id, title="Home", slug="home"))
    designs = [store(Design(project_id=project.id, issue_id=issue.id, filename="a.png")) for issue in (plain, secret)]
    snippets = {
        level.text: store(Snippet(title=f"{level.text} snippet", visibility=level, **fields)) for level in Visibility
    }
    comments = {
        "note": make_note(project, author, plain),
        "internal note": make_note(project, author, plain, confidential=True),
        "secret note": make_note(project, author, secret),
        "internal secret note": make_note(project, author, secret, confidential=True),
        "diff note": make_note(project, author, merge_request, type="DiffNote"),
        "commit note": make_note(project, author, None, noteable_type="Commit", commit_id=COMMIT),
        "design note": make_note(project, author, designs[0]),
        "secret design note": make_note(project, author, designs[1]),
        "wiki note": make_note(project, author, None, noteable_type="WikiPage::Meta", noteable_id=wiki.id),
        "alert note": make_note(project, author, None, noteable_type="AlertManagement::Alert", noteable_id=1),
        **{f"{name} snippet note": make_note(project, author, snippet) for name, snippet in snippets.items()},
    }
    created = {
        "project": None,
        "issue": plain,
        "secret issue": secret,
        "merge request": merge_request,
        "milestone": milestone,
        "wiki": wiki,
        "design": designs[0],
        "secret design": designs[1],
        **{f"{name} snippet": snippet for name, snippet in snippets.items()},
    }
    written = {name: write(author, Action.CREATED, project, target) for name, target in created.items()}
    written |= {name: write(author, Action.COMMENTED, project, note) for name, note in comments.items()}
    written |= {name: write(author, Action[name.upper()], project) for name in ("joined", "left", "expired")}
    return written | {"push": write(author, Action.PUSHED, project, data=PUSH)}


def named(events, response):
    names = {number: name for name, number in events.items()}
    return {names[number] for number in ids(response)}


# Authors


@pytest.fixture
def shop(people):
    """The public project ``open/shop`` without members."""
    return make_project("shop", make_group("open", visibility="public"), visibility="public")


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


def limit_scan(monkeypatch, events, per_result=0):
    """Set how many events of all projects are scanned before projects are read one by one."""
    monkeypatch.setattr(merged_feed, "MIN_SCANNED_EVENTS", events)
    monkeypatch.setattr(merged_feed, "MAX_SCANNED_PER_RESULT", per_result)


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


# Authentication


@pytest.mark.parametrize("feed", FEEDS)
def test_anonymous_callers_are_refused(feed, people, shop, as_):
    response = as_(NOBODY).get(feed.format(user=people[DEV].id, project=shop.id))

    assert (response.status_code, response.json) == (401, {"message": "401 Unauthorized"})


@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("scope", ["api", "read_api"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_scopes_that_read_everything_read_the_feeds(method, scope, feed, people, project, client_of):
    client = client_of(people[DEV], scope)

    assert client.open(method, feed.format(user=people[DEV].id, project=project.id)).status_code == 200


@pytest.mark.both_databases
@pytest.mark.parametrize("feed", FEEDS[:2])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_read_user_reads_the_feeds_of_users(method, feed, people, client_of):
    assert client_of(people[DEV], "read_user").open(method, feed.format(user=people[DEV].id)).status_code == 200


@pytest.mark.parametrize(
    ("feed", "scope", "sufficient"),
    [
        (FEEDS[0], "read_repository", "read_user api read_api"),
        (FEEDS[1], "read_repository", "read_user api read_api"),
        (FEEDS[2], "read_repository", "api read_api"),
        (FEEDS[2], "read_user", "api read_api"),
    ],
)
def test_other_scopes_are_refused_with_the_sufficient_ones(feed, scope, sufficient, people, project, client_of):
    response = client_of(people[DEV], scope).get(feed.format(user=people[DEV].id, project=project.id))

    assert response.status_code == 403
    assert response.json == {
        "error": "insufficient_scope",
        "error_description": "The request requires higher privileges than provided by the access token.",
        "scope": sufficient,
    }


@pytest.mark.parametrize("user", ["9999", "nemo", "99999999999999999999"])
def test_an_unknown_user_is_not_found(user, as_stranger):
    response = as_stranger.get(f"/users/{user}/events")

    assert (response.status_code, response.json) == (404, {"message": "404 User Not Found"})


def test_unknown_and_hidden_projects_are_not_found(project, as_stranger):
    responses = [as_stranger.get(f"/projects/{name}/events") for name in (project.id, "acme%2Fshop", 9999, "acme%2Fno")]

    assert [(response.status_code, response.json) for response in responses] == [
        (404, {"message": "404 Project Not Found"})
    ] * 4


@pytest.mark.parametrize("fields", [{"private_profile": True}, {"state": BLOCKED}, {"state": DEACTIVATED}])
def test_private_and_blocked_profiles_show_an_empty_list(fields, shop, people, as_):
    hidden = make_user("hidden", **fields)
    write(hidden, Action.JOINED, shop)

    response = as_(SAM).get(of_user(hidden))

    assert (response.status_code, response.json) == (200, [])
    assert (response.headers["X-Total"], response.headers["X-Total-Pages"], response.headers["X-Page"]) == (
        "0",
        "1",
        "1",
    )


def test_a_private_profile_is_open_to_its_owner_and_to_administrators(shop, people, client_of, as_):
    hidden = make_user("hidden", private_profile=True)
    event = write(hidden, Action.JOINED, shop)

    clients = (client_of(hidden), as_(ADA))

    assert [ids(client.get(of_user(hidden))) for client in clients] == [[event]] * 2


def test_head_answers_as_get_without_a_body(people, project, as_):
    write(people[DEV], Action.JOINED, project)

    response = as_(DEV).head(of_project(project))

    assert (response.status_code, response.data, response.headers["X-Total"]) == (200, b"", "1")


# Parameters

EVERYTHING_WRONG = (
    "page is invalid, per_page is invalid, action does not have a valid value, "
    "target_type does not have a valid value, before is invalid, after is invalid, sort does not have a valid value"
)


REFUSALS = [
    ("action=archived", "action does not have a valid value"),
    ("action=Created", "action does not have a valid value"),
    ("action=pushed%20to", "action does not have a valid value"),
    ("target_type=epic", "target_type does not have a valid value"),
    ("target_type=Issue", "target_type does not have a valid value"),
    ("target_type=DiffNote", "target_type does not have a valid value"),
    ("before=soon", "before is invalid"),
    ("before=2017-02-30", "before is invalid"),
    ("after=2017-13-01", "after is invalid"),
    ("after[]=2017-01-01", "after is invalid"),
    ("sort=up", "sort does not have a valid value"),
    ("sort=DESC", "sort does not have a valid value"),
    ("page=a", "page is invalid"),
    ("per_page=a", "per_page is invalid"),
    ("per_page=0", "per_page has a value not allowed"),
    ("target_type=foo&before=bar", "target_type does not have a valid value, before is invalid"),
    (
        "sort=a&after=b&before=c&target_type=d&action=e&per_page=f&page=g",
        EVERYTHING_WRONG,
    ),
]


def test_invalid_parameters_are_named_in_the_order_of_their_declaration(people, project, as_):
    client = as_(DEV)

    for feed in FEEDS:
        path = feed.format(user=people[DEV].id, project=project.id)
        responses = [(query, client.get(f"{path}?{query}")) for query, _ in REFUSALS]
        assert [(query, response.json) for query, response in responses] == [
            (query, {"error": text}) for query, text in REFUSALS
        ]
        assert {response.status_code for _, response in responses} == {400}


@pytest.mark.parametrize("query", ["before=", "after=", "sort=desc", "page=", "per_page=", "page=0", "page=-1", "x=y"])
def test_blank_and_unknown_parameters_are_ignored(query, people, project, as_):
    event = write(people[DEV], Action.JOINED, project)

    assert ids(as_(DEV).get(own() + f"?{query}")) == [event]


ACTIONS = [action.name.lower() for action in Action]


@pytest.mark.both_databases
def test_events_are_filtered_by_action(people, project, as_):
    written = {name: write(people[DEV], Action[name.upper()], project) for name in ACTIONS}
    client = as_(DEV)

    results = {name: [ids(client.get(path(action=name))) for path in (own, in_project(project))] for name in ACTIONS}

    assert results == {name: [[event]] * 2 for name, event in written.items()}


COMMENT_TARGETS = {
    "issue": {"issue", "secret issue"},
    "milestone": {"milestone"},
    "merge_request": {"merge request"},
    "snippet": {"private snippet", "internal snippet", "public snippet"},
    "user": set(),
    "wiki": {"wiki"},
    "design": {"design", "secret design"},
    "project": {"project", "joined", "left", "expired", "push"},
    "note": {"note", "internal note", "secret note", "internal secret note", "commit note", "design note"}
    | {"secret design note", "wiki note", "alert note"}
    | {"private snippet note", "internal snippet note", "public snippet note"},
}


@pytest.mark.both_databases
def test_events_are_filtered_by_target_type(people, project, as_):
    events = every_kind(project, people[DEV])
    client = as_(MAX)

    for feed in (in_project(project), lambda **query: of_user(people[DEV], **query), own):
        responses = {name: client.get(feed(target_type=name, per_page=100, scope="all")) for name in COMMENT_TARGETS}
        assert {name: named(events, response) for name, response in responses.items()} == COMMENT_TARGETS


def test_target_type_project_selects_events_stored_with_that_type(people, project, as_):
    typed = write(people[DEV], Action.UPDATED, project)
    closed = write(people[DEV], Action.CLOSED, project)
    store(db.session.get(Event, typed)).target_type = "Project"
    db.session.commit()

    found_ids = ids(as_(DEV).get(of_project(project, target_type="project")))

    assert found_ids == [typed]
    assert closed not in found_ids


MIDNIGHT = dt.datetime(2026, 3, 14, tzinfo=dt.UTC)
INSTANT = dt.timedelta(microseconds=1)


DAYS = [
    ("before=2026-03-14", ["eve"]),
    ("before=2026-03-15", ["last", "first", "eve"]),
    ("after=2026-03-14", ["morrow"]),
    ("after=2026-03-13", ["morrow", "last", "first"]),
    ("after=2026-03-13&before=2026-03-15", ["last", "first"]),
    ("after=2026-03-13&before=2026-03-14", []),
    ("before=2026-3-14", ["eve"]),
    ("before=2026-03-14T23:00:00Z", ["eve"]),
    ("before=14%20March%202026", ["eve"]),
    ("before=9999-12-31", ["morrow", "last", "first", "eve"]),
    ("after=9999-12-31", []),
    ("before=0001-01-01", []),
    ("after=0001-01-01", ["morrow", "last", "first", "eve"]),
]


@pytest.mark.both_databases
def test_before_and_after_exclude_the_named_day(people, project, as_):
    moments = {"eve": MIDNIGHT - INSTANT, "first": MIDNIGHT, "last": MIDNIGHT + DAY - INSTANT, "morrow": MIDNIGHT + DAY}
    events = {write(people[DEV], Action.JOINED, project, at=moment): name for name, moment in moments.items()}
    client = as_(DEV)

    for feed in ("/events?", "/events?scope=all&", f"/projects/{project.id}/events?"):
        results = [(query, ids(client.get(feed + query))) for query, _ in DAYS]
        assert [(query, [events[number] for number in listed]) for query, listed in results] == DAYS


@pytest.mark.both_databases
def test_filters_are_combined(people, project, as_):
    issue, author = make_issue(project, people[DEV]), people[DEV]
    expected = write(author, Action.CLOSED, project, issue, at=NEWS)
    for action, target, at in (
        (Action.CLOSED, issue, NEWS + DAY),
        (Action.CLOSED, issue, NEWS - DAY),
        (Action.CREATED, issue, NEWS),
        (Action.CLOSED, None, NEWS),
    ):
        write(author, action, project, target, at=at)
    write(people[RITA], Action.CLOSED, project, issue, at=NEWS)

    response = as_(DEV).get(own(action="closed", target_type="issue", after="2026-03-13", before="2026-03-15"))

    assert ids(response) == [expected]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "path", ["/events?", "/events?scope=all&", "/users/dev/events?", "/projects/acme%2Fshop/events?"]
)
def test_events_are_ordered_by_time_and_then_by_id(path, people, project, as_):
    moments = [NEWS, NEWS + DAY, NEWS, NEWS - DAY]
    events = [write(people[DEV], Action.JOINED, project, at=moment) for moment in moments]
    order = [events[1], events[2], events[0], events[3]]

    client = as_(DEV)

    assert ids(client.get(path)) == order
    assert ids(client.get(f"{path}sort=desc")) == order
    assert ids(client.get(f"{path}sort=asc")) == order[::-1]


# Pages


@pytest.mark.both_databases
@pytest.mark.parametrize("path", ["/events?scope=all", "/users/dev/events?", "/projects/acme%2Fshop/events?"])
def test_hidden_events_do_not_change_page_sizes_or_totals(path, people, project, as_):
    issues = [make_issue(project, people[DEV], confidential=number % 2 == 1) for number in range(9)]
    events = [write(people[DEV], Action.CREATED, project, issue) for issue in issues]
    visible = events[::2][::-1]

    responses = [as_(GUS).get(f"{path}&per_page=2&page={page}") for page in (1, 2, 3, 4)]

    assert [ids(response) for response in responses] == [visible[:2], visible[2:4], visible[4:], []]
    assert {(response.headers["X-Total"], response.headers["X-Total-Pages"]) for response in responses} == {("5", "3")}


def test_pagination_headers_are_set(people, project, as_):
    for _ in range(5):
        write(people[DEV], Action.JOINED, project)

    response = as_(DEV).get(of_project(project, per_page=2, page=2, action="joined"))

    names = ("X-Page", "X-Per-Page", "X-Next-Page", "X-Prev-Page", "X-Total", "X-Total-Pages")
    assert [response.headers[name] for name in names] == ["2", "2", "3", "1", "5", "3"]
    assert [part.split("; ")[1] for part in response.headers["Link"].split(", ")] == [
        'rel="prev"',
        'rel="next"',
        'rel="first"',
        'rel="last"',
    ]
    assert (
        f"/api/v4/projects/{project.id}/events?action=joined&id={project.id}&page=3&per_page=2&sort=desc"
        in (response.headers["Link"])
    )


@pytest.mark.parametrize(("requested", "returned"), [(None, 20), (7, 7), (100, 100), (101, 100)])
def test_a_page_has_twenty_events_and_at_most_a_hundred(requested, returned, people, project, as_):
    moment = clock.now()
    row = {"action": 8, "kind": 1, "restriction": 0, "author_id": people[DEV].id, "project_id": project.id}
    store(*(Event(**row, created_at=moment) for _ in range(102)))

    response = as_(DEV).get(own(per_page=requested) if requested else own())

    assert (len(response.json), response.headers["X-Per-Page"], response.headers["X-Total"]) == (
        returned,
        str(returned),
        "102",
    )


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "path", ["/events?", "/events?scope=all&", "/users/dev/events?", "/projects/acme%2Fshop/events?"]
)
def test_feeds_above_the_counting_limit_have_no_total(path, people, project, as_, monkeypatch):
    monkeypatch.setattr(pagination, "MAX_COUNTED_ROWS", 3)
    for _ in range(4):
        write(people[DEV], Action.JOINED, project)

    response = as_(DEV).get(f"{path}per_page=1")

    assert (response.headers.get("X-Total"), response.headers.get("X-Total-Pages")) == (None, None)
    assert (response.headers["X-Next-Page"], 'rel="last"' in response.headers["Link"]) == ("2", False)


@pytest.mark.both_databases
def test_the_events_of_a_user_are_counted_by_an_index(people, project, as_, count_queries):
    hidden, open_one = make_project(), make_project(visibility="public")
    row = {"action": 8, "kind": 1, "author_id": people[DEV].id, "created_at": clock.now()}
    seen = [Restriction.NONE, Restriction.SIGNED_IN, Restriction.MEMBERS]
    many = [row | {"restriction": seen[number % 3], "project_id": hidden.id} for number in range(10_001)]
    few = [row | {"restriction": one, "project_id": open_one.id} for one in seen]
    db.session.execute(insert(Event), many + few)
    db.session.commit()

    response = as_(SAM).get("/users/dev/events?per_page=1")
    assert response.headers["X-Total"] == "2"

    db.session.execute(update(Event).where(Event.project_id == hidden.id).values(project_id=open_one.id))
    db.session.commit()
    assert as_(SAM).get("/users/dev/events?per_page=1").headers["X-Total"] == str(2 + 6_668)
    db.session.execute(update(Event).values(restriction=Restriction.NONE))
    db.session.commit()
    with count_queries() as queries:
        response = as_(SAM).get("/users/dev/events?per_page=1")

    assert "X-Total" not in response.headers
    assert [" OR " in query for query in queries if "count(*)" in query] == [False]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "path", ["/events?", "/events?scope=all&", "/users/dev/events?", "/projects/acme%2Fshop/events?"]
)
def test_a_feed_takes_a_constant_number_of_statements(path, people, project, as_, count_queries):
    client = as_(RITA if "users" in path or "projects" in path else DEV)
    client.get(f"{path}per_page=99")
    every_kind(project, people[DEV])

    with count_queries() as few:
        client.get(f"{path}per_page=100")
    for _ in range(2):
        for target in (make_issue(project, people[GUS]), make_issue(project, people[SAM])):
            write(people[DEV], Action.COMMENTED, project, make_note(project, make_user(), target))
    more_projects = [make_project(namespace=people[DEV]) for _ in range(3)]
    for other in more_projects:
        write(people[DEV], Action.JOINED, other)
    with count_queries() as many:
        client.get(f"{path}per_page=100")

    assert len(many) == len(few)


# Keys


def shown(people, project, action, target=None, data=None, **changes):
    write(people[DEV], action, project, target, data)
    event = db.session.scalars(select(Event).order_by(Event.id.desc())).first()
    for name, value in changes.items():
        setattr(event, name, value)
    db.session.commit()
    return event.id


def basic(user):
    return {
        "id": user.id,
        "name": user.name,
        "username": user.username,
        "state": "active",
        "avatar_url": None,
        "web_url": f"http://localhost/{user.username}",
    }


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (PUSH, "pushed to"),
        (PUSH | {"action": "created", "commit_from": None}, "pushed new"),
        (PUSH | {"action": "removed", "commit_to": None, "commit_count": 0, "commit_title": None}, "deleted"),
        (PUSH | {"action": "created", "ref_type": "tag", "ref": "v1"}, "pushed new"),
        (
            PUSH | {"ref": None, "commit_count": 0, "commit_from": None, "commit_to": None, "ref_count": 4},
            "pushed to",
        ),
    ],
)
def test_a_push_event_has_its_push_data(data, name, people, project, as_):
    write(people[DEV], Action.PUSHED, project, data=data)

    (event,) = as_(DEV).get(own()).json

    assert event["push_data"] == data
    assert list(event["push_data"]) == list(PUSH)
    assert (event["action_name"], event["target_type"], event["target_id"]) == (name, None, None)


@pytest.mark.both_databases
def test_an_event_has_these_keys_in_this_order(people, project, as_):
    number = write(people[DEV], Action.PUSHED, project, data=PUSH, at=NEWS + dt.timedelta(microseconds=123456))

    (event,) = as_(DEV).get(own()).json

    assert list(event.items()) == [
        ("id", number),
        ("title", None),
        ("project_id", project.id),
        ("action_name", "pushed to"),
        ("target_id", None),
        ("target_iid", None),
        ("target_type", None),
        ("author_id", people[DEV].id),
        ("target_title", None),
        ("created_at", "2026-03-14T12:00:00.123Z"),
        ("author", basic(people[DEV])),
        ("push_data", PUSH),
        ("author_username", "dev"),
    ]


@pytest.mark.both_databases
def test_only_the_feed_of_a_project_has_data(people, project, as_):
    write(people[DEV], Action.JOINED, project)

    events = [as_(DEV).get(path).json[0] for path in (of_project(project), own(), of_user(people[DEV]))]

    assert ["data" in event for event in events] == [True, False, False]
    assert events[0]["data"] is None


def test_keys_of_missing_targets_are_left_out(people, project, as_):
    write(people[DEV], Action.JOINED, project)

    (event,) = as_(DEV).get(of_project(project)).json

    assert {"note", "wiki_page", "push_data"}.isdisjoint(event)


def test_a_comment_event_includes_its_note(people, project, as_):
    issue = make_issue(project, people[GUS], iid=4, title="Totals are wrong")
    note = make_note(project, people[DEV], issue, body="seen", created_at=NEWS, updated_at=NEWS)
    number = write(people[DEV], Action.COMMENTED, project, note)

    (event,) = as_(DEV).get(own()).json

    values = {
        key: event[key] for key in ("id", "action_name", "target_id", "target_iid", "target_type", "target_title")
    }
    assert values == {
        "id": number,
        "action_name": "commented on",
        "target_id": note.id,
        "target_iid": note.id,
        "target_type": "Note",
        "target_title": "Totals are wrong",
    }
    later_additions = {"internal"}
    assert {key: value for key, value in event["note"].items() if key not in later_additions} == {
        "id": note.id,
        "type": None,
        "body": "seen",
        "attachment": None,
        "author": basic(people[DEV]),
        "created_at": "2026-03-14T12:00:00.000Z",
        "updated_at": "2026-03-14T12:00:00.000Z",
        "system": False,
        "noteable_id": issue.id,
        "noteable_type": "Issue",
        "resolvable": False,
        "resolved_at": None,
        "confidential": False,
        "noteable_iid": 4,
        "commands_changes": {},
    }


def test_a_comment_on_a_diff_has_a_position(people, project, as_):
    merge_request = store(MergeRequest(project_id=project.id, iid=7, title="Better totals"))
    position = {"new_path": "a.py", "new_line": 3}
    note = make_note(project, people[DEV], merge_request, type="DiffNote", position=position)
    write(people[DEV], Action.COMMENTED, project, note)

    (event,) = as_(DEV).get(own()).json

    assert (event["target_type"], event["target_title"]) == ("DiffNote", "Better totals")
    assert (event["note"]["type"], event["note"]["position"], event["note"]["noteable_iid"]) == (
        "DiffNote",
        position,
        7,
    )


@pytest.mark.parametrize(
    ("name", "noteable_type", "title"),
    [
        ("commit note", "Commit", None),
        ("public snippet note", "Snippet", "public snippet"),
        ("design note", "DesignManagement::Design", "a.png"),
        ("alert note", "AlertManagement::Alert", None),
        ("wiki note", "WikiPage::Meta", "Home"),
    ],
)
def test_a_comment_on_a_target_without_iid_has_no_iid(name, noteable_type, title, people, project, as_):
    events = every_kind(project, people[DEV])

    event = next(one for one in as_(DEV).get(own(per_page=100)).json if one["id"] == events[name])

    assert (event["note"]["noteable_type"], event["note"]["noteable_iid"]) == (noteable_type, None)
    assert event["target_title"] == title


def test_a_comment_on_an_alert_has_the_title_of_the_alert(people, project, as_):
    alert = store(Alert(project_id=project.id, iid=3, title="The till is stuck", started_at=clock.now()))
    note = incidents.comment(people[DEV], alert, "Looking into it")
    db.session.commit()

    (event,) = as_(DEV).get(own(target_type="note")).json

    assert (event["target_id"], event["target_iid"], event["target_title"]) == (note.id, note.id, "The till is stuck")
    assert (event["note"]["noteable_id"], event["note"]["noteable_iid"]) == (alert.id, None)


def test_a_comment_on_a_commit_has_the_title_of_the_commit(people, project, as_, tmp_path):
    keep_repository(project, tmp_path)
    repository = pygit2.Repository(str(tmp_path))
    commit = str(repository.head.target)
    tree = str(repository[commit].tree_id)
    for number in (commit, commit[:8], "main", tree, COMMIT, None):
        note = make_note(project, people[DEV], None, noteable_type="Commit", commit_id=number)
        write(people[DEV], Action.COMMENTED, project, note)

    events = as_(DEV).get(own(sort="asc")).json

    assert [event["target_title"] for event in events] == ["first", None, None, None, None, None]


def test_only_comments_on_diffs_have_a_position(people, project, as_):
    every_kind(project, people[DEV])

    events = as_(DEV).get(own(per_page=100, action="commented")).json

    assert {event["target_type"] for event in events if "position" in event["note"]} == {"DiffNote"}


NAMES = [
    ("project", Action.CREATED, "created"),
    ("project", Action.JOINED, "joined"),
    ("project", Action.LEFT, "left"),
    ("project", Action.EXPIRED, "removed due to membership expiration from"),
    ("issue", Action.CREATED, "opened"),
    ("issue", Action.CLOSED, "closed"),
    ("issue", Action.REOPENED, "opened"),
    ("merge request", Action.CREATED, "opened"),
    ("merge request", Action.REOPENED, "opened"),
    ("merge request", Action.CLOSED, "closed"),
    ("merge request", Action.MERGED, "accepted"),
    ("merge request", Action.APPROVED, "approved"),
    ("milestone", Action.CREATED, "opened"),
    ("milestone", Action.REOPENED, "opened"),
    ("milestone", Action.CLOSED, "closed"),
    ("milestone", Action.DESTROYED, "destroyed"),
    ("wiki", Action.CREATED, "created"),
    ("wiki", Action.UPDATED, "updated"),
    ("wiki", Action.DESTROYED, "destroyed"),
    ("design", Action.CREATED, "uploaded"),
    ("design", Action.UPDATED, "revised"),
    ("design", Action.DESTROYED, "deleted"),
    ("snippet", Action.CREATED, "opened"),
]


def test_every_action_has_a_name(people, project, as_):
    about = {"project_id": project.id}
    issue = make_issue(project, people[DEV], iid=41, title="Wrong")
    targets = {
        "project": (None, None, None),
        "issue": (issue, "Issue", "Wrong"),
        "merge request": (MergeRequest(iid=42, title="Better", **about), "MergeRequest", "Better"),
        "milestone": (Milestone(iid=43, title="1.0", **about), "Milestone", "1.0"),
        "wiki": (WikiPage(title="Home", slug="home", **about), "WikiPage::Meta", "Home"),
        "design": (Design(iid=44, filename="a.png", issue_id=issue.id, **about), "DesignManagement::Design", "a.png"),
        "snippet": (Snippet(title="a few lines", **about), "Snippet", "a few lines"),
    }
    store(*(target for target, _, _ in targets.values() if target is not None))
    for kind, action, _ in NAMES:
        write(people[DEV], action, project, targets[kind][0])

    events = as_(DEV).get(own(sort="asc", per_page=100)).json

    keys = ("action_name", "target_type", "target_title", "target_id", "target_iid")
    expected = []
    for kind, _, name in NAMES:
        target, target_type, title = targets[kind]
        number = None if target is None else target.id
        expected.append((name, target_type, title, number, getattr(target, "iid", number)))
    assert [tuple(event[key] for key in keys) for event in events] == expected


def test_a_project_with_an_import_url_was_imported(people, project, as_):
    write(people[DEV], Action.CREATED, project, data={"imported": True})

    assert [event["action_name"] for event in as_(DEV).get(own()).json] == ["imported"]


def test_a_wiki_page_event_is_shown_until_the_page_is_deleted(people, project, as_):
    page = store(WikiPage(project_id=project.id, title="Home sweet home", slug="home-sweet-home"))
    write(people[DEV], Action.CREATED, project, page)
    before = as_(DEV).get(own()).json[0]
    db.session.delete(db.session.get(WikiPage, page.id))
    db.session.commit()

    after = as_(DEV).get(own()).json[0]

    assert before["wiki_page"] == {"format": "markdown", "slug": "home-sweet-home", "title": "Home sweet home"}
    assert after["wiki_page"] is None


@pytest.mark.both_databases
def test_a_feed_with_every_kind_of_event_is_read_completely(people, project, as_):
    events = every_kind(project, people[DEV])

    responses = [as_(MAX).get(path) for path in (of_project(project, per_page=100), of_user(people[DEV], per_page=100))]

    assert [named(events, response) for response in responses] == [set(events)] * 2


# Visibility

CODE = {"push", "commit note"}
CHANGES = {"merge request", "diff note"}
ISSUES = {"issue", "note", "design", "design note"}
WIKI = {"wiki", "wiki note"}
SNIPPETS = {"public snippet", "public snippet note"}
INTERNAL_SNIPPETS = {"internal snippet", "internal snippet note"}
PRIVATE_SNIPPETS = {"private snippet", "private snippet note"}
UNRESTRICTED = {"project", "joined", "left", "expired"}
CONFIDENTIAL = {"secret issue", "secret note", "secret design", "secret design note"}
INTERNAL = {"internal note", "internal secret note"}
ALERTS = {"alert note"}

EXTERNAL_USER = UNRESTRICTED | CODE | CHANGES | ISSUES | {"milestone"} | WIKI | SNIPPETS
STRANGER = EXTERNAL_USER | INTERNAL_SNIPPETS
GUEST = STRANGER | PRIVATE_SNIPPETS
REPORTER = GUEST | CONFIDENTIAL | INTERNAL
DEVELOPER = REPORTER | ALERTS
EXTERNAL = "external"


@pytest.fixture
def external(client_of, people):
    return client_of(make_user(EXTERNAL, external=True))


def seen_by(client, project, author, events):
    """Return the names of the events that a client sees; the feeds of the project and of the author have to agree."""
    by_author = named(events, client.get(of_user(author, per_page=100)))
    response = client.get(of_project(project, per_page=100))
    if response.status_code == 404:
        assert by_author == set()
        return None
    assert named(events, response) == by_author
    return by_author


ABOVE = {RITA: REPORTER, DEV: DEVELOPER, MAX: DEVELOPER, OLIVE: DEVELOPER, ADA: DEVELOPER}
MATRIX = {
    "public": {SAM: STRANGER, EXTERNAL: EXTERNAL_USER, GUS: GUEST} | ABOVE,
    "internal": {SAM: STRANGER, EXTERNAL: None, GUS: GUEST} | ABOVE,
    "private": {SAM: None, EXTERNAL: None, GUS: GUEST - CODE - CHANGES} | ABOVE,
}


@pytest.mark.parametrize("visibility", ["public", "internal", "private"])
def test_roles_see_these_kinds_of_events(visibility, people, project, as_, external):
    change(project, visibility=Visibility.of(visibility))
    events = every_kind(project, people[DEV])
    clients = {name: as_(name) for name in (SAM, *ROLES, ADA)} | {EXTERNAL: external}

    seen = {name: seen_by(client, project, people[DEV], events) for name, client in clients.items()}
    own_projects = {name: named(events, clients[name].get(own(scope="all", per_page=100))) for name in ROLES}

    assert seen == MATRIX[visibility]
    assert own_projects == {name: seen[name] for name in ROLES}


@pytest.mark.parametrize(
    ("features", "missing"),
    [
        (["issues"], ISSUES | CONFIDENTIAL | INTERNAL),
        (["merge_requests"], CHANGES),
        (["issues", "merge_requests"], ISSUES | CONFIDENTIAL | INTERNAL | CHANGES | {"milestone"}),
        (["repository"], CODE),
        (["wiki"], WIKI),
        (["snippets"], SNIPPETS | INTERNAL_SNIPPETS | PRIVATE_SNIPPETS),
        (["builds", "forking", "pages", "operations", "analytics"], set()),
    ],
)
def test_a_disabled_or_members_only_feature_hides_its_events(features, missing, people, project, as_):
    change(project, visibility=Visibility.PUBLIC)
    events = every_kind(project, people[DEV])

    views = {}
    for level in ("disabled", "private"):
        change(project, **{f"{feature}_access_level": level for feature in features})
        views[level] = {name: seen_by(as_(name), project, people[DEV], events) for name in (SAM, GUS, RITA, OLIVE, ADA)}

    assert views["disabled"] == {
        SAM: STRANGER - missing,
        GUS: GUEST - missing,
        RITA: REPORTER - missing,
        OLIVE: DEVELOPER - missing,
        ADA: DEVELOPER - missing,
    }
    assert views["private"] == {
        SAM: STRANGER - missing,
        GUS: GUEST - (missing & (CODE | CHANGES)),
        RITA: REPORTER,
        OLIVE: DEVELOPER,
        ADA: DEVELOPER,
    }


@pytest.mark.parametrize("relation", ["author", "assignee"])
@pytest.mark.parametrize("person", [SAM, GUS])
def test_authors_and_assignees_of_a_confidential_issue_see_its_events(person, relation, people, project, as_):
    change(project, visibility=Visibility.PUBLIC)
    author = people[person] if relation == "author" else people[RITA]
    issue = make_issue(project, author, confidential=True)
    if relation == "assignee":
        issue.assignees = [people[person]]
        db.session.commit()
    foreign = make_issue(project, people[RITA], confidential=True)
    opened = write(people[DEV], Action.CREATED, project, issue)
    comment = write(people[DEV], Action.COMMENTED, project, make_note(project, people[DEV], issue))
    write(people[DEV], Action.COMMENTED, project, make_note(project, people[DEV], issue, confidential=True))
    write(people[DEV], Action.CREATED, project, foreign)

    client = as_(person)

    assert ids(client.get(of_project(project))) == [comment, opened]
    assert ids(client.get(of_user(people[DEV]))) == [comment, opened]


def test_the_author_of_a_confidential_issue_needs_access_to_the_project(people, project, as_):
    issue = make_issue(project, people[SAM], confidential=True)
    write(people[SAM], Action.CREATED, project, issue)

    assert ids(as_(SAM).get(own())) == []


def test_events_follow_the_confidentiality_of_their_issue(people, project, as_):
    change(project, visibility=Visibility.PUBLIC)
    dev, issues = as_(DEV), f"/projects/{project.id}/issues"
    iid = dev.post(issues, json={"title": "Wrong"}).json["iid"]
    dev.post(f"{issues}/{iid}/notes", json={"body": "a word"})
    dev.post(f"{issues}/{iid}/notes", json={"body": "among us", "internal": True})

    counts = []
    for confidential in (False, True, False):
        dev.put(f"{issues}/{iid}", json={"confidential": confidential})
        counts.append([len(ids(as_(name).get(of_project(project)))) for name in (SAM, GUS, RITA, DEV)])

    assert counts == [[2, 2, 3, 3], [0, 0, 3, 3], [2, 2, 3, 3]]


@pytest.mark.both_databases
@pytest.mark.parametrize("act", [lambda *args: issue_rules.create_note(*args, body="x"), issue_rules.close_issue])
def test_events_during_a_change_to_confidential_are_confidential(act, people, project):
    issue = make_issue(project, people[RITA])
    with unit_of_work():
        db.session.execute(update(Issue).values(confidential=True), execution_options={"synchronize_session": False})
        act(people[DEV], issue)

    assert db.session.scalars(select(Event.restriction)).all() == [Restriction.CONFIDENTIAL]


def test_designs_follow_the_confidentiality_of_their_issue(people, project, as_):
    issue = make_issue(project, people[RITA])
    design = store(Design(project_id=project.id, issue_id=issue.id, filename="a.png"))
    write(people[DEV], Action.CREATED, project, design)
    write(people[DEV], Action.COMMENTED, project, make_note(project, people[DEV], design))
    with unit_of_work():
        issue.confidential = True
        change_confidentiality(issue)

    assert [len(ids(as_(name).get(of_project(project)))) for name in (GUS, RITA)] == [0, 2]


@pytest.mark.parametrize("scanned", [0, 10_000])
def test_a_former_member_sees_nothing_of_a_private_project(scanned, people, project, as_, monkeypatch):
    limit_scan(monkeypatch, scanned)
    write(people[DEV], Action.PUSHED, project, data=PUSH)
    before = [len(as_(DEV).get(path).json) for path in (own(), own(scope="all"))]

    as_(MAX).delete(f"/projects/{project.id}/members/{people[DEV].id}")

    assert before == [1, 1]
    assert [as_(DEV).get(path).json for path in (own(), own(scope="all"))] == [[], []]


def test_events_of_a_project_appear_with_a_membership(people, project, as_):
    secret = make_issue(project, people[DEV], confidential=True)
    event = write(people[DEV], Action.CREATED, project, secret)
    before = ids(as_(SAM).get(of_user(people[DEV])))

    add_member(project, people[SAM], Role.DEVELOPER)

    assert before == []
    assert ids(as_(SAM).get(of_user(people[DEV]))) == [event]


@pytest.mark.both_databases
def test_a_project_that_is_being_deleted_is_in_no_feed(people, project, as_, run_jobs):
    write(people[DEV], Action.JOINED, project)

    as_(OLIVE).delete(f"/projects/{project.id}")
    responses = [as_(name).get(path) for name in (DEV, ADA) for path in (of_user(people[DEV]), own(scope="all"))]
    run_jobs()

    assert [ids(response) for response in responses] == [[]] * 4
    assert as_(ADA).get(of_project(project)).status_code == 404
    assert db.session.scalars(select(Event)).all() == []


@pytest.mark.both_databases
def test_the_events_of_a_user_are_removed_with_the_user(people, project, as_admin, run_jobs):
    write(people[DEV], Action.JOINED, project)
    remaining = write(people[RITA], Action.JOINED, project)

    as_admin.delete(f"/users/{people[DEV].id}")
    run_jobs()

    assert ids(as_admin.get(of_project(project))) == [remaining]


# Removal


@pytest.mark.both_databases
def test_the_events_of_an_issue_are_removed_with_it(people, project, as_):
    dev, issues = as_(DEV), f"/projects/{project.id}/issues"
    iid, remaining_iid = (dev.post(issues, json={"title": title}).json["iid"] for title in ("gone", "kept"))
    dev.post(f"{issues}/{iid}/notes", json={"body": "a word"})
    dev.put(f"{issues}/{iid}", json={"state_event": "close"})

    as_(OLIVE).delete(f"{issues}/{iid}")

    assert [(event["action_name"], event["target_iid"]) for event in dev.get(own()).json] == [("opened", remaining_iid)]


@pytest.mark.both_databases
def test_the_event_of_a_note_is_removed_with_it(people, project, as_):
    dev, issues = as_(DEV), f"/projects/{project.id}/issues"
    iid = dev.post(issues, json={"title": "kept"}).json["iid"]
    note = dev.post(f"{issues}/{iid}/notes", json={"body": "a word"}).json

    dev.delete(f"{issues}/{iid}/notes/{note['id']}")

    assert [event["action_name"] for event in dev.get(own()).json] == ["opened"]


def test_the_events_of_a_deleted_milestone_stay_without_a_target(people, project, as_):
    dev, milestones = as_(DEV), f"/projects/{project.id}/milestones"
    number = dev.post(milestones, json={"title": "1.0"}).json["id"]
    dev.put(f"{milestones}/{number}", json={"state_event": "close"})

    dev.delete(f"{milestones}/{number}")

    events = as_(GUS).get(of_project(project)).json
    assert [event["action_name"] for event in events] == ["destroyed", "closed", "opened"]
    assert {event["target_type"] for event in events} == {"Milestone"}
    assert {(event["target_id"], event["target_iid"], event["target_title"]) for event in events} == {(None,) * 3}


# Recording


def new_events(act):
    """Return the recorded action, target and author."""
    db.session.remove()
    known_ids = set(db.session.scalars(select(Event.id)))
    db.session.remove()
    act()
    added = db.session.scalars(select(Event).where(Event.id.not_in(known_ids)).order_by(Event.id))
    return [(Action(event.action).name.lower(), event.target_type, event.author.username) for event in added]


@pytest.fixture
def send_as(people, project, as_):
    """Send a successful request of a user to a path of the project."""
    path_values = {
        "issue": as_(GUS).post(f"/projects/{project.id}/issues", json={"title": "Wrong"}).json["iid"],
        "milestone": as_(DEV).post(f"/projects/{project.id}/milestones", json={"title": "1.0"}).json["id"],
        "dev": people[DEV].id,
        "sam": people[SAM].id,
        "group": project.namespace_id,
    }
    path = f"/projects/{project.id}/issues/{path_values['issue']}/notes"
    path_values["note"] = as_(GUS).post(path, json={"body": "a word"}).json["id"]

    def send_request(person, method, path, **fields):
        root = "" if path.startswith("/") else f"/projects/{project.id}/"
        response = as_(person).open(method, root + path.format(**path_values), json=fields)
        assert response.status_code < 300, response.json

    return send_request


@pytest.mark.parametrize(
    ("requests", "recorded"),
    [
        ([(GUS, "POST", "issues", {"title": "x"})], [("created", "Issue", GUS)]),
        ([(DEV, "PUT", "issues/{issue}", {"state_event": "close"})], [("closed", "Issue", DEV)]),
        (
            [
                (DEV, "PUT", "issues/{issue}", {"state_event": state})
                for state in ("close", "close", "reopen", "reopen")
            ],
            [("closed", "Issue", DEV), ("reopened", "Issue", DEV)],
        ),
        ([(RITA, "PUT", "issues/{issue}", {"title": "y", "labels": "a", "description": "z", "weight": 3})], []),
        ([(RITA, "PUT", "issues/{issue}", {"confidential": True})], []),
        ([(RITA, "PUT", "issues/{issue}", {"assignee_ids": [1], "due_date": "2030-01-01"})], []),
        ([(OLIVE, "DELETE", "issues/{issue}", {})], []),
        ([(RITA, "POST", "issues/{issue}/notes", {"body": "x"})], [("commented", "Note", RITA)]),
        ([(RITA, "POST", "issues/{issue}/notes", {"body": "x", "internal": True})], [("commented", "Note", RITA)]),
        ([(GUS, "PUT", "issues/{issue}/notes/{note}", {"body": "y"})], []),
        ([(GUS, "DELETE", "issues/{issue}/notes/{note}", {})], []),
        ([(DEV, "POST", "milestones", {"title": "2.0"})], [("created", "Milestone", DEV)]),
        (
            [
                (MAX, "PUT", "milestones/{milestone}", {"state_event": state})
                for state in ("close", "close", "activate")
            ],
            [("closed", "Milestone", MAX), ("reopened", "Milestone", MAX)],
        ),
        ([(DEV, "PUT", "milestones/{milestone}", {"title": "1.1", "due_date": "2030-01-01"})], []),
        ([(DEV, "DELETE", "milestones/{milestone}", {})], [("destroyed", "Milestone", DEV)]),
        ([(MAX, "POST", "members", {"user_id": "{sam}", "access_level": 30})], [("joined", None, SAM)]),
        ([(MAX, "PUT", "members/{dev}", {"access_level": 20})], []),
        ([(MAX, "DELETE", "members/{dev}", {})], [("left", None, DEV)]),
        ([(DEV, "DELETE", "members/{dev}", {})], [("left", None, DEV)]),
        ([(OLIVE, "POST", "/groups/{group}/members", {"user_id": "{sam}", "access_level": 30})], []),
        ([(OLIVE, "POST", "/projects", {"name": "fresh", "namespace_id": "{group}"})], [("created", None, OLIVE)]),
        ([(SAM, "POST", "/projects", {"name": "mine"})], [("created", None, SAM)]),
        ([(OLIVE, "POST", "archive", {}), (OLIVE, "POST", "unarchive", {})], []),
        ([(OLIVE, "PUT", "", {"description": "x", "visibility": "private"})], []),
        ([(MAX, "POST", "variables", {"key": "A", "value": "b"}), (MAX, "DELETE", "variables/A", {})], []),
        ([(MAX, "POST", "protected_tags", {"name": "v*"}), (MAX, "DELETE", "protected_tags/v*", {})], []),
    ],
)
def test_each_action_records_exactly_these_events(requests, recorded, people, project, send_as):
    numbers = {"{sam}": people[SAM].id, "{group}": project.namespace_id}

    def act():
        for person, method, path, fields in requests:
            send_as(person, method, path.rstrip("/"), **{name: numbers.get(str(v), v) for name, v in fields.items()})

    assert new_events(act) == recorded


def test_error_tracking_records_nothing(project, as_maintainer):
    responses = []

    def act():
        path = f"/projects/{project.id}/error_tracking/settings"
        responses.append(as_maintainer.patch(path, json={"active": True, "integrated": True}).status_code)

    assert new_events(act) == []
    assert responses != [401]


def test_a_system_note_records_no_event(people, project):
    issue = make_issue(project, people[DEV])

    def act():
        with unit_of_work():
            issue_rules.add_system_note(people[DEV], issue, "changed the title")

    assert new_events(act) == []
    assert db.session.scalars(select(Note.system)).all() == [True]


def test_refused_requests_record_no_event(project, as_):
    def act():
        as_(DEV).post(f"/projects/{project.id}/issues", json={"title": ""})
        as_(GUS).post(f"/projects/{project.id}/milestones", json={"title": "x"})
        as_(MAX).post(f"/projects/{project.id}/members", json={"user_id": 99999, "access_level": 30})

    assert new_events(act) == []


@pytest.mark.both_databases
@pytest.mark.parametrize(("age", "moves"), [(dt.timedelta(minutes=59), False), (dt.timedelta(minutes=61), True)])
def test_the_last_activity_of_a_project_is_updated_once_an_hour(age, moves, project, as_):
    before = clock.now() - age
    change(project, last_activity_at=before)

    as_(DEV).post(f"/projects/{project.id}/issues", json={"title": "x"})

    assert (reload(project).last_activity_at != before) is moves


# Generated examples of visibility


@dataclass
class VisibilityExample:
    """Users, groups, projects and events as plain data, for expected results that do not come from the tested code."""

    users: list = field(default_factory=list)
    groups: list = field(default_factory=list)
    parents: dict = field(default_factory=dict)
    projects: list = field(default_factory=list)
    members: list = field(default_factory=list)
    shares: list = field(default_factory=list)
    issues: list = field(default_factory=list)
    events: list = field(default_factory=list)

    def above(self, group):
        while group is not None:
            yield group.id
            group = self.parents[group.id]

    def level_in(self, user, kind, source_id):
        return max(
            (
                level
                for user_id, target_kind, target_id, level in self.members
                if (user_id, target_kind, target_id) == (user.id, kind, source_id)
            ),
            default=0,
        )

    def level_in_group(self, user, group):
        """Return the access level by membership in the group or its parents."""
        return max(self.level_in(user, "group", above) for above in self.above(group))

    def role(self, user, project):
        if user.admin:
            return 50
        if isinstance(project.namespace, int):
            roles = [50 if project.namespace == user.id else 0]
            above = set()
        else:
            roles = [self.level_in_group(user, project.namespace)]
            above = set(self.above(project.namespace))
        roles.append(self.level_in(user, "project", project.id))
        for kind, source_id, group, level in self.shares:
            if (kind == "project" and source_id == project.id) or (kind == "group" and source_id in above):
                roles.append(min(level, self.level_in_group(user, group)))
        return max(roles)


@dataclass
class ExampleProject:
    """A project of an example."""

    id: int
    namespace: object
    visibility: str
    features: dict


@dataclass
class ExampleEvent:
    """An event of an example."""

    id: int
    author: int
    project: ExampleProject
    at: dt.datetime
    kind: str
    issue: dict | None
    internal: bool


def is_visible(example, caller, event):
    """Return whether a caller sees an event (events reference, section 5)."""
    role, project = example.role(caller, event.project), event.project
    is_open = project.visibility == "public" or (project.visibility == "internal" and not caller.external)
    if not is_open and role == 0:
        return False

    def allows(feature, min_role):
        level = project.features[feature]
        if level == "disabled":
            return False
        return role >= min_role or (level == "enabled" and is_open)

    if event.kind == "push":
        return allows("repository", 20)
    if event.kind == "joined":
        return True
    if event.kind == "merge request":
        return allows("merge_requests", 20)
    if event.kind == "milestone":
        return allows("issues", 10) or allows("merge_requests", 10)
    if event.kind == "wiki":
        return allows("wiki", 10)
    assert event.kind in ("issue", "note")
    if not allows("issues", 10):
        return False
    if event.internal and role < 20:
        return False
    return not event.issue["confidential"] or role >= 20 or caller.id in event.issue["people"]


def is_own_project(example, caller, project):
    """Whether the caller belongs to a project; the administrator flag is ignored."""
    was_admin, caller.admin = caller.admin, False
    try:
        return example.role(caller, project) >= 10
    finally:
        caller.admin = was_admin


def make_example(rng):
    example = VisibilityExample()
    example.users = [make_user(f"u{n}", admin=n == 0, external=n == 1) for n in range(5)]
    for number in range(4):
        parent = rng.choice([None, *example.groups])
        group = make_group(f"g{number}", parent, visibility="public" if parent is None else "private")
        example.groups.append(group)
        example.parents[group.id] = parent
    levels = [10, 20, 30, 40]
    for number in range(5):
        owner = rng.choice([None, None, rng.choice(example.users)])
        group = None if owner else rng.choice(example.groups)
        features = {
            name: rng.choice(["enabled", "enabled", "private", "disabled"])
            for name in ("issues", "merge_requests", "repository", "wiki")
        }
        visibility = rng.choice(["private", "private", "internal", "public"])
        project = make_project(
            f"p{number}",
            owner or group,
            visibility=visibility,
            **{f"{name}_access_level": level for name, level in features.items()},
        )
        example.projects.append(ExampleProject(project.id, owner.id if owner else group, visibility, features))
    rows = {
        example_project.id: db.session.get(conftest.Project, example_project.id) for example_project in example.projects
    }
    for user in example.users:
        for group in rng.sample(example.groups, 1):
            ended, level = rng.random() < 0.2, rng.choice(levels)
            add_member(group, user, level, clock.today() - (DAY if rng.random() < 0.5 else 0 * DAY) if ended else None)
            example.members += [] if ended else [(user.id, "group", group.id, level)]
        for example_project in rng.sample(example.projects, rng.randint(0, 1)):
            level = rng.choice(levels)
            add_member(rows[example_project.id], user, level)
            example.members.append((user.id, "project", example_project.id, level))
    for _ in range(3):
        group, level = rng.choice(example.groups), rng.choice(levels)
        if rng.random() < 0.5:
            example_project = rng.choice(example.projects)
            kind, target = "project", rows[example_project.id]
        else:
            kind, target = "group", rng.choice(example.groups)
        existing = {(entry[0], entry[1], entry[2].id) for entry in example.shares}
        if (kind, target.id, group.id) not in existing and (kind == "project" or target.id != group.id):
            share(target, group, Role(level))
            example.shares.append((kind, target.id, group, level))
    for number in range(8):
        example_project, author = rng.choice(example.projects), rng.choice(example.users)
        assignees = rng.sample(example.users, rng.randint(0, 1))
        issue = Issue(
            project_id=example_project.id,
            iid=number + 1,
            title="x",
            author_id=author.id,
            confidential=rng.random() < 0.5,
        )
        issue.assignees = assignees
        store(issue)
        people = {author.id, *(user.id for user in assignees)}
        example.issues.append(
            {"row": issue, "project": example_project, "confidential": issue.confidential, "people": people}
        )
    for number in range(40):
        example.events.append(make_example_event(example, rng, rows, number))
    db.session.commit()
    return example


def make_example_event(example, rng, rows, number):
    author, example_project, issue, internal = rng.choice(example.users), rng.choice(example.projects), None, False
    kind = rng.choice(["push", "joined", "merge request", "milestone", "wiki", "issue", "issue", "note", "note"])
    action, target = {"push": Action.PUSHED, "joined": Action.JOINED, "note": Action.COMMENTED}.get(kind), None
    if kind in ("issue", "note"):
        issue = rng.choice(example.issues)
        example_project, target = issue["project"], issue["row"]
    if kind == "note":
        internal = rng.random() < 0.3
        target = Note(
            project_id=example_project.id,
            noteable_type="Issue",
            noteable_id=issue["row"].id,
            body="x",
            confidential=internal,
        )
    if kind == "merge request":
        target = MergeRequest(project_id=example_project.id, iid=number, title="x")
    if kind == "milestone":
        target = Milestone(project_id=example_project.id, iid=number, title=f"m{number}")
    if kind == "wiki":
        target = WikiPage(project_id=example_project.id, title="x", slug="x")
    if target is not None:
        db.session.add(target)
        db.session.flush()
    event = record(author, action or Action.CREATED, rows[example_project.id], target)
    event.created_at = NEWS + rng.randint(0, 5) * DAY
    db.session.flush()
    return ExampleEvent(event.id, author.id, example_project, event.created_at, kind, issue, internal)


@pytest.mark.both_databases
@given(seed=st.integers(0, 2**32))
@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_every_feed_shows_exactly_the_visible_events(app, client_of, seed):
    rng = random.Random(seed)
    conftest._empty()
    example = make_example(rng)
    db.session.expunge_all()
    newest_first = sorted(example.events, key=lambda event: (event.at, event.id), reverse=True)

    for caller in rng.sample(example.users, 3):
        client = client_of(caller)
        seen = [event for event in newest_first if is_visible(example, caller, event)]
        for user in example.users:
            expected = [event.id for event in seen if event.author == user.id]
            assert ids(client.get(of_user(user, per_page=100))) == expected
        assert ids(client.get(own(per_page=100))) == [event.id for event in seen if event.author == caller.id]
        for project in example.projects:
            response = client.get(of_project(project, per_page=100))
            visible = project.visibility == "public" or (project.visibility == "internal" and not caller.external)
            if not visible and example.role(caller, project) == 0:
                assert response.status_code == 404
            else:
                assert ids(response) == [event.id for event in seen if event.project is project]
        own_ids = [event.id for event in seen if is_own_project(example, caller, event.project)]
        assert ids(client.get(own(scope="all", per_page=100))) == own_ids
        assert client.get(own(scope="all", per_page=1)).headers["X-Total"] == str(len(own_ids))
        with pytest.MonkeyPatch.context() as patch:
            limit_scan(patch, rng.choice([0, 3]))
            assert ids(client.get(own(scope="all", per_page=99))) == own_ids


def test_encoded_project_paths_are_accepted(people, as_admin):
    project = make_project("with.dot", people[ADA])
    event = write(people[ADA], Action.JOINED, project)

    response = as_admin.get(f"/projects/{quote('ada/with.dot', safe='')}/events")

    assert ids(response) == [event]
