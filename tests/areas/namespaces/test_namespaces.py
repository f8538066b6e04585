"""Namespaces through HTTP (namespaces reference)."""

from __future__ import annotations

import datetime as dt
import random

import pytest

from project_service.areas.namespaces import suggestions
from project_service.domain.access_levels import Role
from project_service.domain.accounts.users import BLOCKED
from project_service.domain.memberships import Membership, Share
from project_service.domain.namespaces import Group, namespace_of
from project_service.domain.paths import path_registry
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import (
    ADA,
    DEV,
    GUS,
    MAX,
    NOBODY,
    OLIVE,
    PEOPLE,
    RITA,
    SAM,
    add_member,
    make_group,
    make_project,
    make_user,
    reload,
    share,
)

BASIC_KEYS = ["id", "name", "path", "kind", "full_path", "parent_id", "avatar_url", "web_url"]
MEMBER_KEYS = [*BASIC_KEYS, "billable_members_count"]
PLAN_KEYS = ["plan", "trial_ends_on", "trial"]
OWNER_KEYS = [*BASIC_KEYS, "members_count_with_descendants", "billable_members_count", *PLAN_KEYS]
OWN_NAMESPACE_KEYS = [*MEMBER_KEYS, *PLAN_KEYS]
MISSING = {"message": "404 Namespace Not Found"}
UNAUTHORIZED = {"message": "401 Unauthorized"}
NOT_TAKEN = '{"exists":false,"suggests":[]}'
ADDRESSES = ["/namespaces", "/namespaces/{}", "/namespaces/acme", "/namespaces/acme/exists", "/namespaces/0"]


def paths(response):
    assert response.status_code == 200, response.json
    return [namespace["full_path"] for namespace in response.json]


def show(client, namespace):
    response = client.get(f"/namespaces/{namespace.id}")
    assert response.status_code == 200, response.json
    return response.json


@pytest.fixture
def namespaces(people, group):
    """``acme`` with guest gus and two levels of subgroups, dev a developer of the first; and three more groups."""
    groups = {"acme": group, "tools": make_group("tools", group, name="Acme Tools")}
    groups |= {"deep": make_group("deep", groups["tools"]), "open": make_group("open", visibility="public")}
    groups |= {"lent": make_group("lent"), "other": make_group("other")}
    add_member(group, people[GUS], Role.GUEST)
    add_member(groups["tools"], people[DEV], Role.DEVELOPER)
    add_member(groups["other"], people[OLIVE], Role.MAINTAINER)
    add_member(groups["other"], people[RITA], Role.MINIMAL)
    add_member(groups["open"], people[MAX], Role.OWNER, clock.today())
    share(groups["lent"], group, Role.DEVELOPER)
    return groups


# Permissions


@pytest.mark.parametrize("address", [*ADDRESSES, "/namespaces?page=a", "/namespaces/acme/exists?parent_id=a"])
def test_anonymous_callers_get_401_before_other_errors(address, namespaces, as_):
    response = as_(NOBODY).get(address.format(namespaces["acme"].id))

    assert (response.status_code, response.json) == (401, UNAUTHORIZED)


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_token_needs_a_read_scope(address, namespaces, people, client_of):
    address = address.format(namespaces["acme"].id)
    reading, other, old = (
        client_of(people[ADA], *scopes, expires_at=expires_at)
        for scopes, expires_at in ((["read_api"], None), (["read_user"], None), (["api"], clock.today()))
    )

    assert (
        reading.get(address).status_code
        == reading.head(address).status_code
        == (404 if address.endswith("/0") else 200)
    )
    assert (other.get(address).status_code, other.get(address).json["error"]) == (403, "insufficient_scope")
    assert (old.get(address).status_code, old.get(address).json["error"]) == (401, "invalid_token")


def test_blocked_users_are_refused(namespaces, people, client_of):
    client = client_of(people[OLIVE])
    reload(people[OLIVE]).state = BLOCKED
    db.session.commit()

    responses = [client.get(address.format(namespaces["acme"].id)) for address in ADDRESSES]

    assert {response.json["message"] for response in responses} == {"403 Forbidden - Your account has been blocked."}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("address", ["/namespaces", "/namespaces/acme", "/namespaces/acme/exists"])
def test_namespaces_have_no_write_routes(address, method, namespaces, as_):
    responses = [as_(person).open(method, address) for person in (OLIVE, NOBODY)]

    assert [(response.status_code, response.json) for response in responses] == [
        (405, {"error": "405 Not Allowed"}),
        (401, UNAUTHORIZED),
    ]


# List


@pytest.mark.parametrize(
    ("person", "listed"),
    [
        (SAM, ["sam"]),
        (GUS, ["gus", "acme"]),
        (DEV, ["dev", "acme/tools"]),
        (OLIVE, ["olive", "acme", "other"]),
        (RITA, ["rita"]),
        (MAX, ["max"]),
        (ADA, [*PEOPLE, "acme", "acme/tools", "acme/tools/deep", "open", "lent", "other"]),
    ],
)
def test_namespaces_are_listed_by_role(person, listed, namespaces, as_):
    assert paths(as_(person).get("/namespaces")) == listed


def test_a_user_without_groups_gets_their_own_namespace(people, as_stranger):
    mine = namespace_of(people[SAM])

    response = as_stranger.get("/namespaces")

    assert response.json == [
        {
            "id": mine.id,
            "name": "Sam",
            "path": "sam",
            "kind": "user",
            "full_path": "sam",
            "parent_id": None,
            "avatar_url": None,
            "web_url": "http://localhost/sam",
            "billable_members_count": 1,
            "plan": "default",
            "trial_ends_on": None,
            "trial": False,
        }
    ]


def test_an_owned_group_has_all_keys(namespaces, as_):
    found = show(as_(OLIVE), namespaces["tools"])

    assert found == {
        "id": namespaces["tools"].id,
        "name": "Acme Tools",
        "path": "tools",
        "kind": "group",
        "full_path": "acme/tools",
        "parent_id": namespaces["acme"].id,
        "avatar_url": None,
        "web_url": "http://localhost/groups/acme/tools",
        "members_count_with_descendants": 1,
        "billable_members_count": 1,
        "plan": "default",
        "trial_ends_on": None,
        "trial": False,
    }


@pytest.mark.parametrize(
    ("person", "namespace", "keys"),
    [
        (OLIVE, "acme", OWNER_KEYS),
        (OLIVE, "acme%2Ftools%2Fdeep", OWNER_KEYS),
        (OLIVE, "other", MEMBER_KEYS),
        (OLIVE, "lent", MEMBER_KEYS),
        (OLIVE, "olive", OWN_NAMESPACE_KEYS),
        (GUS, "acme", MEMBER_KEYS),
        (DEV, "acme%2Ftools", MEMBER_KEYS),
        (ADA, "acme", OWNER_KEYS),
        (ADA, "open", OWNER_KEYS),
        (ADA, "sam", OWN_NAMESPACE_KEYS),
        (ADA, "ada", OWN_NAMESPACE_KEYS),
    ],
)
def test_the_keys_of_a_namespace_depend_on_the_role(person, namespace, keys, namespaces, as_):
    shown = as_(person).get(f"/namespaces/{namespace}").json
    listed = [found for found in as_(person).get("/namespaces").json if found["id"] == shown["id"]]

    assert list(shown) == keys
    assert listed in ([shown], [])


def test_administrators_see_member_counts_of_groups_only(namespaces, as_admin):
    found = {namespace["full_path"]: namespace for namespace in as_admin.get("/namespaces").json}

    counted = {path for path, namespace in found.items() if "members_count_with_descendants" in namespace}
    assert counted == {"acme", "acme/tools", "acme/tools/deep", "open", "lent", "other"}
    assert {found[name]["billable_members_count"] for name in PEOPLE} == {1}


def test_renaming_a_user_renames_their_namespace(people, as_admin):
    as_admin.put(f"/users/{people[SAM].id}", json={"name": "Samuel Q", "username": "samuel"})

    found = show(as_admin, namespace_of(people[SAM]))

    assert (found["name"], found["path"], found["full_path"]) == ("Samuel Q", "samuel", "samuel")


def test_a_namespace_has_the_avatar_of_its_user_or_group(people, as_admin):
    namespace_of(people[SAM]).avatar_url = "https://avatars.example.org/sam.png"
    group = make_group(avatar_url="http://localhost/uploads/group.png")

    shown = [show(as_admin, namespace)["avatar_url"] for namespace in (namespace_of(people[SAM]), group)]

    assert shown == ["https://avatars.example.org/sam.png", "http://localhost/uploads/group.png"]


def test_a_group_marked_for_deletion_is_not_listed(namespaces, as_, as_admin):
    as_(OLIVE).delete(f"/groups/{namespaces['tools'].id}")

    assert paths(as_admin.get("/namespaces")) == [*PEOPLE, "acme", "open", "lent", "other"]
    assert as_admin.get(f"/namespaces/{namespaces['deep'].id}").json == MISSING
    assert as_admin.get(f"/namespaces/tools/exists?parent_id={namespaces['acme'].id}").text == NOT_TAKEN


@pytest.mark.both_databases
def test_the_list_is_paginated(namespaces, as_admin):
    response = as_admin.get("/namespaces?per_page=5&page=2&search=")

    shown = {name: response.headers[f"X-{name}"] for name in ("Total", "Total-Pages", "Page", "Next-Page", "Prev-Page")}
    assert paths(response) == ["gus", "sam", "acme", "acme/tools", "acme/tools/deep"]
    assert shown == {"Total": "13", "Total-Pages": "3", "Page": "2", "Next-Page": "3", "Prev-Page": "1"}
    assert 'page=3&per_page=5&search=&top_level_only=false>; rel="next"' in response.headers["Link"]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("per_page=0", "per_page has a value not allowed"),
        ("page=a&per_page=b", "page is invalid, per_page is invalid"),
        ("owned_only=perhaps", "owned_only is invalid"),
        ("search[a]=b", "search is invalid"),
    ],
)
def test_invalid_filters_are_refused(query, error, as_):
    response = as_(SAM).get(f"/namespaces?{query}")

    assert (response.status_code, response.json) == (400, {"error": error})


@pytest.mark.parametrize(
    ("person", "query", "listed"),
    [
        (OLIVE, "owned_only=true", ["olive", "acme"]),
        (OLIVE, "owned_only=false", ["olive", "acme", "other"]),
        (DEV, "owned_only=1", ["dev"]),
        (ADA, "owned_only=true", ["ada"]),
        (DEV, "top_level_only=true", ["dev"]),
        (DEV, "top_level_only=", ["dev", "acme/tools"]),
        (ADA, "top_level_only=true", [*PEOPLE, "acme", "open", "lent", "other"]),
        (OLIVE, "owned_only=true&top_level_only=true&search=acme", ["acme"]),
        (DEV, "search=acme/tools", []),
        (DEV, "search=acme/tools&full_path_search=true", ["acme/tools"]),
        (DEV, "search=acme/tools&full_path_search=false", []),
        (DEV, "search=ME/TOOL&full_path_search=true", ["acme/tools"]),
        (DEV, "search=&full_path_search=true", ["dev", "acme/tools"]),
        (ADA, "search=acme&full_path_search=true", ["acme", "acme/tools", "acme/tools/deep"]),
    ],
)
def test_the_list_is_filtered(person, query, listed, namespaces, as_):
    assert paths(as_(person).get(f"/namespaces?{query}")) == listed


# Search


@pytest.fixture
def searchable_groups(people):
    """Groups with paths and names for searches."""
    parent = make_group("acme-tools", name="Hammers and Saws")
    for path, name in (
        ("wood", "Acme Timber"),
        ("ab", "Short"),
        ("q", "Ab"),
        ("a_c", "Under_score"),
        ("axc", "Underscore"),
        ("percent", "100% Wool"),
        ("percentage", "1000 Wool"),
        ("slash", "back\\slash"),
    ):
        make_group(path, name=name)
    make_group("child", parent, name="Timber Child")


SEARCHES = (
    ("acme", ["acme-tools", "wood"]),
    ("ACME", ["acme-tools", "wood"]),
    ("cme-too", ["acme-tools"]),
    ("  acme  ", ["acme-tools", "wood"]),
    ("timber acme", ["wood"]),
    ("acme   timber", ["wood"]),
    ("acme hammers", []),
    ("tools acme", ["acme-tools"]),
    ('"acme timber"', ["wood"]),
    ('"acme   timber"', ["wood"]),
    ('"timber acme"', []),
    ('"ac" timber', ["wood", "acme-tools/child"]),
    ("ac timber", ["wood", "acme-tools/child"]),
    ("ab", ["ab", "q"]),
    ("AB", ["ab", "q"]),
    ("a", []),
    ("q", ["q"]),
    ("a b", []),
    ("a_c", ["a_c"]),
    ("r_s", ["a_c"]),
    ("%", []),
    ("00%", ["percent"]),
    ("1%w", []),
    ("k\\s", ["slash"]),
    ("back\\\\", []),
    ("acme-tools/child", []),
    ("sam", ["sam"]),
    ("xyzzy", []),
    (
        "",
        [
            *PEOPLE,
            "acme-tools",
            "wood",
            "ab",
            "q",
            "a_c",
            "axc",
            "percent",
            "percentage",
            "slash",
            "acme-tools/child",
        ],
    ),
    (
        " ",
        [
            *PEOPLE,
            "acme-tools",
            "wood",
            "ab",
            "q",
            "a_c",
            "axc",
            "percent",
            "percentage",
            "slash",
            "acme-tools/child",
        ],
    ),
)


@pytest.mark.both_databases
def test_namespaces_are_searched_by_name_and_path(searchable_groups, as_admin):
    found = [(search, paths(as_admin.get("/namespaces", query_string={"search": search}))) for search, _ in SEARCHES]

    assert found == [*SEARCHES]


@pytest.mark.both_databases
def test_a_search_finds_only_listed_namespaces(searchable_groups, as_stranger):
    assert paths(as_stranger.get("/namespaces?search=acme")) == []
    assert paths(as_stranger.get("/namespaces?search=SAM")) == ["sam"]


# Show


@pytest.mark.parametrize(
    ("person", "shown"),
    [
        (SAM, {"sam"}),
        (GUS, {"gus", "acme", "acme/tools", "acme/tools/deep", "lent"}),
        (DEV, {"dev", "acme/tools", "acme/tools/deep"}),
        (OLIVE, {"olive", "acme", "acme/tools", "acme/tools/deep", "lent", "other"}),
        (RITA, {"rita", "other"}),
        (MAX, {"max"}),
        (ADA, {*PEOPLE, "acme", "acme/tools", "acme/tools/deep", "open", "lent", "other"}),
    ],
)
def test_namespaces_are_shown_by_role(person, shown, namespaces, people, as_):
    all_namespaces = [*namespaces.values(), *(namespace_of(user) for user in people.values())]
    full_paths = {namespace.id: namespace.full_path for namespace in all_namespaces}
    client = as_(person)

    by_id = {path: client.get(f"/namespaces/{number}") for number, path in full_paths.items()}
    by_path = {path: client.get(f"/namespaces/{path.replace('/', '%2F').upper()}") for path in full_paths.values()}

    for responses in (by_id, by_path):
        assert {path for path, response in responses.items() if response.status_code == 200} == shown
        assert [response.json for path, response in responses.items() if path not in shown] == [MISSING] * (
            13 - len(shown)
        )
    assert {path: by_path[path].json for path in shown} == {path: by_id[path].json for path in shown}


def test_members_of_a_project_are_not_shown_its_group(namespaces, people, as_stranger):
    add_member(make_project("shop", namespaces["acme"]), people[SAM], Role.OWNER)

    assert as_stranger.get("/namespaces/acme").json == MISSING


@pytest.mark.parametrize(
    "target", ["0", "-5", "4711", "9" * 30, "nothing", "acme%2Fnothing", "acme%2Ftools%2F", "%20", "größe"]
)
def test_unknown_ids_and_paths_are_not_found(target, namespaces, as_admin):
    response = as_admin.get(f"/namespaces/{target}")

    assert (response.status_code, response.json) == (404, MISSING)


def test_an_unencoded_slash_is_an_unknown_route(namespaces, as_admin):
    response = as_admin.get("/namespaces/acme/tools")

    assert (response.status_code, response.json) == (404, {"error": "404 Not Found"})


def test_digits_are_an_id_and_dots_are_part_of_a_path(people, as_admin):
    number, dotted = make_group("123456"), make_group("with.dot")

    assert as_admin.get("/namespaces/123456").json == MISSING
    assert show(as_admin, number)["path"] == "123456"
    assert as_admin.get("/namespaces/with.dot").json["id"] == dotted.id
    assert as_admin.get("/namespaces/with%2Edot").json["id"] == dotted.id


def test_parameters_are_validated_before_the_namespace(as_):
    response = as_(SAM).get("/namespaces/0?requested_hosted_plan[a]=b")

    assert (response.status_code, response.json) == (400, {"error": "requested_hosted_plan is invalid"})


# Existence


EXISTS_RESPONSES = (
    ("/namespace-1/exists", '{"exists":true,"suggests":["namespace-11"]}'),
    ("/with.dot/exists", '{"exists":true,"suggests":["with.dot1"]}'),
    ("/with%2Edot/exists/", '{"exists":true,"suggests":["with.dot1"]}'),
    ("/NAMESPACE-1/exists", '{"exists":true,"suggests":["NAMESPACE-11"]}'),
    ("/sub/exists?parent_id={a}", '{"exists":true,"suggests":["sub1"]}'),
    ("/SUB/exists?parent_id={a}", '{"exists":true,"suggests":["SUB1"]}'),
    ("/sub/exists", NOT_TAKEN),
    ("/namespace-1/exists?parent_id={a}", NOT_TAKEN),
    ("/sub2/exists?parent_id={a}", NOT_TAKEN),
    ("/sub2/exists?parent_id={b}", '{"exists":true,"suggests":["sub21"]}'),
    ("/deep/exists?parent_id={a}", NOT_TAKEN),
    ("/a/exists?parent_id={a}", NOT_TAKEN),
    ("/sub/exists?parent_id=", NOT_TAKEN),
    ("/namespace-1/exists?parent_id=", '{"exists":true,"suggests":["namespace-11"]}'),
    ("/sub/exists?parent_id=0", NOT_TAKEN),
    ("/sub/exists?parent_id=-1", NOT_TAKEN),
    ("/sub/exists?parent_id=4711", NOT_TAKEN),
    ("/sam/exists", '{"exists":true,"suggests":["sam1"]}'),
    ("/Sam/exists", '{"exists":true,"suggests":["Sam1"]}'),
    ("/sam/exists?parent_id={sam}", NOT_TAKEN),
    ("/A%20name/exists", NOT_TAKEN),
    ("/unknown/exists", NOT_TAKEN),
    ("/a%2Fsub/exists", NOT_TAKEN),
    ("/gr%C3%B6%C3%9Fe/exists", NOT_TAKEN),
    ("/%25/exists", NOT_TAKEN),
    ("/namespace_1/exists", NOT_TAKEN),
    ("/%20namespace-1/exists", NOT_TAKEN),
    ("/namespace-1%0A/exists", NOT_TAKEN),
    ("/1234/exists", '{"exists":true,"suggests":["12341"]}'),
)


def test_existing_paths_get_a_suggestion(people, as_stranger):
    a, b = make_group("a", name="A name"), make_group("b")
    for path, parent in (("namespace-1", None), ("with.dot", None), ("1234", None), ("sub2", b)):
        make_group(path, parent)
    make_group("deep", make_group("sub", a))
    ids = {"a": a.id, "b": b.id, "sam": namespace_of(people[SAM]).id}

    responses = [as_stranger.get(f"/namespaces{call.format(**ids)}") for call, _ in EXISTS_RESPONSES]

    assert {response.status_code for response in responses} == {200}
    assert [(call, response.text) for (call, _), response in zip(EXISTS_RESPONSES, responses, strict=True)] == [
        *EXISTS_RESPONSES
    ]


@pytest.mark.parametrize("parent_id", ["a", "1.5", "0x1", "1e3", "9" * 25])
def test_a_parent_id_must_be_a_number(parent_id, as_stranger):
    response = as_stranger.get("/namespaces/sam/exists", query_string={"parent_id": parent_id})

    assert (response.status_code, response.json) == (400, {"error": "parent_id is invalid"})


@pytest.mark.parametrize(
    ("others", "suggested"),
    [
        ([], "acme1"),
        ([("acme1", "x")], "acme2"),
        ([("ACME1", "x"), ("x", "Acme2")], "acme3"),
        ([("x", "acme1")], "acme2"),
        ([("acme2", "x")], "acme1"),
        ([("acme1", "x"), ("acme3", "x")], "acme2"),
        ([("acme11", "x"), ("acme-1", "x"), ("xacme1", "x")], "acme1"),
        ([(f"acme{number}", "x") for number in range(1, 13)], "acme13"),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_a_suggestion_is_not_a_path_or_name_in_use(others, suggested, nested, group, as_stranger):
    parent = make_group("parent") if nested else None
    for path, name in others:
        make_group(path, parent, name=name)

    assert as_stranger.get("/namespaces/acme/exists").json == {"exists": True, "suggests": [suggested]}


def test_like_wildcards_in_a_path_are_literal(people, as_stranger):
    for path in ("a_c", "abc1"):
        make_group(path)

    assert as_stranger.get("/namespaces/a_c/exists").json["suggests"] == ["a_c1"]


def test_the_path_of_a_group_being_deleted_is_suggested(group, as_, as_stranger):
    other = make_group("acme1")
    as_(ADA).delete(f"/groups/{other.id}")

    assert as_stranger.get("/namespaces/acme/exists").json["suggests"] == ["acme1"]


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("acme", "acme"),
        ("ACME", "ACME"),
        ("ada@example.org", "ada"),
        ("ada+x@example.org@y", "adax"),
        ("@example.org", "blank"),
        ("", "blank"),
        ("a b/c", "abc"),
        ("größe", "gre"),
        ("日本", "blank"),
        ("a_b-c.d", "a_b-c.d"),
        ("a.git", "a"),
        ("a.atom.git..", "a"),
        ("a.GIT", "a.GIT"),
        ("a.git.b", "a.git.b"),
        ("--a-", "a-"),
        ("-.git", "blank"),
        (".git", "blank"),
        ("...", "blank"),
        (".a", ".a"),
        ("a\n", "a"),
    ],
)
def test_a_text_is_converted_to_a_path(text, cleaned):
    assert suggestions.clean(text) == cleaned


# Counts


def counts(client, namespace, **query):
    shown = client.get(f"/namespaces/{namespace.id}", query_string=query).json
    return shown["members_count_with_descendants"], shown["billable_members_count"]


@pytest.mark.parametrize(
    ("plan", "billable"),
    [(None, 3), ("none", 3), ("unknown", 3), ("bronze", 3), ("premium", 3), ("gold", 2), ("ultimate", 2), ("", 3)],
)
def test_guests_are_free_on_the_top_plan(plan, billable, people, group, as_):
    add_member(group, people[DEV], Role.DEVELOPER)
    add_member(group, people[GUS], Role.GUEST)
    query = {} if plan is None else {"requested_hosted_plan": plan}

    listed = as_(OLIVE).get("/namespaces", query_string=query | {"search": "acme"}).json

    assert counts(as_(OLIVE), group, **query) == (3, billable)
    assert [found["billable_members_count"] for found in listed] == [billable]


@pytest.mark.parametrize(
    ("plan", "requested", "billable"),
    [("gold", "bronze", 1), ("ultimate", "", 1), ("premium", "gold", 1), ("premium", "free", 2)],
)
def test_guests_are_free_if_the_stored_or_the_requested_plan_is_the_top_plan(
    plan, requested, billable, people, group, as_
):
    reload(group).plan = plan
    add_member(group, people[GUS], Role.GUEST)

    assert counts(as_(OLIVE), group, requested_hosted_plan=requested) == (2, billable)


def test_members_of_subgroups_count_once_and_those_of_projects_as_billable(people, group, as_):
    below = make_group("below", make_group("middle", group))
    project = make_project("shop", below)
    for target, name in ((group, GUS), (below, GUS), (below, DEV), (project, DEV), (project, SAM)):
        add_member(target, people[name], Role.REPORTER)

    assert counts(as_(OLIVE), group) == (3, 4)
    assert counts(as_(OLIVE), below) == (2, 3)


@pytest.mark.both_databases
def test_expired_memberships_are_not_counted(people, group, as_):
    project = make_project("shop", group)
    add_member(group, people[GUS], Role.GUEST, clock.today())
    add_member(project, people[DEV], Role.DEVELOPER, clock.today() - dt.timedelta(days=9))
    add_member(group, people[RITA], Role.REPORTER, clock.today() + dt.timedelta(days=1))

    assert counts(as_(OLIVE), group) == (2, 2)


@pytest.mark.both_databases
@pytest.mark.parametrize("state", [BLOCKED, "deactivated"])
def test_users_who_cannot_sign_in_are_not_counted(state, people, group, as_):
    add_member(group, people[GUS], Role.GUEST)
    reload(people[GUS]).state = state
    db.session.commit()

    assert counts(as_(OLIVE), group) == (1, 1)


@pytest.mark.both_databases
def test_users_being_deleted_are_not_counted(people, group, as_, as_admin):
    add_member(group, people[GUS], Role.GUEST)
    assert as_admin.delete(f"/users/{people[GUS].id}").status_code == 204

    assert counts(as_(OLIVE), group) == (1, 1)


def test_members_of_groups_and_projects_being_deleted_are_not_counted(people, group, as_):
    below, invited = make_group("below", group), make_group("invited")
    project = make_project("shop", group)
    share(group, invited, Role.DEVELOPER)
    for target, name in ((below, DEV), (project, RITA), (invited, GUS)):
        add_member(target, people[name], Role.DEVELOPER)
    before = counts(as_(OLIVE), group)

    for address in (f"/groups/{below.id}", f"/projects/{project.id}", f"/groups/{invited.id}"):
        assert as_(ADA).delete(address).status_code == 202

    assert (before, counts(as_(OLIVE), group)) == ((2, 4), (1, 1))


def test_members_of_invited_groups_and_their_parents_are_billable(people, group, as_):
    above = make_group("above")
    invited = make_group("invited", above)
    invited_subgroup = make_group("aside", invited)
    share(make_project("shop", make_group("middle", group)), invited, Role.DEVELOPER)
    for target, name in ((above, MAX), (invited, DEV), (invited_subgroup, SAM)):
        add_member(target, people[name], Role.DEVELOPER)

    assert counts(as_(OLIVE), group) == (1, 3)


def test_members_of_an_expired_invitation_are_not_counted(people, group, as_):
    invited = make_group("invited")
    add_member(invited, people[DEV], Role.DEVELOPER)
    share(group, invited, Role.DEVELOPER).expires_at = clock.today()
    db.session.commit()

    assert counts(as_(OLIVE), group) == (1, 1)


def test_invited_guests_are_free_on_the_top_plan(people, group, as_):
    invited = make_group("invited")
    add_member(invited, people[DEV], Role.DEVELOPER)
    share(group, invited, Role.GUEST)

    assert counts(as_(OLIVE), group) == (1, 2)
    assert counts(as_(OLIVE), group, requested_hosted_plan="gold") == (1, 1)


def test_a_group_without_members_counts_zero(people, as_admin):
    assert counts(as_admin, make_group()) == (0, 0)


class RandomMemberships:
    """Random groups, projects, users, memberships and shares, with a simple reference implementation of the counts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.users = [make_user() for _ in range(7)]
        self.parents: dict[int, int | None] = {}
        for number in range(7):
            parent = self.random.choice([None, *self.parents])
            group = Group(path=f"g{number}", name=f"G{number}", plan=self.random.choice([None, "premium", "gold"]))
            path_registry.store_namespace(
                group, db.session.get(Group, parent) if parent else None, AssertionError(number)
            )
            self.parents[group.id] = parent
        self.projects = {
            make_project(f"p{number}", db.session.get(Group, home)).id: home
            for number, home in enumerate(self.random.choices(list(self.parents), k=5))
        }
        self.states = {user.id: self.random.choice(["active"] * 4 + [BLOCKED]) for user in self.users}
        for user in self.users:
            user.state = self.states[user.id]
        self.members = self.add_rows(Membership, "user_id", list(self.states), Role.MINIMAL, 16)
        self.shares = self.add_rows(Share, "group_id", list(self.parents), Role.GUEST, 7)
        db.session.commit()

    def add_rows(self, kind, subject_column, candidates, min_level, count):
        """Add random memberships or shares; return them as ``(subject, target_id, is_project, level, active)``."""
        rows = {}
        for _ in range(count):
            is_project = self.random.random() < 0.4
            target_id = self.random.choice(list(self.projects if is_project else self.parents))
            subject = self.random.choice(candidates)
            if (subject, target_id, is_project) in rows or (subject == target_id and kind is Share):
                continue
            level = self.random.choice([level for level in Role if level >= min_level])
            days = self.random.choice([None, None, None, 0, 1])
            expires_at = None if days is None else clock.today() + dt.timedelta(days=days)
            target = {"project_id" if is_project else "namespace_id": target_id}
            db.session.add(kind(**{subject_column: subject}, **target, access_level=level, expires_at=expires_at))
            rows[subject, target_id, is_project] = (subject, target_id, is_project, level, days != 0)
        return list(rows.values())

    def ancestors_and_self(self, group):
        return [group, *self.ancestors_and_self(self.parents[group])] if group else []

    def is_inside(self, target_id, is_project, root):
        return root in self.ancestors_and_self(self.projects[target_id] if is_project else target_id)

    def members_with_descendants(self, root):
        return {
            user
            for user, target_id, is_project, _, active in self.members
            if active and not is_project and self.is_inside(target_id, False, root) and self.states[user] == "active"
        }

    def billable(self, root, plan):
        min_level = Role.REPORTER if plan in ("gold", "ultimate") else Role.GUEST
        invited = {
            above
            for group, target_id, is_project, level, active in self.shares
            if active and level >= min_level and self.is_inside(target_id, is_project, root)
            for above in self.ancestors_and_self(group)
        }
        return {
            user
            for user, target_id, is_project, level, active in self.members
            if active and level >= min_level and self.states[user] == "active"
            if self.is_inside(target_id, is_project, root) or (not is_project and target_id in invited)
        }


@pytest.mark.both_databases
@pytest.mark.parametrize("seed", range(8))
def test_random_memberships_are_counted_correctly(seed, people, as_admin):
    memberships = RandomMemberships(seed)
    groups = {group: db.session.get(Group, group).plan for group in memberships.parents}

    found = {entry["id"]: entry for entry in as_admin.get("/namespaces?per_page=100").json if entry["kind"] == "group"}
    expected = {
        group: (len(memberships.members_with_descendants(group)), len(memberships.billable(group, plan)))
        for group, plan in groups.items()
    }

    counted = {
        group: (entry["members_count_with_descendants"], entry["billable_members_count"])
        for group, entry in found.items()
    }
    assert counted == expected


@pytest.mark.both_databases
@pytest.mark.parametrize("person", [ADA, OLIVE, GUS])
def test_the_list_takes_a_constant_number_of_queries(person, people, as_, count_queries):
    for number in range(24):
        group = make_group(f"group{number}")
        add_member(group, people[OLIVE], Role.OWNER)
        add_member(group, people[GUS], Role.GUEST)
    client, sent = as_(person), []
    for size in (3, 20):
        with count_queries() as queries:
            found = client.get(f"/namespaces?search=group&per_page={size}").json
        sent.append(len(queries))

    assert len(found) == 20
    assert sent[0] == sent[1] <= 8
