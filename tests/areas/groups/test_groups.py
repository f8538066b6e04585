"""Groups through HTTP (supporting resources reference, section 5)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from urllib.parse import quote

import pytest

from project_service.domain.access_levels import Role
from project_service.domain.memberships import Membership
from project_service.domain.namespaces import Group
from project_service.domain.paths import path_registry
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import (
    ADA,
    DEV,
    GUS,
    NOBODY,
    OLIVE,
    PEOPLE,
    ROLES,
    SAM,
    add_member,
    make_group,
    make_project,
    make_user,
    reload,
    share,
)

GROUP = {
    *("id", "web_url", "name", "path", "description", "visibility", "share_with_group_lock"),
    *("require_two_factor_authentication", "two_factor_grace_period", "project_creation_level", "auto_devops_enabled"),
    *("subgroup_creation_level", "emails_disabled", "mentions_disabled", "lfs_enabled", "default_branch_protection"),
    *("avatar_url", "request_access_enabled", "full_name", "full_path", "created_at", "parent_id"),
    *("default_branch", "default_branch_protection_defaults", "emails_enabled", "shared_runners_setting"),
    *("wiki_access_level", "lock_duo_features_enabled"),
}
WITHOUT_PROJECTS = GROUP | {
    *("membership_lock", "prevent_forking_outside_group", "prevent_sharing_groups_outside_hierarchy"),
    *("service_access_tokens_expiration_enforced", "enabled_git_access_protocol", "shared_with_groups"),
}
DETAIL = WITHOUT_PROJECTS | {"projects", "shared_projects"}
REFUSED = {
    401: {"message": "401 Unauthorized"},
    403: {"message": "403 Forbidden"},
    404: {"message": "404 Group Not Found"},
}
PATH = "can contain only letters, digits, '_', '-' and '.'. Cannot start with '-' or end in '.', '.git' or '.atom'."
NAME = (
    "can contain only letters, digits, emojis, '_', '.', dash, space, parenthesis. "
    "It must start with letter, digit, emoji or '_'."
)
TAKEN = "has already been taken"
TOO_LONG = "is too long (maximum is 255 characters)"
UNCHANGED = {"If-Unmodified-Since": "Mon, 01 Jan 1990 00:00:00 GMT"}


def creation_error(**messages):
    """Return the error of a new group in the format of GitLab."""
    inside = ", ".join(f':{name}=>["{text}"]' for name, text in messages.items())
    return {"message": f"Failed to save group {{{inside}}}"}


def paths(response):
    return [group["full_path"] for group in response.json]


@pytest.fixture
def group_with_members(people, group):
    """The private group ``acme`` in which every user except sam has a role."""
    for name, role in ROLES.items():
        if name != OLIVE:
            add_member(group, people[name], role)
    return group


@pytest.mark.parametrize(
    ("method", "path", "json", "statuses"),
    [
        ("GET", "/groups", None, "200 200 200 200 200 200 200 200"),
        ("GET", "/groups/{group}", None, "200 200 200 200 200 200 404 404"),
        ("GET", "/groups/{group}/projects", None, "200 200 200 200 200 200 404 404"),
        ("GET", "/groups/{group}/subgroups", None, "200 200 200 200 200 200 404 404"),
        ("GET", "/groups/{group}/descendant_groups", None, "200 200 200 200 200 200 404 404"),
        ("GET", "/groups/999999", None, "404 404 404 404 404 404 404 404"),
        ("POST", "/groups", {"name": "x", "path": "new-{person}"}, "201 201 201 201 201 201 201 401"),
        (
            "POST",
            "/groups?parent_id={group}",
            {"name": "x", "path": "new-{person}"},
            "201 201 201 403 403 403 404 401",
        ),
        (
            "POST",
            "/groups?parent_id={closed}",
            {"name": "x", "path": "new-{person}"},
            "201 201 403 403 403 403 404 401",
        ),
        ("POST", "/groups?parent_id=999999", {"name": "x", "path": "xx"}, "404 404 404 404 404 404 404 401"),
        ("POST", "/groups", {}, "400 400 400 400 400 400 400 401"),
        ("PUT", "/groups/{group}", {"description": "new"}, "200 200 403 403 403 403 404 401"),
        ("PUT", "/groups/{group}", {"visibility": "secret"}, "400 400 400 400 400 400 400 401"),
        ("PUT", "/groups/999999", {"description": "new"}, "404 404 404 404 404 404 404 401"),
        ("DELETE", "/groups/{group}", None, "412 412 403 403 403 403 404 401"),
        ("DELETE", "/groups/999999", None, "404 404 404 404 404 404 404 401"),
        (
            "POST",
            "/groups/{group}/share",
            {"group_id": "{shown}", "group_access": "30"},
            "201 409 403 403 403 403 404 401",
        ),
        ("DELETE", "/groups/{group}/share/{invited}", None, "204 404 403 403 403 403 404 401"),
    ],
)
def test_permissions_of_groups_by_role(method, path, json, statuses, group_with_members, as_):
    closed = make_group("closed", group_with_members, subgroup_creation_level="owner")
    invited, shown = make_group("invited"), make_group("shown", visibility="public")
    share(group_with_members, invited, Role.GUEST)
    ids = {"group": group_with_members.id, "closed": closed.id, "invited": invited.id, "shown": shown.id}
    sent = {
        name: None if json is None else {key: text.format(person=name, **ids) for key, text in json.items()}
        for name in (*PEOPLE, NOBODY)
    }

    responses = [
        as_(name).open(
            method, path.format(**ids), json=sent[name], headers=UNCHANGED if path == "/groups/{group}" else {}
        )
        for name in (*PEOPLE, NOBODY)
    ]

    assert " ".join(str(response.status_code) for response in responses) == statuses
    refused = [response for response in responses if response.status_code in REFUSED and "/share/" not in path]
    assert all(response.json == REFUSED[response.status_code] for response in refused)


@pytest.mark.parametrize(
    ("visibility", "statuses"),
    [("private", "404 404 404 401"), ("internal", "200 404 404 401"), ("public", "200 200 200 401")],
)
def test_visibility_of_groups_for_non_members(visibility, statuses, as_, people, client_of):
    group = make_group("shown", visibility=visibility)
    outsider = client_of(make_user("outsider", external=True))

    responses = [client.get(f"/groups/{group.id}") for client in (as_(SAM), outsider, as_(NOBODY))]

    written = as_(NOBODY).put(f"/groups/{group.id}", json={"description": "x"})
    assert " ".join(str(response.status_code) for response in (*responses, written)) == statuses


def test_changing_a_visible_group_without_permission_is_403(people, as_stranger):
    group = make_group("shown", visibility="internal")

    responses = [as_stranger.put(f"/groups/{group.id}", json={"name": "x"}), as_stranger.delete(f"/groups/{group.id}")]

    assert [(response.status_code, response.json) for response in responses] == [(403, REFUSED[403])] * 2


def test_members_of_a_subgroup_or_project_see_the_parent_groups(people, as_):
    top = make_group("top")
    middle = make_group("middle", top)
    add_member(make_project("deep", middle), people[SAM], Role.GUEST)
    add_member(make_group("side", top), people[GUS], Role.GUEST)

    assert [as_(name).get(f"/groups/{parent.id}").status_code for name in (SAM, GUS) for parent in (top, middle)] == [
        *(200, 200),
        *(200, 404),
    ]


@pytest.mark.parametrize(
    "path", ["acme", "ACME", "acme%2Ftools", "Acme%2FTOOLS", "acme%2Fwith.dot", "acme%2Fwith%2Edot"]
)
def test_a_group_is_found_by_its_encoded_path(path, group, as_admin):
    for below in ("tools", "with.dot"):
        make_group(below, group)

    response = as_admin.get(f"/groups/{path}")

    full_path = path.lower().replace("%2f", "/").replace("%2e", ".")
    assert (response.status_code, response.json["full_path"]) == (200, full_path)


@pytest.mark.parametrize("path", ["/groups/acme/tools", "/groups/sam", "/groups/-5", "/groups/acme%2F", "/groups/%20"])
def test_an_unknown_group_is_not_found(path, group, as_admin):
    make_group("tools", group)

    assert as_admin.get(path).status_code == 404


def test_a_path_of_digits_is_always_an_id(people, as_admin):
    group = make_group("999999")

    assert as_admin.get("/groups/999999").status_code == 404
    assert as_admin.get(f"/groups/{group.id}").json["path"] == "999999"


def test_a_new_group_has_the_documented_keys(people, as_stranger):
    response = as_stranger.post("/groups", json={"name": "Acme", "path": "acme"})

    stored = db.session.get(Group, response.json["id"])
    assert response.status_code == 201
    assert response.json == {
        "id": stored.id,
        "web_url": "http://localhost/groups/acme",
        "name": "Acme",
        "path": "acme",
        "description": "",
        "visibility": "private",
        "share_with_group_lock": False,
        "require_two_factor_authentication": False,
        "two_factor_grace_period": 48,
        "project_creation_level": "developer",
        "auto_devops_enabled": None,
        "subgroup_creation_level": "maintainer",
        "emails_disabled": None,
        "mentions_disabled": None,
        "lfs_enabled": True,
        "default_branch_protection": 2,
        "avatar_url": None,
        "request_access_enabled": True,
        "full_name": "Acme",
        "full_path": "acme",
        "created_at": clock.isoformat(stored.created_at),
        "parent_id": None,
        "default_branch": None,
        "default_branch_protection_defaults": {
            "allowed_to_push": [{"access_level": 40}],
            "allow_force_push": False,
            "allowed_to_merge": [{"access_level": 40}],
            "code_owner_approval_required": False,
            "developer_can_initial_push": False,
        },
        "emails_enabled": True,
        "shared_runners_setting": "enabled",
        "wiki_access_level": "enabled",
        "lock_duo_features_enabled": False,
        "membership_lock": False,
        "prevent_forking_outside_group": False,
        "prevent_sharing_groups_outside_hierarchy": False,
        "service_access_tokens_expiration_enforced": True,
        "enabled_git_access_protocol": None,
        "shared_with_groups": [],
        "projects": [],
        "shared_projects": [],
    }


def test_the_creator_of_a_group_is_its_owner(people, as_stranger):
    group_id = as_stranger.post("/groups", json={"name": "Acme", "path": "acme"}).json["id"]

    members = as_stranger.get(f"/groups/{group_id}/members").json

    assert [(member["username"], member["access_level"]) for member in members] == [(SAM, 50)]


def test_a_subgroup_has_the_full_name_of_its_parent(group_with_members, as_maintainer):
    response = as_maintainer.post(
        "/groups", json={"name": "Tools", "path": "tools", "parent_id": group_with_members.id}
    )

    shown = ("full_path", "full_name", "parent_id", "web_url")
    assert [response.json[name] for name in shown] == [
        "acme/tools",
        "Acme / Tools",
        group_with_members.id,
        "http://localhost/groups/acme/tools",
    ]


def test_all_documented_fields_of_a_group_can_be_set(people, as_stranger):
    fields = {
        "description": "what it is",
        "visibility": "internal",
        "share_with_group_lock": True,
        "require_two_factor_authentication": True,
        "two_factor_grace_period": 2**33,
        "project_creation_level": "noone",
        "auto_devops_enabled": True,
        "subgroup_creation_level": "owner",
        "emails_disabled": True,
        "mentions_disabled": True,
        "lfs_enabled": False,
        "request_access_enabled": False,
        "default_branch_protection": 0,
    }

    response = as_stranger.post("/groups", json={"name": "Acme", "path": "acme"} | fields)

    assert (response.status_code, response.json | fields) == (201, response.json)
    changed = as_stranger.put(f"/groups/{response.json['id']}", json={"description": None, "lfs_enabled": True})
    assert (changed.json["description"], changed.json["lfs_enabled"], set(changed.json)) == (None, True, DETAIL)


def test_users_who_cannot_create_groups_are_refused(people, group, client_of):
    small = make_user("small", can_create_group=False)
    add_member(group, small, Role.MAINTAINER)
    client = client_of(small)

    top = client.post("/groups", json={"name": "x", "path": "xx"})
    below = client.post("/groups", json={"name": "x", "path": "xx", "parent_id": group.id})

    assert (top.status_code, top.json, below.status_code) == (403, REFUSED[403], 201)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"name": None}, "name is missing"),
        ({"path": None}, "path is missing"),
        ({"name": None, "path": None}, "name is missing, path is missing"),
        ({"visibility": "secret"}, "visibility does not have a valid value"),
        ({"parent_id": "acme"}, "parent_id is invalid"),
        ({"lfs_enabled": "perhaps"}, "lfs_enabled is invalid"),
        ({"project_creation_level": "everyone"}, "project_creation_level does not have a valid value"),
        ({"default_branch_protection": 9}, "default_branch_protection does not have a valid value"),
    ],
)
def test_invalid_parameters_of_a_new_group_are_refused(fields, text, people, as_stranger):
    sent = {name: value for name, value in ({"name": "x", "path": "xx"} | fields).items() if value is not None}

    response = as_stranger.post("/groups", json=sent)

    assert (response.status_code, response.json) == (400, {"error": text})


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        ({"path": "acme"}, {"path": TAKEN}),
        ({"path": "ACME"}, {"path": TAKEN}),
        ({"path": "sam"}, {"path": TAKEN}),
        ({"path": "Sam"}, {"path": TAKEN}),
        ({"path": "a b"}, {"path": PATH}),
        ({"path": "-dash"}, {"path": PATH}),
        ({"path": "dot."}, {"path": PATH}),
        ({"path": "x.git"}, {"path": PATH}),
        ({"path": "x.ATOM"}, {"path": PATH}),
        ({"path": "a/b"}, {"path": PATH}),
        ({"path": "größe"}, {"path": PATH}),
        ({"path": ".."}, {"path": PATH}),
        ({"path": ""}, {"path": "can't be blank"}),
        ({"path": "a"}, {"path": "is too short (minimum is 2 characters)"}),
        ({"path": "p" * 256}, {"path": TOO_LONG}),
        ({"path": "api"}, {"path": "api is a reserved name"}),
        ({"path": "API"}, {"path": "API is a reserved name"}),
        ({"path": "robots.txt"}, {"path": "robots.txt is a reserved name"}),
        ({"name": ""}, {"name": "can't be blank"}),
        ({"name": "n" * 256}, {"name": TOO_LONG}),
        ({"name": "<script>alert(1)</script>"}, {"name": NAME}),
        ({"name": "-dash"}, {"name": NAME}),
        ({"name": "(parenthesis"}, {"name": NAME}),
        ({"name": "tab\there"}, {"name": NAME}),
        ({"name": "a/b", "path": "a b"}, {"name": NAME, "path": PATH}),
    ],
)
def test_a_new_group_that_breaks_a_rule_is_refused(fields, messages, group, as_stranger):
    response = as_stranger.post("/groups", json={"name": "x", "path": "xx"} | fields)

    assert (response.status_code, response.json) == (400, creation_error(**messages))


@pytest.mark.parametrize(
    ("path", "messages"),
    [
        ("tools", {"path": TAKEN}),
        ("TOOLS", {"path": TAKEN}),
        ("shop", {"path": TAKEN}),
        ("tree", {"path": "tree is a reserved name"}),
        ("-", {"path": f'is too short (minimum is 2 characters)", "{PATH}", "- is a reserved name'}),
    ],
)
def test_a_subgroup_that_breaks_a_rule_is_refused(path, messages, project, group, as_):
    make_group("tools", group)

    response = as_(OLIVE).post("/groups", json={"name": "x", "path": path, "parent_id": group.id})

    assert (response.status_code, response.json) == (400, creation_error(**messages))


@pytest.mark.parametrize(
    "fields",
    [
        {"path": "p" * 255},
        {"path": "_.A-z.9"},
        {"path": "12"},
        {"name": "n" * 255},
        {"name": "Ünï 名前 🦊 (a_b.c-d)"},
        {"name": "🦊"},
        {"name": "_x"},
        {"name": "9 lives"},
    ],
)
def test_unusual_but_valid_groups_are_created(fields, people, as_stranger):
    response = as_stranger.post("/groups", json={"name": "x", "path": "xx"} | fields)

    assert (response.status_code, response.json | fields) == (201, response.json)
    assert as_stranger.get(f"/groups/{response.json['id']}").json["full_name"] == response.json["name"]


@pytest.mark.parametrize("path", ["api", "projects", "acme", "sam"])
def test_a_top_level_path_is_free_in_another_group(path, group, as_):
    response = as_(OLIVE).post("/groups", json={"name": "x", "path": path, "parent_id": group.id})

    assert (response.status_code, response.json["full_path"]) == (201, f"acme/{path}")


def test_two_groups_may_have_the_same_name(group, as_stranger):
    assert as_stranger.post("/groups", json={"name": group.name, "path": "other"}).status_code == 201


@pytest.mark.both_databases
def test_groups_nest_twenty_deep(people, as_admin):
    parent = None
    for number in range(1, 20):
        parent = make_group(f"level{number}", parent)

    last = as_admin.post("/groups", json={"name": "x", "path": "level20", "parent_id": parent.id})
    beyond = as_admin.post("/groups", json={"name": "x", "path": "level21", "parent_id": last.json["id"]})

    assert (last.status_code, last.json["full_path"].count("/")) == (201, 19)
    assert (beyond.status_code, beyond.json) == (400, creation_error(parent_id="has too deep level of nesting"))


@pytest.mark.parametrize(
    ("parent_visibility", "visibility", "status"),
    [
        ("private", "private", 201),
        ("private", "internal", 400),
        ("private", "public", 400),
        ("internal", "internal", 201),
        ("internal", "public", 400),
        ("public", "private", 201),
        ("public", "public", 201),
    ],
)
def test_a_subgroup_cannot_be_more_visible_than_its_parent(parent_visibility, visibility, status, people, as_admin):
    parent = make_group("parent", visibility=parent_visibility)

    response = as_admin.post(
        "/groups", json={"name": "x", "path": "xx", "parent_id": parent.id, "visibility": visibility}
    )

    text = f"{visibility} is not allowed since the parent group has a {parent_visibility} visibility."
    assert response.status_code == status
    assert status == 201 or response.json == creation_error(visibility_level=text)


def test_a_subgroup_cannot_become_more_visible_than_its_parent(group, as_):
    below = make_group("tools", group)

    response = as_(OLIVE).put(f"/groups/{below.id}", json={"visibility": "public"})

    text = "public is not allowed since the parent group has a private visibility."
    assert (response.status_code, response.json) == (400, {"message": {"visibility_level": [text]}})


@pytest.mark.parametrize(
    ("below", "text"),
    [
        ("group", "private is not allowed since there are sub-groups with higher visibility."),
        ("project", "private is not allowed since this group contains projects with higher visibility."),
    ],
)
def test_a_group_cannot_become_less_visible_than_its_contents(below, text, people, as_admin):
    parent = make_group("parent", visibility="public")
    (make_group if below == "group" else make_project)("below", parent, visibility="internal")

    response = as_admin.put(f"/groups/{parent.id}", json={"visibility": "private"})

    assert (response.status_code, response.json) == (400, {"message": {"visibility_level": [text]}})
    assert as_admin.put(f"/groups/{parent.id}", json={"visibility": "internal"}).json["visibility"] == "internal"


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        ({"path": "other"}, {"path": [TAKEN]}),
        ({"path": "OTHER"}, {"path": [TAKEN]}),
        ({"path": "sam"}, {"path": [TAKEN]}),
        ({"path": "a b"}, {"path": [PATH]}),
        ({"path": "dashboard"}, {"path": ["dashboard is a reserved name"]}),
        ({"path": "p" * 256}, {"path": [TOO_LONG]}),
        ({"name": "-"}, {"name": [NAME]}),
        ({"name": ""}, {"name": ["can't be blank"]}),
    ],
)
def test_a_change_of_a_group_that_breaks_a_rule_changes_nothing(fields, messages, group, as_):
    make_group("other")

    response = as_(OLIVE).put(f"/groups/{group.id}", json=fields | {"description": "kept?"})

    stored = reload(group)
    assert (response.status_code, response.json) == (400, {"message": messages})
    assert (stored.path, stored.name, stored.description) == ("acme", "Acme", "")


def test_an_empty_change_of_a_group_is_accepted(group, as_):
    response = as_(OLIVE).put(f"/groups/{group.id}", json={"unknown": 1})

    assert (response.status_code, response.json["full_path"]) == (200, "acme")


@pytest.mark.both_databases
def test_a_renamed_group_moves_its_subgroups_and_projects(group, as_admin):
    middle = make_group("middle", group)
    deep = make_group("deep", middle)
    project = make_project("Tool.x", deep)

    response = as_admin.put(f"/groups/{group.id}", json={"path": "New.Path", "name": "New Name"})

    assert (response.json["full_path"], response.json["full_name"]) == ("New.Path", "New Name")
    for moved, path, name in (
        (middle, "New.Path/middle", "New Name / Middle"),
        (deep, "New.Path/middle/deep", "New Name / Middle / Deep"),
    ):
        result = as_admin.get(f"/groups/{quote(path, safe='')}").json
        assert (result["id"], result["full_path"], result["full_name"]) == (moved.id, path, name)
    result = as_admin.get("/projects/New.Path%2Fmiddle%2Fdeep%2FTool.x").json
    assert (result["id"], result["path_with_namespace"]) == (project.id, "New.Path/middle/deep/Tool.x")
    assert result["name_with_namespace"] == "New Name / Middle / Deep / Tool.x"
    old = [
        "/groups/acme",
        "/groups/acme%2Fmiddle",
        "/groups/acme%2Fmiddle%2Fdeep",
        "/projects/acme%2Fmiddle%2Fdeep%2FTool.x",
    ]
    assert [as_admin.get(path).status_code for path in old] == [404] * 4


@pytest.mark.both_databases
def test_the_old_path_of_a_renamed_group_is_free_at_once(group, as_):
    client = as_(OLIVE)
    client.put(f"/groups/{group.id}", json={"path": "moved"})

    assert client.post("/groups", json={"name": "x", "path": "Acme"}).status_code == 201
    assert client.put(f"/groups/{group.id}", json={"path": "acme"}).json == {"message": {"path": [TAKEN]}}


@pytest.mark.both_databases
def test_a_group_may_change_the_case_of_its_path(project, group, as_):
    response = as_(OLIVE).put(f"/groups/{group.id}", json={"path": "ACME"})

    assert (response.status_code, response.json["full_path"]) == (200, "ACME")
    assert as_(OLIVE).get("/projects/acme%2Fshop").json["path_with_namespace"] == "ACME/shop"


@pytest.mark.both_databases
def test_a_subgroup_is_not_renamed_onto_a_project(project, group, as_):
    below = make_group("tools", group)

    response = as_(OLIVE).put(f"/groups/{below.id}", json={"path": "Shop"})

    assert (response.status_code, response.json) == (400, {"message": {"path": [TAKEN]}})


def test_a_group_shows_its_projects_and_shares(project, group, as_):
    shared, invited = make_project("lent"), make_group("invited")
    share(shared, group, Role.DEVELOPER)
    share(group, invited, Role.REPORTER)

    response = as_(OLIVE).get(f"/groups/{group.id}")

    assert set(response.json) == DETAIL
    assert [one["id"] for one in response.json["projects"]] == [project.id]
    assert [one["id"] for one in response.json["shared_projects"]] == [shared.id]
    assert response.json["shared_with_groups"] == [
        {
            "group_id": invited.id,
            "group_name": "Invited",
            "group_full_path": "invited",
            "group_access_level": 20,
            "expires_at": None,
        }
    ]


def test_a_group_is_shown_without_projects_on_request(group, as_):
    response = as_(OLIVE).get(f"/groups/{group.id}?with_projects=false")

    assert set(response.json) == WITHOUT_PROJECTS


def test_a_group_shows_only_visible_projects(people, as_):
    group = make_group("mixed", visibility="public")
    make_project("hidden", group)
    shown = make_project("shown", group, visibility="public")

    responses = [as_(name).get(f"/groups/{group.id}").json["projects"] for name in (SAM, NOBODY)]

    assert [[project["id"] for project in response] for response in responses] == [[shown.id]] * 2


@pytest.fixture
def various_groups(people):
    """Groups of all kinds, in which dev develops ``work/team`` and owns ``mine``."""
    groups = {name: make_group(name, visibility=name) for name in ("private", "internal", "public")}
    groups["work"] = make_group("work")
    groups["team"] = make_group("team", groups["work"])
    groups["below"] = make_group("below", groups["team"])
    groups["aside"] = make_group("aside", groups["work"])
    groups["mine"] = make_group("mine", name="Zebra")
    groups["lent"] = make_group("lent")
    add_member(groups["team"], people[DEV], Role.DEVELOPER)
    add_member(groups["mine"], people[DEV], Role.OWNER)
    share(groups["lent"], groups["mine"], Role.REPORTER)
    return groups


GROUPS_OF_DEV = ["work/team/below", "lent", "work/team", "work", "mine"]


LISTED = [
    (NOBODY, "", ["public"]),
    (SAM, "", []),
    (SAM, "all_available=true", ["internal", "public"]),
    (DEV, "", GROUPS_OF_DEV),
    (DEV, "all_available=true", ["work/team/below", "internal", "lent", "public", "work/team", "work", "mine"]),
    (DEV, "owned=true", ["mine"]),
    (DEV, "min_access_level=10", ["work/team/below", "lent", "work/team", "mine"]),
    (DEV, "min_access_level=30", ["work/team/below", "work/team", "mine"]),
    (DEV, "min_access_level=40", ["mine"]),
    (DEV, "top_level_only=true", ["lent", "work", "mine"]),
    (DEV, "search=team", ["work/team/below", "work/team"]),
    (DEV, "search=Zebra", ["mine"]),
    (DEV, "search=work/team", ["work/team/below", "work/team"]),
    (DEV, "sort=desc", GROUPS_OF_DEV[::-1]),
    (DEV, "order_by=path", ["work/team/below", "lent", "mine", "work/team", "work"]),
    (DEV, "order_by=id&sort=desc", ["lent", "mine", "work/team/below", "work/team", "work"]),
    (DEV, "per_page=2&page=2", ["work/team", "work"]),
    (ADA, "per_page=3", ["work/aside", "work/team/below", "internal"]),
    (ADA, "owned=true", []),
    (ADA, "all_available=false", []),
]


@pytest.mark.both_databases
def test_groups_are_listed_with_filters_and_orders(various_groups, as_):
    clients = {person: as_(person) for person in (ADA, DEV, SAM, NOBODY)}

    results = [(person, query, paths(clients[person].get(f"/groups?{query}"))) for person, query, _ in LISTED]

    assert results == LISTED


def test_skip_groups_excludes_groups(various_groups, as_):
    skipped = f"skip_groups[]={various_groups['mine'].id}&skip_groups[]={various_groups['lent'].id}"

    assert paths(as_(DEV).get(f"/groups?{skipped}")) == ["work/team/below", "work/team", "work"]


@pytest.mark.both_databases
def test_groups_with_the_same_name_are_ordered_by_id(people, as_admin):
    for path in ("bb", "aa", "cc"):
        make_group(path, name="Same")

    assert paths(as_admin.get("/groups?sort=desc")) == paths(as_admin.get("/groups")) == ["bb", "aa", "cc"]


def test_groups_in_lists_have_the_list_keys(group, as_):
    assert [set(one) for one in as_(OLIVE).get("/groups").json] == [GROUP]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("order_by=size", "order_by does not have a valid value"),
        ("min_access_level=15", "min_access_level does not have a valid value"),
        ("owned=perhaps", "owned is invalid"),
        ("skip_groups=a", "skip_groups is invalid"),
    ],
)
def test_invalid_filters_of_groups_are_refused(query, text, people, as_stranger):
    response = as_stranger.get(f"/groups?{query}")

    assert (response.status_code, response.json) == (400, {"error": text})


LISTED_BELOW = [
    (DEV, "subgroups", ["work/team"]),
    (DEV, "descendant_groups", ["work/team/below", "work/team"]),
    (ADA, "subgroups", ["work/aside", "work/team"]),
    (ADA, "descendant_groups", ["work/aside", "work/team/below", "work/team"]),
    (ADA, "descendant_groups?search=below", ["work/team/below"]),
    (ADA, "subgroups?order_by=id&sort=desc", ["work/aside", "work/team"]),
]


@pytest.mark.both_databases
def test_subgroups_and_descendant_groups_are_listed(various_groups, as_):
    results = [
        (person, path, paths(as_(person).get(f"/groups/{various_groups['work'].id}/{path}")))
        for person, path, _ in LISTED_BELOW
    ]

    assert results == LISTED_BELOW


@pytest.mark.both_databases
@pytest.mark.parametrize("path", ["/groups", "/groups/{}/subgroups", "/groups/{}/descendant_groups"])
@pytest.mark.parametrize("person", [ADA, OLIVE])
def test_the_list_of_groups_takes_a_constant_number_of_queries(path, person, group, as_, count_queries):
    for number in range(7):
        share(make_group(f"below{number}", group), make_group(f"other{number}"), Role.GUEST)
    client = as_(person)
    counts = []
    for size in (2, 1, 6):  # the first marks the token as used
        with count_queries() as queries:
            client.get(f"{path.format(group.id)}?per_page={size}")
        counts.append(len(queries))

    assert counts[1] == counts[2]


@pytest.mark.both_databases
def test_a_group_takes_a_constant_number_of_queries(group, as_, count_queries):
    client = as_(OLIVE)
    counts = []
    for more in (1, 5):
        for _ in range(more):
            make_project(namespace=reload(group))
            share(group, make_group(), Role.GUEST)
            share(make_project(), group, Role.GUEST)
        with count_queries() as queries:
            client.get(f"/groups/{group.id}")
        counts.append(len(queries))

    assert counts[0] == counts[1]


@pytest.mark.both_databases
def test_only_one_of_several_concurrent_groups_gets_the_path(app, people, as_stranger):
    start = threading.Barrier(6)

    def create(number):
        with app.app_context():
            start.wait()
            return as_stranger.post("/groups", json={"name": "Same", "path": "same" if number % 2 else "SAME"})

    with ThreadPoolExecutor(6) as pool:
        responses = list(pool.map(create, range(6)))

    assert sorted(response.status_code for response in responses) == [201] + [400] * 5
    assert [response.json for response in responses if response.status_code == 400] == [creation_error(path=TAKEN)] * 5
    assert db.session.query(Membership).filter(Membership.namespace_id.is_not(None)).count() == 1


@pytest.mark.both_databases
def test_renaming_a_group_waits_for_concurrent_creations_below_it(app, group, as_admin):
    path_registry.store_namespace(Group(path="late", name="Late"), group, AssertionError("taken"))

    with ThreadPoolExecutor(1) as pool:
        renaming = pool.submit(_inside, app, lambda: as_admin.put(f"/groups/{group.id}", json={"path": "moved"}))
        waited = not wait([renaming], timeout=0.3).done
        db.session.commit()

    assert (waited, renaming.result().status_code) == (True, 200)
    assert as_admin.get("/groups/moved%2Flate").status_code == 200


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("path", "address"),
    [("/groups?parent_id={}", "/groups/moved%2Flate"), ("/projects?namespace_id={}", "/projects/moved%2Flate")],
)
def test_creations_below_a_group_wait_for_its_renaming(path, address, app, group, as_admin):
    group.path = "moved"
    path_registry.move_namespace(group, AssertionError("taken"))

    with ThreadPoolExecutor(1) as pool:
        putting = pool.submit(
            _inside, app, lambda: as_admin.post(path.format(group.id), json={"path": "late", "name": "Late"})
        )
        waited = not wait([putting], timeout=0.3).done
        db.session.commit()

    assert (waited, putting.result().status_code) == (True, 201)
    assert as_admin.get(address).status_code == 200


def _inside(app, act):
    with app.app_context():
        return act()


@pytest.mark.both_databases
def test_full_paths_are_limited_to_the_size_of_an_index(group, as_admin):
    parent, number = group.id, 0
    while len(as_admin.get(f"/groups/{parent}").json["full_path"]) + 256 <= path_registry.MAX_PATH_LENGTH:
        number += 1
        response = as_admin.post("/groups", json={"name": "x", "path": f"{number}" * 255, "parent_id": parent})
        parent = response.json["id"]
    too_long = f"is too long together with the groups above (maximum is {path_registry.MAX_PATH_LENGTH} characters)"

    below = as_admin.post("/groups", json={"name": "x", "path": "p" * 255, "parent_id": parent})
    inside = as_admin.post("/projects", json={"path": "p" * 255, "namespace_id": parent})
    as_admin.post("/projects", json={"path": "p" * 200, "namespace_id": parent})
    moved = as_admin.put(f"/groups/{group.id}", json={"path": "p" * 255})

    assert (below.status_code, below.json) == (400, creation_error(path=too_long))
    assert (inside.status_code, inside.json) == (400, {"message": {"path": [too_long]}})
    assert (moved.status_code, moved.json) == (400, {"message": {"path": [too_long]}})
    assert as_admin.get("/groups/acme").json["id"] == group.id


def test_group_id_0_is_not_found(as_stranger):
    response = as_stranger.post("/groups", json={"name": "Low", "path": "low", "parent_id": 0})

    assert (response.status_code, response.json) == (404, {"message": "404 Group Not Found"})
    assert as_stranger.get("/groups").json == []


STORED = {
    "default_branch": "trunk",
    "shared_runners_setting": "disabled_and_overridable",
    "wiki_access_level": "private",
    "lock_duo_features_enabled": True,
    "membership_lock": True,
    "prevent_forking_outside_group": True,
    "prevent_sharing_groups_outside_hierarchy": True,
    "service_access_tokens_expiration_enforced": False,
    "enabled_git_access_protocol": "http",
    "emails_enabled": False,
}


def test_settings_for_clients_are_stored_and_answered_back(as_, group, people):
    answers = [as_(OLIVE).put(f"/groups/{group.id}", json={name: value}) for name, value in STORED.items()]
    shown = as_(OLIVE).get(f"/groups/{group.id}").json

    assert {answer.status_code for answer in answers} == {200}
    assert {name: shown[name] for name in STORED} == STORED
    assert shown["emails_disabled"] is True
    renamed = as_(OLIVE).put(f"/groups/{group.id}", json={"shared_runners_setting": "disabled_with_override"})
    assert renamed.json["shared_runners_setting"] == "disabled_and_overridable"


def test_the_protection_of_default_branches_has_two_notations(as_, group, people):
    wanted = {"allowed_to_push": [{"access_level": 30}], "allow_force_push": False}

    changed = as_(OLIVE).put(f"/groups/{group.id}", json={"default_branch_protection_defaults": wanted})
    none = wanted | {"allowed_to_push": [{"access_level": 0}]}
    refused = as_(OLIVE).put(f"/groups/{group.id}", json={"default_branch_protection_defaults": none})

    assert (changed.status_code, changed.json["default_branch_protection"]) == (200, 1)
    message = {"message": {"default_branch_protection_defaults": ["is not supported"]}}
    assert (refused.status_code, refused.json) == (400, message)


def test_new_projects_begin_with_the_default_branch_of_the_nearest_group(as_admin, group):
    below = make_group("tools", parent=group)
    as_admin.put(f"/groups/{group.id}", json={"default_branch": "trunk"})
    body = {"name": "Till", "namespace_id": below.id, "initialize_with_readme": True}

    created = as_admin.post("/projects", json=body).json
    invalid = as_admin.put(f"/groups/{group.id}", json={"default_branch": "a..b"})

    assert as_admin.get(f"/projects/{created['id']}").json["default_branch"] == "trunk"
    assert (invalid.status_code, invalid.json) == (400, {"message": {"default_branch_name": ["is invalid"]}})
