"""Milestones through HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from project_service.domain.access_levels import Visibility
from project_service.domain.events.models import Action, Event
from project_service.domain.projects import Project
from project_service.domain.tracker.milestones import Milestone
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import DEV, GUS, MAX, NOBODY, OLIVE, PEOPLE, RITA, SAM, make_project

MISSING = {"message": "404 Milestone Not Found"}
TITLE_TAKEN_MESSAGE = "already being used for another group or project milestone."
UNMODIFIED_SINCE_1990 = {"If-Unmodified-Since": "Mon, 01 Jan 1990 00:00:00 GMT"}


def refused(name, text, action="create"):
    """The body of a refusal, as the API has it for milestones alone."""
    return {"message": f'Failed to {action} milestone {{:{name}=>["{text}"]}}'}


def milestones(project, number=None):
    path = f"/projects/{project.id}/milestones"
    return path if number is None else f"{path}/{number}"


def update_project(project, **fields):
    actual = db.session.get(Project, project.id)
    for name, value in fields.items():
        setattr(actual, name, value)
    db.session.commit()


@pytest.fixture
def create(project, as_):
    """Creates a milestone through the API; returns it."""

    def create_as_dev(title="1.0", **fields):
        response = as_(DEV).post(milestones(project), json={"title": title} | fields)
        assert response.status_code == 201, response.json
        return response.json

    return create_as_dev


def test_a_milestone_has_the_documented_keys(project, as_):
    sent = {"title": "1.0", "description": "soon", "start_date": "2030-01-01", "due_date": "2030-02-01"}

    created = as_(DEV).post(milestones(project), json=sent)

    assert created.status_code == 201
    moments = {"created_at": created.json["created_at"], "updated_at": created.json["updated_at"]}
    assert created.json == sent | moments | {
        "id": created.json["id"],
        "iid": 1,
        "project_id": project.id,
        "state": "active",
        "expired": False,
        "web_url": "http://localhost/acme/shop/-/milestones/1",
    }
    assert as_(GUS).get(milestones(project, created.json["id"])).json == created.json
    assert as_(GUS).get(milestones(project)).json == [created.json]


@pytest.mark.parametrize(
    ("method", "number", "statuses"),
    [
        ("GET", False, [200, 200, 200, 200, 200, 200, 404, 401]),
        ("GET", True, [200, 200, 200, 200, 200, 200, 404, 401]),
        ("POST", False, [201, 201, 201, 201, 403, 403, 404, 401]),
        ("PUT", True, [200, 200, 200, 200, 403, 403, 404, 401]),
        ("DELETE", True, [204, 204, 204, 204, 403, 403, 404, 401]),
    ],
)
def test_permissions_in_a_private_project_by_role(method, number, statuses, project, create, as_):
    actual = []
    for person in (*PEOPLE, NOBODY):
        path = milestones(project, create(f"for {person}")["id"] if number else None)
        actual.append(as_(person).open(method, path, json={"title": f"by {person}"}).status_code)

    assert actual == statuses


@pytest.mark.parametrize(
    ("level", "features", "statuses"),
    [
        ("private", ["issues"], [200, 200]),
        ("private", ["merge_requests"], [200, 200]),
        ("private", ["issues", "merge_requests"], [403, 200]),
        ("disabled", ["issues"], [200, 200]),
        ("disabled", ["issues", "merge_requests"], [403, 403]),
    ],
)
def test_milestones_need_issues_or_merge_requests_enabled(level, features, statuses, project, create, as_):
    number = create()["id"]
    update_project(project, visibility=Visibility.PUBLIC, **{f"{feature}_access_level": level for feature in features})

    actual = [
        [as_(name).get(path).status_code for name in (SAM, GUS)]
        for path in (milestones(project), milestones(project, number))
    ]

    assert actual == [statuses] * 2


def test_an_archived_project_is_read_only(project, create, as_):
    number = create()["id"]
    as_(OLIVE).post(f"/projects/{project.id}/archive")

    responses = [
        as_(MAX).post(milestones(project), json={"title": "x"}),
        as_(MAX).put(milestones(project, number), json={"title": "x"}),
        as_(MAX).delete(milestones(project, number)),
    ]

    assert [response.status_code for response in responses] == [403] * 3


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ({}, {"error": "title is missing"}),
        ({"title": ""}, refused("title", "can't be blank")),
        ({"title": "  "}, refused("title", "can't be blank")),
        ({"title": "x" * 256}, refused("title", "is too long (maximum is 255 characters)")),
        ({"title": "1.0"}, refused("title", TITLE_TAKEN_MESSAGE)),
        (
            {"title": "x", "start_date": "2030-01-02", "due_date": "2030-01-01"},
            refused("due_date", "must be greater than start date"),
        ),
        ({"title": "x", "due_date": "someday"}, {"error": "due_date is invalid"}),
        ({"title": "x", "start_date": "2030-02-30"}, {"error": "start_date is invalid"}),
    ],
)
def test_an_invalid_milestone_is_refused_with_reasons(fields, body, project, create, as_):
    create("1.0")
    other = create("2.0")["id"]

    created = as_(DEV).post(milestones(project), json=fields)
    changed = as_(DEV).put(milestones(project, other), json=fields)

    assert (created.status_code, created.json) == (400, body)
    (key, text), *_ = body.items() if fields else {"error": PARAMETERS_MISSING}.items()
    assert (changed.status_code, changed.json[key]) == (400, text.replace("Failed to create", "Failed to update"))
    assert as_(DEV).get(milestones(project, other)).json["title"] == "2.0"


PARAMETERS_MISSING = (
    "title, description, start_date, due_date, state_event are missing, at least one parameter must be provided"
)


def test_a_title_is_unique_in_its_project(project, people, create, as_):
    number = create("1.0")["id"]
    other = make_project(namespace=people[DEV])

    responses = [
        as_(DEV).post(milestones(other), json={"title": "1.0"}),
        as_(DEV).put(milestones(project, number), json={"title": "1.0", "description": "x"}),
    ]

    assert [response.status_code for response in responses] == [201, 200]


UPDATES = [
    ({"title": "2.0"}, {"title": "2.0"}),
    ({"description": ""}, {"description": ""}),
    ({"description": None}, {"description": None}),
    ({"due_date": ""}, {"due_date": None}),
    ({"start_date": None}, {"start_date": None}),
    ({"due_date": "2031-01-01"}, {"due_date": "2031-01-01"}),
    ({"due_date": "2030-01-02"}, {"due_date": "2030-01-02"}),
    ({"state_event": "close"}, {"state": "closed"}),
    ({"state_event": "activate"}, {}),
    ({"state_event": "close", "title": "x", "iid": 9}, {"state": "closed", "title": "x"}),
]


def test_an_update_changes_only_the_sent_fields(project, create, as_):
    client, actual = as_(DEV), []

    for number, (fields, _) in enumerate(UPDATES):
        before = create(f"1.{number}", description="soon", start_date="2030-01-01", due_date="2030-02-01")
        response = client.put(milestones(project, before["id"]), json=fields)
        assert response.status_code == 200
        assert client.get(milestones(project, before["id"])).json == response.json
        actual.append(
            {key: value for key, value in response.json.items() if value != before[key] and key != "updated_at"}
        )

    assert actual == [changed for _, changed in UPDATES]


def test_an_unknown_state_event_is_refused(project, create, as_):
    response = as_(DEV).put(milestones(project, create()["id"]), json={"state_event": "reopen"})

    assert (response.status_code, response.json) == (400, {"error": "state_event does not have a valid value"})


FILTERS = [
    ("", ["soon", "late", "b"]),
    ("state=all", ["soon", "late", "b"]),
    ("state=active", ["soon", "b"]),
    ("state=closed", ["late"]),
    ("iids[]=1&iids[]=3", ["late", "b"]),
    ("iids=2", ["soon"]),
    ("title=soon", ["soon"]),
    ("title=so", []),
    ("search=oon", ["soon"]),
    ("search=harvest", ["b"]),
    ("search=b", ["b"]),
    ("per_page=1&page=2", ["late"]),
]


def test_milestones_are_filtered_and_ordered_by_due_date(project, create, as_):
    late = create("late", due_date="2031-01-01")
    create("soon", due_date="2030-01-01")
    create("b", description="the harvest")
    as_(DEV).put(milestones(project, late["id"]), json={"state_event": "close"})

    actual = [(query, as_(GUS).get(f"{milestones(project)}?{query}").json) for query, _ in FILTERS]

    assert [(query, [milestone["title"] for milestone in listed]) for query, listed in actual] == FILTERS


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("state=open", "state does not have a valid value"),
        ("iids[]=a", "iids is invalid"),
        ("page=a", "page is invalid"),
    ],
)
def test_invalid_filters_are_named(query, text, project, as_):
    response = as_(DEV).get(f"{milestones(project)}?{query}")

    assert (response.status_code, response.json) == (400, {"error": text})


@pytest.mark.parametrize(("days", "expired"), [(-1, True), (0, False), (1, False), (None, False)])
def test_a_milestone_has_expired_after_its_due_date(days, expired, project, create, as_):
    number = create()["id"]
    milestone = db.session.get(Milestone, number)
    milestone.due_date = None if days is None else clock.today().fromordinal(clock.today().toordinal() + days)
    db.session.commit()

    assert as_(DEV).get(milestones(project, number)).json["expired"] is expired


@pytest.mark.parametrize(("number", "body"), [(9999, MISSING), ("a", {"error": "404 Not Found"}), ("9" * 30, MISSING)])
def test_unknown_ids_are_not_found(number, body, project, as_):
    client = as_(DEV)

    responses = [
        client.open(method, milestones(project, number), json={"title": "x"}) for method in ("GET", "PUT", "DELETE")
    ]

    assert [(response.status_code, response.json) for response in responses] == [(404, body)] * 3


def test_a_milestone_of_another_project_is_not_found(project, people, create, as_):
    number = create()["id"]
    other = make_project(namespace=people[DEV])

    assert as_(DEV).get(milestones(other, number)).json == MISSING


def test_a_deleted_milestone_keeps_its_issues(project, create, as_):
    number = create()["id"]
    as_(DEV).post(f"/projects/{project.id}/issues", json={"title": "x", "milestone_id": number})

    response = as_(DEV).delete(milestones(project, number))

    assert (response.status_code, response.data) == (204, b"")
    assert as_(DEV).get(milestones(project, number)).json == MISSING
    assert as_(DEV).get(f"/projects/{project.id}/issues/1").json["milestone"] is None


def test_a_delete_with_an_old_if_unmodified_since_is_412(project, create, as_):
    number = create()["id"]

    response = as_(DEV).delete(milestones(project, number), headers=UNMODIFIED_SINCE_1990)

    assert response.status_code == 412
    assert as_(DEV).get(milestones(project, number)).status_code == 200


@pytest.mark.both_databases
def test_the_list_takes_a_constant_number_of_statements(project, create, as_, count_queries):
    create("0")
    client = as_(RITA)
    # a first request sends statements that later ones do not need; it differs from the measured request
    client.get(milestones(project), query_string={"per_page": 50})

    with count_queries() as one:
        client.get(milestones(project))
    for number in range(1, 10):
        create(str(number))
    with count_queries() as ten:
        response = client.get(milestones(project))

    assert (len(response.json), len(ten)) == (10, len(one))


@pytest.fixture
def send_concurrently(app, as_):
    """Sends one request for each body, eight at a time; returns the responses."""

    def send(method, path, bodies):
        token = as_(DEV).token
        db.session.remove()

        def one(fields):
            browser = app.test_client(use_cookies=False)
            return browser.open(f"/api/v4{path}", method=method, json=fields, headers={"PRIVATE-TOKEN": token})

        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(one, bodies))

    return send


@pytest.mark.both_databases
def test_concurrent_creations_get_distinct_numbers(project, send_concurrently):
    responses = send_concurrently("POST", milestones(project), [{"title": str(number)} for number in range(20)])

    assert sorted(response.json["iid"] for response in responses) == list(range(1, 21))


@pytest.mark.both_databases
def test_only_one_of_several_concurrent_titles_is_created(project, send_concurrently):
    responses = send_concurrently("POST", milestones(project), [{"title": "1.0"}] * 20)

    assert sorted(response.status_code for response in responses) == [201] + [400] * 19
    assert [response.json for response in responses if response.status_code == 400] == [
        refused("title", TITLE_TAKEN_MESSAGE)
    ] * 19


@pytest.mark.both_databases
def test_concurrent_closing_of_a_milestone_is_recorded_once(project, create, send_concurrently):
    number = create()["id"]

    send_concurrently("PUT", milestones(project, number), [{"state_event": "close"}] * 20)

    assert db.session.scalars(select(Event.action).order_by(Event.id)).all() == [Action.CREATED, Action.CLOSED]
