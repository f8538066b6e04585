"""Members of groups and projects through HTTP (supporting resources reference, section 7)."""

from __future__ import annotations

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from project_service.domain.access_levels import Role
from project_service.domain.events.models import Action, Event
from project_service.domain.memberships import Membership
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import (
    DEV,
    GUS,
    MAX,
    NOBODY,
    OLIVE,
    PEOPLE,
    RITA,
    ROLES,
    SAM,
    add_member,
    make_group,
    make_project,
    make_user,
    share,
)

MEMBER = {
    *("id", "name", "username", "state", "avatar_url", "web_url", "access_level", "created_at", "expires_at"),
    "membership_state",
}
UNMODIFIED_SINCE_1990 = {"If-Unmodified-Since": "Mon, 01 Jan 1990 00:00:00 GMT"}
TODAY = clock.today()
TOMORROW, YESTERDAY = TODAY + dt.timedelta(days=1), TODAY - dt.timedelta(days=1)
FORBIDDEN = {"message": "403 Forbidden"}
NOT_FOUND = {"message": "404 Not found"}


def levels(response):
    return {member["username"]: member["access_level"] for member in response.json}


def recorded_events(project):
    """The events of a project: action, username and target type, oldest first."""
    found = db.session.scalars(select(Event).where(Event.project_id == project.id).order_by(Event.id))
    return [(Action(event.action).name, event.author.username, event.target_type) for event in found]


@pytest.fixture
def newcomer(people):
    return make_user("newcomer")


@pytest.fixture
def group_with_members(people, group):
    """The private group ``acme`` in which every user except sam has a role."""
    for name, role in ROLES.items():
        if name != OLIVE:
            add_member(group, people[name], role)
    return group


READERS = [
    ("GET", "", None, "200 200 200 200 200 200 404 401"),
    ("GET", "/all", None, "200 200 200 200 200 200 404 401"),
    ("GET", "/{member}", None, "200 200 200 200 200 200 404 401"),
    ("GET", "/all/{member}", None, "200 200 200 200 200 200 404 401"),
    ("GET", "/999999", None, "404 404 404 404 404 404 404 401"),
]
WRITERS = [
    ("POST", "?user_id={newcomer}&access_level=10", "201 409 409 403 403 403 404 401"),
    ("POST", "?user_id=999999&access_level=10", "404 404 404 403 403 403 404 401"),
    ("POST", "", "400 400 400 400 400 400 400 401"),
    ("PUT", "/{member}?access_level=20", "200 200 200 403 403 403 404 401"),
    ("PUT", "/{member}", "400 400 400 400 400 400 400 401"),
    ("PUT", "/999999?access_level=20", "404 404 404 403 403 403 404 401"),
    ("DELETE", "/{member}", "412 412 412 403 403 403 404 401"),
    ("DELETE", "/999999", "404 404 404 403 403 403 404 401"),
]


def _statuses(as_, method, path):
    responses = [as_(name).open(method, path, headers=UNMODIFIED_SINCE_1990) for name in (*PEOPLE, NOBODY)]
    assert all(response.json == FORBIDDEN for response in responses if response.status_code == 403)
    return " ".join(str(response.status_code) for response in responses)


@pytest.mark.parametrize(("method", "path", "statuses"), [(row[0], row[1], row[3]) for row in READERS] + WRITERS)
def test_permissions_of_project_members_by_role(method, path, statuses, project, newcomer, as_):
    member = make_user("member")
    add_member(project, member, Role.REPORTER)

    actual = _statuses(
        as_, method, f"/projects/{project.id}/members" + path.format(member=member.id, newcomer=newcomer.id)
    )

    assert actual == statuses


@pytest.mark.parametrize(
    ("method", "path", "statuses"),
    [(row[0], row[1], row[3]) for row in READERS]
    + [(method, path, statuses.replace("409 409", "409 403")) for method, path, statuses in WRITERS[:1]]
    + [
        ("POST", "?user_id=999999&access_level=10", "404 404 403 403 403 403 404 401"),
        ("POST", "", "400 400 400 400 400 400 400 401"),
        ("PUT", "/{member}?access_level=20", "200 200 403 403 403 403 404 401"),
        ("PUT", "/{member}", "400 400 400 400 400 400 400 401"),
        ("PUT", "/999999?access_level=20", "404 404 403 403 403 403 404 401"),
        ("DELETE", "/{member}", "412 412 403 403 403 403 404 401"),
        ("DELETE", "/999999", "404 404 403 403 403 403 404 401"),
    ],
)
def test_permissions_of_group_members_by_role(method, path, statuses, group_with_members, newcomer, as_):
    member = make_user("member")
    add_member(group_with_members, member, Role.REPORTER)

    actual = _statuses(
        as_, method, f"/groups/{group_with_members.id}/members" + path.format(member=member.id, newcomer=newcomer.id)
    )

    assert actual == statuses


@pytest.mark.parametrize(("kind", "resource"), [("groups", "Group"), ("projects", "Project")])
def test_members_of_a_hidden_project_or_group_are_not_found(kind, resource, project, group, as_stranger):
    group_or_project = group if kind == "groups" else project

    responses = [
        as_stranger.get(f"/{kind}/{number}/members{rest}")
        for number in (group_or_project.id, 999999)
        for rest in ("", "/all")
    ]

    found = [(response.status_code, response.json) for response in responses]
    assert found == [(404, {"message": f"404 {resource} Not Found"})] * 4


@pytest.mark.parametrize("kind", ["groups", "projects"])
def test_members_are_hidden_from_anonymous_callers(kind, people, as_):
    group_or_project = (make_group if kind == "groups" else make_project)("shown", visibility="public")
    add_member(group_or_project, people[OLIVE], Role.MAINTAINER)

    assert as_(NOBODY).get(f"/{kind}/{group_or_project.id}/members").json == {"message": "401 Unauthorized"}
    assert levels(as_(SAM).get(f"/{kind}/{group_or_project.id}/members")) == {OLIVE: 40}


def test_parameters_are_validated_before_the_project_or_group(project, as_stranger):
    response = as_stranger.get(f"/projects/{project.id}/members?page=a")

    assert (response.status_code, response.json) == (400, {"error": "page is invalid"})


def test_a_member_has_the_documented_keys(project, as_maintainer):
    member = make_user("lin", name="Lin Tao")
    membership = add_member(project, member, Role.DEVELOPER, TOMORROW)

    response = as_maintainer.get(f"/projects/{project.id}/members/{member.id}")

    assert (response.status_code, response.json) == (
        200,
        {
            "id": member.id,
            "name": "Lin Tao",
            "username": "lin",
            "state": "active",
            "avatar_url": f"http://localhost/-/avatars/user/{member.id}",
            "web_url": "http://localhost/lin",
            "access_level": 30,
            "created_at": clock.isoformat(membership.created_at),
            "expires_at": TOMORROW.isoformat(),
            "membership_state": "active",
        },
    )


@pytest.mark.both_databases
def test_direct_members_are_listed_in_order_of_creation(project, as_):
    response = as_(GUS).get(f"/projects/{project.id}/members")

    assert [member["username"] for member in response.json] == [MAX, DEV, RITA, GUS]
    assert {frozenset(member) for member in response.json} == {frozenset(MEMBER)}


@pytest.fixture
def nested_project(people, group):
    """The project ``acme/team/tool``, with direct, inherited and invited members."""
    team = make_group("team", group)
    tool = make_project("tool", team)
    invited, above = make_group("invited"), make_group("above")
    far = make_group("far", above)
    share(tool, invited, Role.DEVELOPER)
    share(group, far, Role.REPORTER)
    add_member(team, people[MAX], Role.DEVELOPER)
    add_member(tool, people[MAX], Role.MAINTAINER)
    add_member(tool, people[RITA], Role.GUEST)
    add_member(team, people[RITA], Role.REPORTER)
    add_member(invited, people[DEV], Role.OWNER)
    add_member(above, people[GUS], Role.MAINTAINER)
    return tool


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/projects/{tool}/members", {MAX: 40, RITA: 10}),
        ("/projects/{tool}/members/all", {OLIVE: 50, MAX: 40, RITA: 20, DEV: 30, GUS: 20}),
        ("/groups/acme%2Fteam/members", {MAX: 30, RITA: 20}),
        ("/groups/acme%2Fteam/members/all", {OLIVE: 50, MAX: 30, RITA: 20, GUS: 20}),
        ("/groups/acme/members/all", {OLIVE: 50, GUS: 20}),
        ("/groups/above%2Ffar/members/all", {GUS: 40}),
    ],
)
def test_all_members_are_listed_once_with_their_highest_role(path, found, nested_project, as_admin):
    response = as_admin.get(path.format(tool=nested_project.id))

    assert (levels(response), len(response.json)) == (found, len(found))


@pytest.mark.parametrize(
    ("person", "direct", "inherited"),
    [(OLIVE, 404, 50), (MAX, 200, 40), (RITA, 200, 20), (DEV, 404, 30), (GUS, 404, 20), (SAM, 404, None)],
)
def test_a_member_is_found_direct_or_inherited(person, direct, inherited, nested_project, people, as_admin):
    members = f"/projects/{nested_project.id}/members"

    direct_response, inherited_response = (
        as_admin.get(f"{members}/{people[person].id}"),
        as_admin.get(f"{members}/all/{people[person].id}"),
    )

    assert direct_response.status_code == direct
    assert inherited_response.json.get("access_level") == inherited
    assert {
        response.json.get("message")
        for response in (direct_response, inherited_response)
        if response.status_code == 404
    } <= {"404 Not found"}


FILTERS = [
    ("query=max", {MAX}),
    ("query=MAX", {MAX}),
    ("query=rita@example.org", {RITA}),
    ("query=nosuch", set()),
    ("user_ids[]={max}&user_ids[]={rita}", {MAX, RITA}),
    ("user_ids={max},{rita}", {MAX, RITA}),
    ("user_ids=999999", set()),
]


@pytest.mark.both_databases
@pytest.mark.parametrize("path", ["", "/all"])
def test_members_are_filtered(path, project, people, as_maintainer):
    ids = {name: people[name].id for name in (MAX, RITA)}

    found = [
        (query, set(levels(as_maintainer.get(f"/projects/{project.id}/members{path}?{query.format(**ids)}"))))
        for query, _ in FILTERS
    ]

    assert found == FILTERS


def test_invalid_filters_of_members_are_refused(project, as_maintainer):
    response = as_maintainer.get(f"/projects/{project.id}/members?user_ids=a")

    assert (response.status_code, response.json) == (400, {"error": "user_ids is invalid"})


@pytest.mark.both_databases
@pytest.mark.parametrize("path", ["", "/all"])
@pytest.mark.parametrize("kind", ["groups", "projects"])
def test_the_list_of_members_takes_a_constant_number_of_queries(
    path, kind, group_with_members, as_admin, count_queries
):
    group_or_project = group_with_members if kind == "groups" else make_project("tool", group_with_members)
    for _ in range(7 if kind == "projects" else 2):
        add_member(group_or_project, make_user(), Role.GUEST)
    counts = []
    for size in (2, 1, 6):  # the first request also stores that the token was used
        with count_queries() as queries:
            as_admin.get(f"/{kind}/{group_or_project.id}/members{path}?per_page={size}")
        counts.append(len(queries))

    assert counts[1] == counts[2]


@pytest.mark.parametrize("encoding", ["json", "data", "query_string"])
def test_a_member_is_added(encoding, project, newcomer, as_maintainer):
    fields = {"user_id": newcomer.id, "access_level": 30, "expires_at": TOMORROW.isoformat()}

    response = as_maintainer.post(f"/projects/{project.id}/members", **{encoding: fields})

    shown = ("id", "username", "access_level", "expires_at")
    assert (response.status_code, set(response.json)) == (201, MEMBER)
    assert [response.json[name] for name in shown] == [newcomer.id, "newcomer", 30, TOMORROW.isoformat()]


def test_a_member_is_added_by_username(group, newcomer, as_):
    response = as_(OLIVE).post(f"/groups/{group.id}/members", json={"username": "NewComer", "access_level": 50})

    assert (response.status_code, response.json["id"], response.json["access_level"]) == (201, newcomer.id, 50)


@pytest.mark.both_databases
def test_several_members_are_added_in_one_request(project, newcomer, people, as_maintainer):
    ids = f"{newcomer.id},{people[SAM].id}"

    response = as_maintainer.post(f"/projects/{project.id}/members", json={"user_id": ids, "access_level": 10})

    assert (response.status_code, response.json) == (201, {"status": "success"})
    added = levels(as_maintainer.get(f"/projects/{project.id}/members"))
    assert (added["newcomer"], added[SAM]) == (10, 10)


def test_several_members_are_added_completely_or_not_at_all(project, newcomer, people, as_maintainer):
    ids = f"{newcomer.id},{people[DEV].id}"

    response = as_maintainer.post(f"/projects/{project.id}/members", json={"user_id": ids, "access_level": 40})

    assert (response.status_code, response.json) == (409, {"message": "Member already exists"})
    assert "newcomer" not in levels(as_maintainer.get(f"/projects/{project.id}/members"))


@pytest.mark.parametrize(
    ("fields", "status", "body"),
    [
        ({}, 400, {"error": "user_id is missing, access_level is missing"}),
        ({"user_id": 1}, 400, {"error": "access_level is missing"}),
        ({"access_level": 10}, 400, {"error": "user_id is missing"}),
        ({"user_id": "me", "access_level": 10}, 400, {"error": "user_id is invalid"}),
        ({"user_id": 1, "access_level": "guest"}, 400, {"error": "access_level is invalid"}),
        ({"user_id": 1, "access_level": 10, "expires_at": "never"}, 400, {"error": "expires_at is invalid"}),
        (
            {"user_id": 1, "username": "sam", "access_level": 10},
            400,
            {"error": "user_id, username are mutually exclusive"},
        ),
        ({"user_id": 999999, "access_level": 10}, 404, {"message": "404 User Not Found"}),
        ({"user_id": "", "access_level": 10}, 404, {"message": "404 User Not Found"}),
        ({"user_id": None, "access_level": 10}, 404, {"message": "404 User Not Found"}),
        ({"username": "nosuch", "access_level": 10}, 404, {"message": "404 User Not Found"}),
    ],
)
def test_invalid_members_are_refused(fields, status, body, project, as_maintainer):
    response = as_maintainer.post(f"/projects/{project.id}/members", json=fields)

    assert (response.status_code, response.json) == (status, body)


@pytest.mark.parametrize(("kind", "allowed"), [("groups", [10, 20, 30, 40, 50]), ("projects", [10, 20, 30, 40])])
def test_only_valid_access_levels_are_accepted(kind, allowed, project, group, as_):
    group_or_project, client = group if kind == "groups" else project, as_(OLIVE)

    responses = {
        level: client.post(
            f"/{kind}/{group_or_project.id}/members", json={"user_id": make_user().id, "access_level": level}
        )
        for level in (-10, 0, 5, 10, 15, 20, 30, 40, 50, 60, 10**18)
    }

    assert [level for level, response in responses.items() if response.status_code == 201] == allowed
    refused = [response.json for level, response in responses.items() if level not in allowed]
    assert refused == [{"message": {"access_level": ["is not included in the list"]}}] * len(refused)


def test_an_expiry_date_in_the_past_is_refused(project, newcomer, people, as_maintainer):
    fields = {"access_level": 10, "expires_at": YESTERDAY.isoformat()}
    members = f"/projects/{project.id}/members"

    responses = [
        as_maintainer.post(members, json=fields | {"user_id": newcomer.id}),
        as_maintainer.put(f"{members}/{people[GUS].id}", json=fields),
    ]

    assert [(response.status_code, response.json) for response in responses] == [
        (400, {"message": {"expires_at": ["cannot be a date in the past"]}})
    ] * 2


@pytest.mark.both_databases
def test_an_existing_member_is_not_added_twice(project, people, as_maintainer):
    response = as_maintainer.post(
        f"/projects/{project.id}/members", json={"user_id": people[DEV].id, "access_level": 30}
    )

    assert (response.status_code, response.json) == (409, {"message": "Member already exists"})


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_level_below_the_inherited_one_is_refused(method, group, newcomer, as_):
    team = make_group("team", group)
    add_member(group, newcomer, Role.DEVELOPER)
    if method == "PUT":
        add_member(team, newcomer, Role.MAINTAINER)
    path = f"/groups/{team.id}/members" + (f"/{newcomer.id}" if method == "PUT" else "")

    response = as_(OLIVE).open(method, path, json={"user_id": newcomer.id, "access_level": 20})

    text = "should be greater than or equal to Developer inherited membership from group Acme"
    assert (response.status_code, response.json) == (400, {"message": {"access_level": [text]}})


def test_a_level_equal_to_the_inherited_one_is_accepted(project, group, newcomer, as_):
    add_member(group, newcomer, Role.DEVELOPER)

    response = as_(MAX).post(f"/projects/{project.id}/members", json={"user_id": newcomer.id, "access_level": 30})

    assert response.status_code == 201


@pytest.fixture
def shared_group(people, group):
    """A group of olive of which max is an owner through a share."""
    friends = make_group("friends")
    add_member(friends, people[MAX], Role.OWNER)
    share(group, friends, Role.OWNER)
    return group


def test_callers_cannot_grant_more_than_their_own_role(project, newcomer, people, as_):
    add_member(project.namespace, people[SAM], Role.MAINTAINER)
    other = make_group("other", db.session.merge(project.namespace), subgroup_creation_level="maintainer")
    add_member(other, people[GUS], Role.OWNER)

    to_own_role = as_(MAX).put(f"/projects/{project.id}/members/{people[DEV].id}", json={"access_level": 40})
    above_own_role = as_(MAX).put(f"/projects/{project.id}/members/{people[DEV].id}", json={"access_level": 50})

    assert (to_own_role.status_code, above_own_role.status_code) == (200, 400)


def test_an_owner_through_a_share_adds_owners(shared_group, newcomer, as_maintainer):
    response = as_maintainer.post(
        f"/groups/{shared_group.id}/members", json={"user_id": newcomer.id, "access_level": 50}
    )

    assert response.status_code == 201


def test_callers_cannot_change_members_with_a_higher_role(project, people, as_maintainer):
    owner = make_user("above")
    membership = add_member(project, owner, Role.MAINTAINER)
    membership.access_level = Role.OWNER
    db.session.commit()
    member = f"/projects/{project.id}/members/{owner.id}"

    responses = [as_maintainer.put(member, json={"access_level": 30}), as_maintainer.delete(member)]

    assert [(response.status_code, response.json) for response in responses] == [(403, FORBIDDEN)] * 2


def test_a_member_is_changed(project, people, as_maintainer):
    member = f"/projects/{project.id}/members/{people[DEV].id}"

    first = as_maintainer.put(member, json={"access_level": 20, "expires_at": TOMORROW.isoformat()})
    unchanged = as_maintainer.put(member, json={"access_level": 30})
    cleared = as_maintainer.put(member, json={"access_level": 30, "expires_at": None})

    shown = [
        (response.status_code, response.json["access_level"], response.json["expires_at"])
        for response in (first, unchanged, cleared)
    ]
    assert shown == [(200, 20, TOMORROW.isoformat()), (200, 30, TOMORROW.isoformat()), (200, 30, None)]


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ({}, {"error": "access_level is missing"}),
        ({"access_level": "x"}, {"error": "access_level is invalid"}),
        ({"access_level": 0}, {"message": {"access_level": ["is not included in the list"]}}),
    ],
)
def test_invalid_changes_of_a_member_are_refused(fields, body, project, people, as_maintainer):
    response = as_maintainer.put(f"/projects/{project.id}/members/{people[DEV].id}", json=fields)

    assert (response.status_code, response.json) == (400, body)


@pytest.mark.parametrize(("person", "status"), [(GUS, 204), (DEV, 204), (SAM, 404)])
def test_members_may_leave_a_project(person, status, project, people, as_):
    response = as_(person).delete(f"/projects/{project.id}/members/{people[person].id}")

    assert (response.status_code, response.data) == (204, b"") or (response.status_code, status) == (404, 404)
    assert as_(person).get(f"/projects/{project.id}").status_code == 404


@pytest.mark.both_databases
def test_the_last_owner_cannot_leave_or_be_demoted(group, people, as_, as_admin):
    member = f"/groups/{group.id}/members/{people[OLIVE].id}"

    responses = [
        client.open(*request)
        for client in (as_(OLIVE), as_admin)
        for request in (("DELETE", member), ("PUT", f"{member}?access_level=40"))
    ]

    assert [(response.status_code, response.json) for response in responses] == [(403, FORBIDDEN)] * 4
    assert levels(as_admin.get(f"/groups/{group.id}/members")) == {OLIVE: 50}


def test_an_owner_may_leave_when_there_is_another(group, people, as_):
    add_member(group, people[MAX], Role.OWNER)

    assert as_(OLIVE).delete(f"/groups/{group.id}/members/{people[OLIVE].id}").status_code == 204
    assert as_(MAX).put(f"/groups/{group.id}/members/{people[MAX].id}?access_level=40").status_code == 403


@pytest.mark.parametrize("other", ["expired", "deleted"])
def test_the_last_owner_cannot_leave_if_the_other_is_expired_or_deleted(other, group, people, as_, as_admin):
    add_member(group, people[MAX], Role.OWNER, YESTERDAY if other == "expired" else None)
    if other == "deleted":
        as_admin.delete(f"/users/{people[MAX].id}")

    assert as_(OLIVE).delete(f"/groups/{group.id}/members/{people[OLIVE].id}").status_code == 403


def test_the_only_owner_of_a_subgroup_may_leave_it(group, people, as_):
    team = make_group("team", group)
    add_member(team, people[SAM], Role.OWNER)

    assert as_(SAM).delete(f"/groups/{team.id}/members/{people[SAM].id}").status_code == 204


@pytest.mark.both_databases
@pytest.mark.parametrize("moment", ["Mon, 01 Jan 1990 00:00:00 GMT", "1990-01-01", "1 January 1990"])
def test_a_removal_with_an_old_if_unmodified_since_is_412(moment, project, people, as_maintainer):
    member = f"/projects/{project.id}/members/{people[DEV].id}"

    response = as_maintainer.delete(member, headers={"If-Unmodified-Since": moment})

    assert (response.status_code, response.json) == (412, {"message": "412 Precondition Failed"})
    assert as_maintainer.get(member).status_code == 200


@pytest.mark.parametrize("moment", ["Fri, 01 Jan 2100 00:00:00 GMT", "when it suits you"])
def test_a_removal_with_a_current_if_unmodified_since_succeeds(moment, project, people, as_maintainer):
    member = f"/projects/{project.id}/members/{people[DEV].id}"

    response = as_maintainer.delete(member, headers={"If-Unmodified-Since": moment})

    assert (response.status_code, response.data, response.content_type) == (204, b"", None)
    again = as_maintainer.delete(member)
    assert (again.status_code, again.json) == (404, NOT_FOUND)


def test_joining_and_leaving_a_project_are_recorded(project, newcomer, people, as_maintainer):
    members = f"/projects/{project.id}/members"

    as_maintainer.post(members, json={"user_id": newcomer.id, "access_level": 10})
    as_maintainer.put(f"{members}/{newcomer.id}", json={"access_level": 20})
    as_maintainer.delete(f"{members}/{newcomer.id}")
    as_maintainer.delete(f"{members}/{people[MAX].id}")

    assert recorded_events(project) == [("JOINED", "newcomer", None), ("LEFT", "newcomer", None), ("LEFT", MAX, None)]


def test_joining_and_leaving_a_group_are_not_recorded(group, newcomer, as_):
    members = f"/groups/{group.id}/members"

    as_(OLIVE).post(members, json={"user_id": newcomer.id, "access_level": 10})
    as_(OLIVE).delete(f"{members}/{newcomer.id}")

    assert db.session.query(Event).count() == 0


def test_a_refused_member_leaves_no_event(project, people, as_maintainer):
    as_maintainer.post(f"/projects/{project.id}/members", json={"user_id": people[DEV].id, "access_level": 10})

    assert recorded_events(project) == []


@pytest.fixture
def expired(project, group, newcomer, people):
    """A user with expired memberships, and a membership in a group whose share with the project has expired."""
    for group_or_project in (project, group):
        add_member(group_or_project, newcomer, Role.MAINTAINER, YESTERDAY)
    formerly_invited = make_group("once")
    add_member(formerly_invited, newcomer, Role.MAINTAINER)
    share(project, formerly_invited, Role.MAINTAINER).expires_at = TODAY
    db.session.commit()
    return newcomer


@pytest.mark.parametrize("day", [YESTERDAY, TODAY])
def test_an_expired_membership_grants_no_access(day, project, newcomer, client_of):
    add_member(project, newcomer, Role.MAINTAINER, day)

    assert client_of(newcomer).get(f"/projects/{project.id}").status_code == 404


def test_expired_memberships_are_not_listed(expired, project, group, client_of, as_maintainer, as_):
    client = client_of(expired)

    for path in (f"/projects/{project.id}", f"/groups/{group.id}"):
        assert client.get(path).status_code == 404
        assert "newcomer" not in levels(as_(OLIVE).get(f"{path}/members"))
        assert "newcomer" not in levels(as_(OLIVE).get(f"{path}/members/all"))
        for member in (f"{path}/members/{expired.id}", f"{path}/members/all/{expired.id}"):
            assert as_(OLIVE).get(member).json == NOT_FOUND
    assert client.get("/projects?membership=true").json == []
    assert [found["full_path"] for found in client.get("/groups").json] == ["once"]


def test_a_user_with_an_expired_membership_can_be_added_again(expired, project, as_maintainer):
    response = as_maintainer.post(f"/projects/{project.id}/members", json={"user_id": expired.id, "access_level": 20})

    assert (response.status_code, response.json["access_level"], response.json["expires_at"]) == (201, 20, None)
    assert recorded_events(project) == [("EXPIRED", "newcomer", None), ("JOINED", "newcomer", None)]


def test_an_expired_inherited_membership_does_not_limit_the_level(expired, group, as_):
    team = make_group("team", group)

    response = as_(OLIVE).post(f"/groups/{team.id}/members", json={"user_id": expired.id, "access_level": 10})

    assert response.status_code == 201


@pytest.mark.both_databases
def test_only_one_of_several_concurrent_requests_adds_the_member(app, project, newcomer, as_maintainer):
    start = threading.Barrier(6)

    def add(number):
        with app.app_context():
            start.wait()
            fields = {"user_id": newcomer.id, "access_level": 10}
            return as_maintainer.post(f"/projects/{project.id}/members", json=fields)

    with ThreadPoolExecutor(6) as pool:
        responses = list(pool.map(add, range(6)))

    assert sorted(response.status_code for response in responses) == [201] + [409] * 5
    assert recorded_events(project) == [("JOINED", "newcomer", None)]


@pytest.mark.both_databases
def test_only_one_of_two_owners_can_leave_concurrently(app, group, people, as_, client_of):
    add_member(group, people[MAX], Role.OWNER)
    clients = {name: as_(name) for name in (OLIVE, MAX)}
    start = threading.Barrier(2)

    def leave(name):
        with app.app_context():
            start.wait()
            return clients[name].delete(f"/groups/{group.id}/members/{people[name].id}").status_code

    with ThreadPoolExecutor(2) as pool:
        statuses = list(pool.map(leave, clients))

    assert sorted(statuses) == [204, 403]
    assert db.session.query(Membership).filter_by(namespace_id=group.id, access_level=Role.OWNER).count() == 1


@pytest.mark.parametrize("kind", ["groups", "projects"])
def test_a_project_or_group_is_shared_and_unshared(kind, project, group, people, as_, as_stranger):
    friends = make_group("friends")
    add_member(friends, people[SAM], Role.MAINTAINER)
    add_member(friends, people[OLIVE], Role.GUEST)
    group_or_project = f"/{kind}/{(group if kind == 'groups' else project).id}"

    shared = as_(OLIVE).post(f"{group_or_project}/share", json={"group_id": friends.id, "group_access": 20})

    assert shared.status_code == 201
    assert as_stranger.get(group_or_project).status_code == 200
    assert levels(as_stranger.get(f"{group_or_project}/members/all"))[SAM] == 20
    assert [found["group_id"] for found in as_(OLIVE).get(group_or_project).json["shared_with_groups"]] == [friends.id]
    assert (
        as_(OLIVE).post(f"{group_or_project}/share", json={"group_id": friends.id, "group_access": 20}).status_code
        == 409
    )
    assert as_(OLIVE).delete(f"{group_or_project}/share/{friends.id}").status_code == 204
    assert as_stranger.get(group_or_project).status_code == 404
    assert as_(OLIVE).delete(f"{group_or_project}/share/{friends.id}").json == NOT_FOUND


@pytest.mark.parametrize("kind", ["groups", "projects"])
@pytest.mark.parametrize(
    ("fields", "status", "body"),
    [
        ({}, 400, {"error": "group_id is missing, group_access is missing"}),
        ({"group_access": 45}, 400, {"error": "group_access does not have a valid value"}),
        ({"group_id": 999999}, 404, {"message": "404 Group Not Found"}),
        ({"expires_at": YESTERDAY.isoformat()}, 400, {"message": {"expires_at": ["cannot be a date in the past"]}}),
    ],
)
def test_invalid_shares_are_refused(kind, fields, status, body, project, group, as_):
    friends = make_group("friends", visibility="public")
    group_or_project = group if kind == "groups" else project
    sent = {"group_id": friends.id, "group_access": 20} | fields if fields else {}

    response = as_(OLIVE).post(f"/{kind}/{group_or_project.id}/share", json=sent)

    assert (response.status_code, response.json) == (status, body)


@pytest.mark.parametrize("kind", ["groups", "projects"])
def test_sharing_with_a_hidden_group_is_refused(kind, project, group, as_):
    group_or_project = group if kind == "groups" else project

    response = as_(OLIVE).post(
        f"/{kind}/{group_or_project.id}/share", json={"group_id": make_group().id, "group_access": 20}
    )

    assert (response.status_code, response.json) == (404, {"message": "404 Group Not Found"})
