"""The namespace that an import goes to."""

from __future__ import annotations

import pytest

from project_service.domain.access_levels import Role
from tests.support.archives import make_archive, send
from tests.support.sample_data import (
    ADA,
    DEV,
    GUS,
    MAX,
    OLIVE,
    RITA,
    SAM,
    add_member,
    make_group,
    make_user,
)
from tests.transfers.importing.support import BAD_PATH, MEMBERS, NO_NAMESPACE, at_once, known_projects, stored


def test_the_default_namespace_is_that_of_the_user(as_):
    client = as_(MAX)

    assert send(client).json["path_with_namespace"] == "max/tools"
    for path, key, blank in (("more", "namespace", ""), ("blank", "namespace", "  "), ("b", "namespace_path", " ")):
        assert send(client, path=path, **{key: blank}).json["path_with_namespace"] == f"max/{path}"


@pytest.mark.parametrize(
    ("person", "status", "body"),
    [
        (ADA, 201, None),
        (OLIVE, 201, None),
        (MAX, 201, None),
        (DEV, 201, None),
        (RITA, 400, {"message": "Namespace is not valid"}),
        (GUS, 400, {"message": "Namespace is not valid"}),
        (SAM, 404, NO_NAMESPACE),
    ],
)
def test_roles_that_import_into_a_group(person, status, body, as_, people, group):
    for name, role in ((MAX, Role.MAINTAINER), (DEV, Role.DEVELOPER), (RITA, Role.REPORTER), (GUS, Role.GUEST)):
        add_member(group, people[name], role)

    response = send(as_(person), namespace="ACME")

    assert response.status_code == status
    assert response.json == body if body else response.json["path_with_namespace"] == "acme/tools"


@pytest.mark.parametrize("key", ["namespace", "namespace_id"])
def test_a_namespace_is_found_by_id(key, as_, group):
    assert send(as_(OLIVE), **{key: str(group.id)}).json["path_with_namespace"] == "acme/tools"


def test_a_subgroup_is_found_by_its_full_path(as_, group):
    make_group("tools", group)

    responses = [send(as_(OLIVE), path=key, **{key: "acme/Tools"}) for key in ("namespace", "namespace_path")]

    assert [response.json["path_with_namespace"] for response in responses] == [
        "acme/tools/namespace",
        "acme/tools/namespace_path",
    ]


@pytest.mark.parametrize("namespace", ["nowhere", "99999999", "acme", "open", "sam", "acme/nowhere"])
def test_hidden_and_unknown_namespaces_are_not_found(namespace, as_, group):
    make_group("open", visibility="public")

    response = send(as_(MAX), namespace=namespace)

    assert (response.status_code, response.json, known_projects(), stored()) == (404, NO_NAMESPACE, 0, [])


def test_an_administrator_imports_into_any_namespace(as_admin, group):
    assert send(as_admin, namespace="sam").json["path_with_namespace"] == "sam/tools"
    assert send(as_admin, namespace="acme").status_code == 201


def test_until_the_archive_is_read_the_project_is_private_with_the_importer_as_member(as_, people):
    client = as_(MAX)

    response = send(client, make_archive({}, {"visibility_level": 20}))

    number = response.json["id"]
    assert client.get(f"/projects/{number}").json["visibility"] == "private"
    [member] = client.get(f"/projects/{number}/members").json
    assert (member["username"], member["access_level"]) == (MAX, 40)


@pytest.mark.parametrize("person", [DEV, OLIVE, ADA])
def test_the_importer_into_a_group_is_a_maintainer(person, bring, as_, people, group, run_jobs):
    add_member(group, people[DEV], Role.DEVELOPER)

    number = bring(make_archive({"project_members": MEMBERS}), person=person, namespace="acme")["id"]

    client = as_(person)
    levels = {one["username"]: one["access_level"] for one in client.get(f"/projects/{number}/members").json}
    assert levels[person] == 40
    assert client.post(f"/projects/{number}/export").status_code == 202
    assert [event["action_name"] for event in client.get(f"/projects/{number}/events").json] == ["created"]


BAD_NAME = (
    "Name can contain only letters, digits, emojis, '_', '.', dash, space. "
    "It must start with letter, digit, emoji or '_'."
)


@pytest.mark.parametrize(
    ("path", "name", "text"),
    [
        ("", None, "Path can't be blank"),
        ("", "-bad", BAD_NAME),
        ("-bad", "Good", BAD_PATH),
        ("bad.git", "Good", BAD_PATH),
        ("bad.atom", "Good", BAD_PATH),
        ("b d", "Good", BAD_PATH),
        ("wikis", "Good", "Path wikis is a reserved name"),
        ("x" * 256, "Good", "Path is too long (maximum is 255 characters)"),
        ("good", "x" * 256, "Name is too long (maximum is 255 characters)"),
        (
            "good",
            "(bad)",
            BAD_NAME,
        ),
        ("taken", None, "Name has already been taken"),
        ("TAKEN", "Other", "Path has already been taken"),
        ("other", "taken", "Name has already been taken"),
    ],
)
def test_invalid_projects_are_refused(path, name, text, as_):
    client = as_(MAX)
    assert send(client, path="taken").status_code == 201
    files = stored()

    response = send(client, path=path, **({"name": name} if name else {}))

    assert (response.status_code, response.json) == (400, {"message": text})
    assert (known_projects(), stored()) == (1, files)


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (
            0,
            "Limit reached Personal project creation is not allowed. Please contact your administrator with questions",
        ),
        (
            1,
            "Limit reached Your project limit is 1 projects! Please contact your administrator to increase it",
        ),
    ],
)
def test_the_limit_of_personal_projects_applies(limit, text, as_, client_of):
    user = make_user("limited", projects_limit=limit)
    client = client_of(user)
    for number in range(limit):
        assert send(client, path=f"a{number}").status_code == 201

    response = send(client, path="b")

    assert (response.status_code, response.json) == (400, {"message": text})


@pytest.mark.parametrize(("name", "shown"), [("My tools", "My tools"), ("", "tools"), ("   ", "tools")])
def test_the_name_is_the_path_unless_one_is_given(name, shown, as_):
    assert send(as_(MAX), name=name).json["name"] == shown


@pytest.mark.both_databases
def test_only_one_of_two_concurrent_imports_gets_the_path(as_, app):
    client = as_(MAX)
    responses = at_once(lambda: send(client), lambda: send(client))

    refused, accepted = sorted(responses, key=lambda response: response.status_code, reverse=True)
    assert (accepted.status_code, refused.status_code) == (201, 400)
    assert refused.json["message"] in ("Name has already been taken", "Path has already been taken")
    assert (known_projects(), len(stored())) == (1, 1)
