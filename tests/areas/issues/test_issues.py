"""Issues and their notes through HTTP."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from project_service.domain.access_levels import Visibility
from project_service.domain.events.models import Action, Event
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import Note
from project_service.domain.tracker.signals import issue_closed
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import ADA, DEV, GUS, MAX, NOBODY, OLIVE, PEOPLE, RITA, SAM, make_project, make_user

MISSING = {"message": "404 Not found"}
NO_PROJECT = {"message": "404 Project Not Found"}
FORBIDDEN = {"message": "403 Forbidden"}
UNMODIFIED_SINCE_1990 = {"If-Unmodified-Since": "Mon, 01 Jan 1990 00:00:00 GMT"}
BLANK = "can't be blank"


def issues(project, iid=None):
    path = f"/projects/{project.id}/issues"
    return path if iid is None else f"{path}/{iid}"


def notes(project, iid, note=None):
    path = f"{issues(project, iid)}/notes"
    return path if note is None else f"{path}/{note}"


@pytest.fixture
def open_issue(project, as_):
    """Creates an issue through the API; returns it."""

    def open_as(person=DEV, **fields):
        response = as_(person).post(issues(project), json={"title": "Wrong"} | fields)
        assert response.status_code == 201, response.json
        return response.json

    return open_as


@pytest.fixture
def comment(project, as_):
    """Creates a note through the API; returns it."""

    def comment_as(person, iid, body="a word", **fields):
        response = as_(person).post(notes(project, iid), json={"body": body} | fields)
        assert response.status_code == 201, response.json
        return response.json

    return comment_as


@pytest.fixture
def milestone(project):
    created = Milestone(project_id=project.id, iid=1, title="1.0")
    db.session.add(created)
    db.session.commit()
    return created


def iids(response):
    assert response.status_code == 200, response.json
    return [issue["iid"] for issue in response.json]


def make_public(project):
    db.session.get(Project, project.id).visibility = Visibility.PUBLIC
    db.session.commit()


# Response keys


def basic(username):
    return {"username": username, "name": username.title(), "state": "active"}


def test_an_issue_has_the_documented_keys(project, people, milestone, as_):
    sent = {
        "title": "  Totals are wrong ",
        "description": "by one",
        "labels": "b, a",
        "assignee_ids": [people[GUS].id],
        "milestone_id": milestone.id,
        "due_date": "2030-01-31",
        "weight": 3,
        "confidential": True,
    }

    response = as_(DEV).post(issues(project), json=sent)

    assert response.status_code == 201
    issue = response.json
    keys = ("iid", "project_id", "title", "description", "state", "closed_at", "closed_by", "labels")
    assert [issue[key] for key in keys] == [
        1,
        project.id,
        "Totals are wrong",
        "by one",
        "opened",
        None,
        None,
        ["a", "b"],
    ]
    keys = ("due_date", "weight", "confidential", "discussion_locked", "issue_type", "user_notes_count")
    assert [issue[key] for key in keys] == ["2030-01-31", 3, True, None, "issue", 0]
    assert (issue["author"]["username"], issue["assignee"]["username"]) == (DEV, GUS)
    assert [user["username"] for user in issue["assignees"]] == [GUS]
    assert (issue["milestone"]["id"], issue["milestone"]["title"]) == (milestone.id, "1.0")
    assert issue["web_url"] == "http://localhost/acme/shop/-/issues/1"
    assert issue["references"] == {"short": "#1", "relative": "#1", "full": "acme/shop#1"}
    assert issue["_links"]["self"] == f"http://localhost/api/v4/projects/{project.id}/issues/1"
    assert issue["created_at"].endswith("Z")
    assert as_(DEV).get(issues(project, 1)).json == issue
    assert as_(DEV).get(issues(project)).json == [issue]


def test_a_note_has_the_documented_keys(project, open_issue, as_):
    issue = open_issue()

    response = as_(RITA).post(notes(project, issue["iid"]), json={"body": "seen", "internal": True})

    note = response.json
    assert response.status_code == 201
    keys = ("type", "body", "attachment", "system", "noteable_id", "noteable_type", "noteable_iid", "confidential")
    assert [note[key] for key in keys] == [None, "seen", None, False, issue["id"], "Issue", issue["iid"], True]
    assert (note["author"]["username"], note["resolvable"], note["commands_changes"]) == (RITA, False, {})
    assert as_(RITA).get(notes(project, 1, note["id"])).json == note
    assert as_(RITA).get(notes(project, 1)).json == [note]


# Permissions


@pytest.mark.parametrize(
    ("method", "statuses"),
    [
        ("list", [200, 200, 200, 200, 200, 200, 404, 401]),
        ("show", [200, 200, 200, 200, 200, 200, 404, 401]),
        ("create", [201, 201, 201, 201, 201, 201, 404, 401]),
        ("update", [200, 200, 200, 200, 200, 403, 404, 401]),
        ("delete", [204, 204, 403, 403, 403, 403, 404, 401]),
        ("comment", [201, 201, 201, 201, 201, 201, 404, 401]),
        ("list notes", [200, 200, 200, 200, 200, 200, 404, 401]),
        ("change note", [200, 200, 200, 403, 403, 403, 404, 401]),
        ("delete note", [204, 204, 204, 403, 403, 403, 404, 401]),
    ],
)
def test_permissions_in_a_private_project_by_role(method, statuses, project, open_issue, comment, as_):
    actual = []
    for person in (*PEOPLE, NOBODY):
        iid = open_issue(DEV)["iid"]
        note = comment(OLIVE, iid)["id"]
        if method in ("change note", "delete note"):
            db.session.get(Note, note).author_id = None
            db.session.commit()
        client = as_(person)
        response = {
            "list": lambda client=client: client.get(issues(project)),
            "show": lambda client=client, iid=iid: client.get(issues(project, iid)),
            "create": lambda client=client: client.post(issues(project), json={"title": "x"}),
            "update": lambda client=client, iid=iid: client.put(issues(project, iid), json={"title": "x"}),
            "delete": lambda client=client, iid=iid: client.delete(issues(project, iid)),
            "comment": lambda client=client, iid=iid: client.post(notes(project, iid), json={"body": "x"}),
            "list notes": lambda client=client, iid=iid: client.get(notes(project, iid)),
            "change note": lambda client=client, iid=iid, note=note: client.put(
                notes(project, iid, note), json={"body": "x"}
            ),
            "delete note": lambda client=client, iid=iid, note=note: client.delete(notes(project, iid, note)),
        }[method]()
        actual.append(response.status_code)

    assert actual == statuses


def test_authors_and_assignees_may_close_and_edit(project, open_issue, people, as_):
    own = open_issue(GUS)["iid"]
    assigned = open_issue(RITA, assignee_ids=[people[GUS].id])["iid"]

    responses = [
        as_(GUS).put(issues(project, iid), json={"state_event": "close", "title": "x"}) for iid in (own, assigned)
    ]

    assert [(response.status_code, response.json["state"], response.json["title"]) for response in responses] == [
        (200, "closed", "x")
    ] * 2


def test_fields_reserved_for_reporters_are_ignored_for_others(project, milestone, people, open_issue, as_):
    fields = {"labels": "a", "assignee_ids": [people[GUS].id], "milestone_id": milestone.id}
    fields |= {"due_date": "2030-01-01", "weight": 2}

    created = open_issue(GUS, **fields)
    updated = as_(GUS).put(issues(project, created["iid"]), json=fields | {"discussion_locked": True}).json

    keys = ("labels", "assignees", "milestone", "due_date", "weight", "discussion_locked")
    assert [created[key] for key in keys] == [[], [], None, None, None, None]
    assert [updated[key] for key in keys] == [[], [], None, None, None, None]


def test_non_members_may_create_and_comment_in_public_projects(project, open_issue, comment, as_):
    make_public(project)

    iid = open_issue(SAM)["iid"]
    comment(SAM, iid)

    assert as_(SAM).put(issues(project, iid), json={"title": "y"}).status_code == 200
    assert as_(SAM).delete(issues(project, iid)).status_code == 403


@pytest.mark.parametrize("level", ["disabled", "private"])
def test_disabled_and_members_only_issues_are_refused_to_non_members(level, project, open_issue, as_):
    open_issue()
    make_public(project)
    db.session.get(Project, project.id).issues_access_level = level
    db.session.commit()

    paths = (issues(project), issues(project, 1), notes(project, 1))
    actual = {name: [as_(name).get(path).status_code for path in paths] for name in (SAM, GUS)}

    assert actual == {SAM: [403] * 3, GUS: [403 if level == "disabled" else 200] * 3}


def test_an_archived_project_is_read_only(project, open_issue, as_):
    iid = open_issue()["iid"]
    as_(OLIVE).post(f"/projects/{project.id}/archive")

    responses = [
        as_(DEV).post(issues(project), json={"title": "x"}),
        as_(DEV).put(issues(project, iid), json={"title": "x"}),
        as_(DEV).post(notes(project, iid), json={"body": "x"}),
    ]

    assert [(response.status_code, response.json) for response in responses] == [(403, FORBIDDEN)] * 3
    assert as_(DEV).get(issues(project, iid)).status_code == 200


# Confidential issues


@pytest.mark.parametrize("person", [SAM, GUS])
def test_a_confidential_issue_is_hidden_from_other_users(person, project, open_issue, comment, as_):
    make_public(project)
    iid = open_issue(RITA, confidential=True)["iid"]
    note = comment(RITA, iid)["id"]
    client = as_(person)

    responses = [
        client.get(issues(project, iid)),
        client.put(issues(project, iid), json={"title": "x"}),
        client.get(notes(project, iid)),
        client.post(notes(project, iid), json={"body": "x"}),
        client.get(notes(project, iid, note)),
        client.delete(notes(project, iid, note)),
    ]

    assert [(response.status_code, response.json) for response in responses] == [(404, MISSING)] * 6
    listed = client.get(issues(project))
    assert (listed.json, listed.headers["X-Total"]) == ([], "0")


def test_reporters_author_and_assignees_see_a_confidential_issue(project, open_issue, people, as_):
    make_public(project)
    sams = open_issue(SAM, confidential=True)["iid"]
    for_gus = open_issue(RITA, confidential=True, assignee_ids=[people[GUS].id])["iid"]
    plain = open_issue(DEV)["iid"]

    actual = {name: set(iids(as_(name).get(issues(project)))) for name in (SAM, GUS, RITA, DEV, ADA)}

    every_iid = {sams, for_gus, plain}
    assert actual == {SAM: {sams, plain}, GUS: {for_gus, plain}, RITA: every_iid, DEV: every_iid, ADA: every_iid}
    assert [as_(SAM).get(issues(project, iid)).status_code for iid in (sams, for_gus, plain)] == [200, 404, 200]


def test_internal_notes_are_visible_to_reporters(project, open_issue, comment, as_):
    iid = open_issue(GUS)["iid"]
    secret, plain = comment(RITA, iid, internal=True)["id"], comment(RITA, iid)["id"]

    actual = {name: [note["id"] for note in as_(name).get(notes(project, iid)).json] for name in (GUS, RITA)}

    assert actual == {GUS: [plain], RITA: [plain, secret]}
    assert [as_(name).get(notes(project, iid, secret)).status_code for name in (GUS, RITA)] == [404, 200]


@pytest.mark.parametrize("name", ["internal", "confidential"])
def test_only_reporters_write_internal_notes(name, open_issue, comment):
    iid = open_issue(GUS)["iid"]

    written = {person: comment(person, iid, **{name: True})["confidential"] for person in (GUS, RITA, DEV)}

    assert written == {GUS: False, RITA: True, DEV: True}


# Lists


@pytest.fixture
def filterable_issues(project, people, milestone, open_issue, as_):
    """Four issues with different values for every filter."""
    open_issue(DEV, title="Apples rot", labels="fruit,red", milestone_id=milestone.id, due_date="2030-01-02")
    open_issue(RITA, title="Cherries are missing", description="like apples", labels="red", due_date="2030-01-01")
    open_issue(GUS, title="Bread is hard", confidential=True)
    open_issue(RITA, title="Dishes", assignee_ids=[people[GUS].id, people[DEV].id], issue_type="incident")
    as_(DEV).put(issues(project, 2), json={"state_event": "close"})
    old = dt.datetime(2020, 5, 5, 12, tzinfo=dt.UTC)
    for issue in db.session.scalars(select(Issue).where(Issue.iid == 1)):
        issue.created_at = issue.updated_at = old
    db.session.commit()
    return {"dev": people[DEV].id, "gus": people[GUS].id}


FILTERS = [
    ("", [4, 3, 2, 1]),
    ("state=opened", [4, 3, 1]),
    ("state=closed", [2]),
    ("state=all", [4, 3, 2, 1]),
    ("labels=red", [2, 1]),
    ("labels=red,fruit", [1]),
    ("labels[]=red&labels[]=fruit", [1]),
    ("labels=None", [4, 3]),
    ("labels=Any", [2, 1]),
    ("labels=blue", []),
    ("milestone=1.0", [1]),
    ("milestone=None", [4, 3, 2]),
    ("milestone=Any", [1]),
    ("iids[]=1&iids[]=4", [4, 1]),
    ("iids=2", [2]),
    ("author_id={dev}", [1]),
    ("author_username=RITA", [4, 2]),
    ("assignee_id={gus}", [4]),
    ("assignee_id=None", [3, 2, 1]),
    ("assignee_id=Any", [4]),
    ("assignee_id=any", [4]),
    ("assignee_id=", [4, 3, 2, 1]),
    ("assignee_username=dev", [4]),
    ("assignee_username[]=dev", [4]),
    ("scope=created_by_me", [1]),
    ("scope=assigned_to_me", [4]),
    ("scope=all", [4, 3, 2, 1]),
    ("search=apples", [2, 1]),
    ("search=hard%20bread", [3]),
    ("search=100%25", []),
    ("confidential=true", [3]),
    ("confidential=no", [4, 2, 1]),
    ("issue_type=incident", [4]),
    ("created_before=2020-05-06", [1]),
    ("created_after=2020-05-06", [4, 3, 2]),
    ("updated_before=2020-05-05T12:00:00Z", [1]),
    ("updated_after=2020-05-06T00:00:00%2B02:00", [4, 3, 2]),
    ("sort=asc", [1, 2, 3, 4]),
    ("order_by=title", [4, 2, 3, 1]),
    ("order_by=title&sort=asc", [1, 3, 2, 4]),
    ("order_by=due_date&sort=asc", [2, 1, 3, 4]),
    ("order_by=due_date", [1, 2, 4, 3]),
    ("order_by=updated_at", [2, 4, 3, 1]),
    ("state=opened&labels=red&author_id={dev}", [1]),
    ("per_page=2&page=2", [2, 1]),
]


@pytest.mark.both_databases
def test_issues_are_filtered_and_ordered(filterable_issues, project, as_):
    client = as_(DEV)

    actual = [
        (query, iids(client.get(f"{issues(project)}?{query.format(**filterable_issues)}"))) for query, _ in FILTERS
    ]

    assert actual == FILTERS


REFUSED_FILTERS = [
    ("state=open", "state does not have a valid value"),
    ("scope=mine", "scope does not have a valid value"),
    ("sort=up", "sort does not have a valid value"),
    ("order_by=id", "order_by does not have a valid value"),
    ("author_id=a", "author_id is invalid"),
    ("assignee_id=a", "assignee_id should be an integer, 'None' or 'Any'"),
    ("confidential=perhaps", "confidential is invalid"),
    ("created_after=soon", "created_after is invalid"),
    ("iids[]=a", "iids is invalid"),
    ("per_page=0", "per_page has a value not allowed"),
]


def test_invalid_filters_are_named(project, as_):
    client = as_(DEV)

    responses = {query: client.get(f"{issues(project)}?{query}") for query, _ in REFUSED_FILTERS}

    assert [(query, response.json) for query, response in responses.items()] == [
        (query, {"error": text}) for query, text in REFUSED_FILTERS
    ]
    assert {response.status_code for response in responses.values()} == {400}


@pytest.mark.both_databases
def test_the_list_of_issues_takes_a_constant_number_of_statements(
    project, people, milestone, open_issue, as_, count_queries
):
    full = {"labels": "a,b", "assignee_ids": [people[GUS].id], "milestone_id": milestone.id}
    open_issue(DEV, **full)
    client = as_(RITA)
    client.get(f"{issues(project)}?per_page=99")

    with count_queries() as one:
        client.get(issues(project))
    for number in range(9):
        open_issue(PEOPLE[number % 6], **full)
    with count_queries() as ten:
        response = client.get(issues(project))

    assert (len(response.json), len(ten)) == (10, len(one))


@pytest.mark.both_databases
def test_the_list_of_notes_takes_a_constant_number_of_statements(project, open_issue, comment, as_, count_queries):
    iid = open_issue()["iid"]
    comment(DEV, iid)
    client = as_(RITA)
    client.get(f"{notes(project, iid)}?per_page=99")

    with count_queries() as one:
        client.get(notes(project, iid))
    for number in range(9):
        comment(PEOPLE[number % 6], iid)
    with count_queries() as ten:
        response = client.get(notes(project, iid))

    assert (len(response.json), len(ten)) == (10, len(one))


# Create, update, delete


REFUSED_ISSUES = [
    ({}, {"error": "title is missing"}),
    ({"title": ""}, {"message": {"title": [BLANK]}}),
    ({"title": " \n"}, {"message": {"title": [BLANK]}}),
    ({"title": None}, {"message": {"title": [BLANK]}}),
    ({"title": "x" * 256}, {"message": {"title": ["is too long (maximum is 255 characters)"]}}),
    (
        {"title": "x", "description": "x" * 1_000_001},
        {"message": {"description": ["is too long (maximum is 1000000 characters)"]}},
    ),
    ({"title": "x", "weight": -1}, {"message": {"weight": ["must be greater than or equal to 0"]}}),
    (
        {"title": "x", "labels": f"fine,{'x' * 256}"},
        {"message": {"labels": ["title is too long (maximum is 255 characters)"]}},
    ),
    ({"title": "x", "confidential": "perhaps"}, {"error": "confidential is invalid"}),
    ({"title": "x", "due_date": "soon"}, {"error": "due_date is invalid"}),
    ({"title": "x", "assignee_ids": ["a"]}, {"error": "assignee_ids is invalid"}),
    ({"title": "x", "issue_type": "epic"}, {"error": "issue_type does not have a valid value"}),
    ({"title": {"a": 1}}, {"error": "title is invalid"}),
]


def test_an_invalid_issue_is_refused_with_reasons(project, as_):
    client = as_(DEV)

    responses = [client.post(issues(project), json=fields) for fields, _ in REFUSED_ISSUES]

    assert [(response.status_code, response.json) for response in responses] == [
        (400, body) for _, body in REFUSED_ISSUES
    ]
    assert db.session.scalars(select(Issue)).all() == []


def test_an_existing_overlong_label_can_still_be_used(project, people, as_):
    created = Issue(project_id=project.id, iid=1, title="old", author_id=people[DEV].id, labels=["x" * 256])
    db.session.add(created)
    db.session.commit()

    def change(**fields):
        return as_(DEV).put(f"{issues(project)}/1", json=fields).status_code

    assert [change(title="new"), change(state_event="close"), change(add_labels="fine")] == [200, 200, 200]
    assert [change(add_labels="y" * 256), change(remove_labels="x" * 256)] == [400, 200]
    assert as_(DEV).get(f"{issues(project)}/1").json["labels"] == ["fine"]


def test_an_unknown_milestone_is_not_found(project, people, as_):
    foreign = Milestone(project_id=make_project(namespace=people[SAM]).id, iid=1, title="theirs")
    db.session.add(foreign)
    db.session.commit()

    response = as_(DEV).post(issues(project), json={"title": "x", "milestone_id": foreign.id})

    assert (response.status_code, response.json) == (404, {"message": "404 Milestone Not Found"})


def test_only_users_who_see_the_project_are_assigned(project, people, open_issue):
    issue = open_issue(DEV, assignee_ids=[people[SAM].id, people[GUS].id, 99999, 0])

    assert [user["username"] for user in issue["assignees"]] == [GUS]


@pytest.mark.parametrize("labels", ["b,a", ["b", "a"], " a , b ,,a"])
def test_labels_come_as_text_or_as_an_array(labels, open_issue):
    assert open_issue(labels=labels)["labels"] == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        ("data", {"title": "x", "labels": "a,b", "confidential": "true"}),
        ("data", {"title": "x", "labels[]": ["a", "b"], "confidential": "1"}),
        ("query_string", {"title": "x", "labels": "a,b", "confidential": "yes"}),
    ],
)
def test_parameters_in_forms_and_queries_equal_json(content, fields, project, as_):
    response = as_(DEV).post(issues(project), **{content: fields})

    assert (response.status_code, response.json["labels"], response.json["confidential"]) == (201, ["a", "b"], True)


UPDATES = [
    ({"title": " y "}, {"title": "y"}),
    ({"description": None}, {"description": None}),
    ({"description": ""}, {"description": ""}),
    ({"labels": "c"}, {"labels": ["c"]}),
    ({"labels": ""}, {"labels": []}),
    ({"labels": []}, {"labels": []}),
    ({"labels": ["b", "c"]}, {"labels": ["b", "c"]}),
    ({"add_labels": "c,a"}, {"labels": ["a", "b", "c"]}),
    ({"remove_labels": "a,z"}, {"labels": ["b"]}),
    ({"add_labels": ["c"], "remove_labels": ["b"]}, {"labels": ["a", "c"]}),
    ({"labels": "", "add_labels": "c"}, {"labels": ["c"]}),
    ({"assignee_ids": []}, {"assignees": []}),
    ({"assignee_ids": [0]}, {"assignees": []}),
    ({"assignee_id": 0}, {"assignees": []}),
    ({"assignee_ids": ""}, {"assignees": []}),
    ({"milestone_id": 0}, {"milestone": None}),
    ({"milestone_id": ""}, {"milestone": None}),
    ({"due_date": ""}, {"due_date": None}),
    ({"due_date": "2031-02-03"}, {"due_date": "2031-02-03"}),
    ({"weight": None}, {"weight": None}),
    ({"weight": 0}, {"weight": 0}),
    ({"confidential": True}, {"confidential": True}),
    ({"discussion_locked": True}, {"discussion_locked": True}),
    ({"issue_type": "incident"}, {"issue_type": "incident"}),
    ({"title": "y", "iid": 7, "project_id": 9, "state": "closed"}, {"title": "y"}),
]


def test_an_update_changes_only_the_sent_fields(project, people, milestone, open_issue, as_):
    full = {"description": "long", "labels": "a,b", "assignee_ids": [people[GUS].id], "milestone_id": milestone.id}
    full |= {"due_date": "2030-01-01", "weight": 5}
    client, derived, actual = as_(RITA), {"updated_at", "assignee"}, []

    for fields, _ in UPDATES:
        before = open_issue(DEV, **full)
        response = client.put(issues(project, before["iid"]), json=fields)
        assert response.status_code == 200
        assert client.get(issues(project, before["iid"])).json == response.json
        actual.append(
            {key: value for key, value in response.json.items() if before[key] != value and key not in derived}
        )

    assert actual == [changed for _, changed in UPDATES]


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        (
            {},
            {
                "error": "assignee_ids, confidential, description, discussion_locked, due_date, labels, add_labels, "
                "remove_labels, milestone_id, state_event, title, issue_type are missing, "
                "at least one parameter must be provided"
            },
        ),
        ({"title": ""}, {"message": {"title": [BLANK]}}),
        ({"title": None}, {"message": {"title": [BLANK]}}),
        ({"state_event": "shut"}, {"error": "state_event does not have a valid value"}),
    ],
)
def test_an_invalid_update_is_refused_with_reasons(fields, body, project, open_issue, as_):
    open_issue()

    response = as_(DEV).put(issues(project, 1), json=fields)

    assert (response.status_code, response.json) == (400, body)
    assert as_(DEV).get(issues(project, 1)).json["title"] == "Wrong"


def test_an_issue_is_closed_and_reopened(project, open_issue, as_):
    open_issue()
    signals = []
    with issue_closed.connected_to(lambda issue, by: signals.append((issue.iid, by.username))):
        closed = as_(DEV).put(issues(project, 1), json={"state_event": "close"}).json
        again = as_(MAX).put(issues(project, 1), json={"state_event": "close"}).json
        opened = as_(DEV).put(issues(project, 1), json={"state_event": "reopen"}).json

    assert (closed["state"], closed["closed_by"]["username"]) == ("closed", DEV)
    assert closed["closed_at"] is not None
    assert (again["closed_at"], again["closed_by"]) == (closed["closed_at"], closed["closed_by"])
    assert (opened["state"], opened["closed_at"], opened["closed_by"]) == ("opened", None, None)
    assert as_(DEV).get(issues(project, 1)).json == opened
    assert signals == [(1, DEV)]
    assert [note["body"] for note in as_(DEV).get(notes(project, 1)).json] == ["reopened", "closed"]


def test_an_issue_is_deleted_with_its_notes(project, open_issue, comment, as_):
    open_issue()
    comment(DEV, 1)

    response = as_(OLIVE).delete(issues(project, 1))

    assert (response.status_code, response.data) == (204, b"")
    assert as_(OLIVE).get(issues(project, 1)).status_code == 404
    assert db.session.scalars(select(Note)).all() == []


def test_a_delete_with_an_old_if_unmodified_since_is_412(project, open_issue, as_):
    open_issue()

    response = as_(OLIVE).delete(issues(project, 1), headers=UNMODIFIED_SINCE_1990)

    assert (response.status_code, response.json) == (412, {"message": "412 Precondition Failed"})
    assert as_(OLIVE).get(issues(project, 1)).status_code == 200


@pytest.mark.parametrize(("iid", "body"), [("9", MISSING), ("a", {"error": "404 Not Found"}), ("9" * 30, MISSING)])
def test_unknown_ids_are_not_found(iid, body, project, as_):
    responses = [as_(DEV).get(issues(project, iid)), as_(DEV).get(notes(project, iid))]

    assert [(response.status_code, response.json) for response in responses] == [(404, body)] * 2


def test_issues_of_another_project_are_not_found(project, people, open_issue, comment, as_):
    open_issue()
    note = comment(DEV, 1)["id"]
    other = make_project(namespace=people[DEV])
    as_(DEV).post(issues(other), json={"title": "theirs"})

    assert as_(DEV).get(notes(other, 1, note)).status_code == 404
    assert as_(DEV).get(issues(other, 1)).json["title"] == "theirs"


@pytest.mark.both_databases
def test_numbers_are_not_reused(project, open_issue, as_):
    open_issue()
    open_issue()
    as_(OLIVE).delete(issues(project, 2))

    assert open_issue()["iid"] == 3


def test_a_refused_issue_uses_no_number(project, open_issue, as_):
    as_(DEV).post(issues(project), json={"title": ""})

    assert open_issue()["iid"] == 1


@pytest.fixture
def send_concurrently(app, as_):
    """Sends a request twenty times, eight at a time; returns the responses."""

    def send(method, path, **fields):
        token = as_(DEV).token
        db.session.remove()

        def one(_number):
            browser = app.test_client(use_cookies=False)
            return browser.open(f"/api/v4{path}", method=method, json=fields, headers={"PRIVATE-TOKEN": token})

        with ThreadPoolExecutor(8) as pool:
            responses = list(pool.map(one, range(20)))
        assert {response.status_code for response in responses} <= {200, 201}
        return responses

    return send


@pytest.mark.both_databases
def test_concurrent_creations_get_distinct_numbers(project, send_concurrently):
    responses = send_concurrently("POST", issues(project), title="x")

    assert sorted(response.json["iid"] for response in responses) == list(range(1, 21))


# Notes


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ({}, {"error": "body is missing"}),
        ({"body": ""}, {"message": {"note": [BLANK]}}),
        ({"body": None}, {"message": {"note": [BLANK]}}),
        ({"body": "x" * 1_000_001}, {"message": {"note": ["is too long (maximum is 1000000 characters)"]}}),
    ],
)
def test_an_invalid_note_is_refused_with_reasons(fields, body, project, open_issue, comment, as_):
    open_issue()
    note = comment(DEV, 1)["id"]

    responses = [as_(DEV).post(notes(project, 1), json=fields), as_(DEV).put(notes(project, 1, note), json=fields)]

    assert [(response.status_code, response.json) for response in responses] == [(400, body)] * 2
    assert as_(DEV).get(notes(project, 1, note)).json["body"] == "a word"


def test_a_note_is_updated_and_deleted_by_its_author(project, open_issue, comment, as_):
    open_issue()
    note = comment(GUS, 1)["id"]

    changed = as_(GUS).put(notes(project, 1, note), json={"body": "another"})
    shown = as_(GUS).get(notes(project, 1, note))
    count = as_(GUS).get(issues(project, 1)).json["user_notes_count"]
    deleted = as_(GUS).delete(notes(project, 1, note))

    assert (changed.status_code, changed.json["body"], changed.json["noteable_iid"]) == (200, "another", 1)
    assert shown.json == changed.json
    assert (deleted.status_code, deleted.data, count) == (204, b"", 1)
    assert as_(GUS).get(notes(project, 1, note)).json == MISSING
    assert as_(GUS).get(issues(project, 1)).json["user_notes_count"] == 0


def test_system_notes_cannot_be_changed(project, open_issue, as_):
    open_issue()
    as_(DEV).put(issues(project, 1), json={"state_event": "close"})
    (note,) = as_(DEV).get(notes(project, 1)).json

    responses = [
        as_(name).open(method, notes(project, 1, note["id"]), json={"body": "x"})
        for name in (DEV, OLIVE)
        for method in ("PUT", "DELETE")
    ]

    assert note["system"] is True
    assert [(response.status_code, response.json) for response in responses] == [(403, FORBIDDEN)] * 4


NOTE_FILTERS = [
    ("", ["closed", "second", "first"]),
    ("sort=asc", ["first", "second", "closed"]),
    ("order_by=updated_at", ["first", "closed", "second"]),
    ("activity_filter=only_comments", ["second", "first"]),
    ("activity_filter=only_activity", ["closed"]),
    ("per_page=1&page=2", ["second"]),
]


@pytest.mark.both_databases
def test_notes_are_filtered_and_ordered(project, open_issue, comment, as_):
    open_issue()
    first = comment(DEV, 1, "first")["id"]
    comment(DEV, 1, "second")
    as_(DEV).put(issues(project, 1), json={"state_event": "close"})
    db.session.get(Note, first).updated_at = clock.now()
    db.session.commit()

    actual = [(query, as_(DEV).get(f"{notes(project, 1)}?{query}").json) for query, _ in NOTE_FILTERS]

    assert [(query, [note["body"] for note in listed]) for query, listed in actual] == NOTE_FILTERS


@pytest.mark.both_databases
def test_a_comment_updates_its_issue(project, open_issue, comment, as_):
    open_issue(title="older")
    open_issue(title="newer")

    comment(DEV, 1)

    assert iids(as_(DEV).get(f"{issues(project)}?order_by=updated_at")) == [1, 2]


@pytest.mark.both_databases
def test_concurrent_comments_are_counted(project, open_issue, send_concurrently, as_):
    open_issue()

    send_concurrently("POST", notes(project, 1), body="x")

    assert as_(DEV).get(issues(project, 1)).json["user_notes_count"] == 20


@pytest.mark.both_databases
def test_concurrent_closing_of_an_issue_is_recorded_once(project, open_issue, send_concurrently, as_):
    open_issue()

    send_concurrently("PUT", issues(project, 1), state_event="close")

    assert db.session.scalars(select(Event.action).order_by(Event.id)).all() == [Action.CREATED, Action.CLOSED]
    assert [note["body"] for note in as_(DEV).get(notes(project, 1)).json] == ["closed"]


def test_an_issue_without_author_is_shown(project, open_issue, comment, client_of, as_, run_jobs):
    leaver = make_user("leaver")
    make_public(project)
    client = client_of(leaver)
    client.post(issues(project), json={"title": "x"})
    client.post(notes(project, 1), json={"body": "y"})

    as_(ADA).delete(f"/users/{leaver.id}")
    run_jobs()

    assert as_(DEV).get(issues(project, 1)).json["author"]["username"] == "ghost"
    assert [note["author"]["username"] for note in as_(DEV).get(notes(project, 1)).json] == ["ghost"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"labels": ",".join(map(str, range(501)))}, {"labels": ["are too many (maximum is 500)"]}),
        ({"assignee_ids": list(range(1, 202))}, {"assignees": ["total must be less than or equal to 200"]}),
    ],
    ids=["labels", "assignees"],
)
def test_too_many_labels_and_assignees_are_refused(fields, message, as_maintainer, project, open_issue):
    iid = open_issue()["iid"]

    created = as_maintainer.post(issues(project), json={"title": "Many"} | fields)
    changed = as_maintainer.put(issues(project, iid), json=fields)

    assert [(answer.status_code, answer.json) for answer in (created, changed)] == [(400, {"message": message})] * 2
