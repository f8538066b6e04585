"""Feeds of events: authentication, parameters and pages."""

from __future__ import annotations

import datetime as dt

import pytest
from sqlalchemy import insert, update

from project_service.domain.accounts.users import BLOCKED, DEACTIVATED
from project_service.domain.events.models import Action, Event, Restriction
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.http import pagination
from tests.areas.activity.support import (
    DAY,
    FEEDS,
    NEWS,
    every_kind,
    ids,
    make_issue,
    make_note,
    named,
    of_project,
    of_user,
    own,
    store,
    write,
)
from tests.support.sample_data import (
    ADA,
    DEV,
    GUS,
    MAX,
    NOBODY,
    RITA,
    SAM,
    make_project,
    make_user,
)


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


def in_project(project):
    return lambda **query: of_project(project, **query)


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
