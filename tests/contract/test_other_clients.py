"""Requests of other clients: forms, encoded dots, capitalised booleans, tokens in other places."""

from __future__ import annotations

import http.client
import json
from urllib.parse import quote, urlencode, urlsplit

import pytest

from tests.contract.service import TOKEN, git


@pytest.fixture
def send(service):
    """Send a request with its target unchanged, as ruby-gitlab and others do."""

    def open_it(method, target, form=None, headers=None):
        connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=20)
        body = None if form is None else urlencode(form)
        given = {"PRIVATE-TOKEN": TOKEN, "Content-Type": "application/x-www-form-urlencoded"}
        connection.request(method, f"/api/v4{target}", body, given if headers is None else headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, json.loads(text) if text else None

    return open_it


@pytest.fixture
def here(project):
    """The URL of the project as ruby-gitlab writes it: dots are encoded too."""
    return f"/projects/{quote(project.path_with_namespace, safe='').replace('.', '%2E')}"


def test_dots_may_be_encoded(send, here, project):
    status, found = send("GET", here)

    assert (status, found["id"]) == (200, project.id)


@pytest.mark.parametrize(
    ("said", "meant"), [("True", True), ("true", True), ("1", True), ("False", False), ("0", False)]
)
def test_forms_write_booleans_in_their_own_way(said, meant, send, here):
    status, made = send("POST", f"{here}/variables", {"key": "A", "value": "12345678", "masked": said})

    assert (status, made["masked"]) == (201, meant)


def test_forms_write_hashes_with_brackets(send, here):
    for scope in ("one", "two"):
        send("POST", f"{here}/variables", {"key": "A", "value": scope, "environment_scope": scope})

    status, changed = send("PUT", f"{here}/variables/A", {"value": "new", "filter[environment_scope]": "two"})

    assert (status, changed["value"], changed["environment_scope"]) == (200, "new", "two")


def test_numbers_are_accepted_as_text(send, here, person):
    status, member = send("POST", f"{here}/members", {"user_id": str(person.id), "access_level": "30"})

    assert (status, member["access_level"]) == (201, 30)


def test_scopes_are_accepted_as_an_array_of_a_form(send, person):
    form = {"name": "ruby", "scopes[]": "read_api"}

    status, token = send("POST", f"/users/{person.id}/personal_access_tokens", form)

    assert (status, token["scopes"]) == (201, ["read_api"])


@pytest.mark.parametrize("slashes", ["/features/", "/features//"])
def test_a_double_slash_counts_as_one(slashes, send, name):
    status, feature = send("POST", f"{slashes}{name}", {"value": "true"})

    assert (status, feature["name"], feature["state"]) == (201, name, "on")


@pytest.mark.parametrize("tag", ["release/1.0", "v*", "50%", "späte #1?"])
def test_unicode_names_are_returned_unchanged(tag, send, here):
    made = send("POST", f"{here}/protected_tags", {"name": tag})
    shown = send("GET", f"{here}/protected_tags/{quote(tag, safe='')}")
    removed = send("DELETE", f"{here}/protected_tags/{quote(tag, safe='')}")

    assert (made[0], shown[0], removed) == (201, 200, (204, None))
    assert made[1]["name"] == shown[1]["name"] == tag


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"Private-Token": TOKEN}, ""),
        ({"Authorization": f"Bearer {TOKEN}"}, ""),
        ({}, f"?private_token={TOKEN}"),
        ({}, f"?access_token={TOKEN}"),
    ],
)
def test_tokens_are_accepted_in_every_documented_place(headers, query, send):
    status, user = send("GET", f"/user{query}", headers=headers)

    assert (status, user["username"]) == (200, "root")


def test_version_3_of_the_api_is_gone(service, send):
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=20)
    connection.request("GET", "/api/v3/projects")

    assert connection.getresponse().status == 410
    connection.close()


def test_git_accepts_a_project_token_until_it_is_revoked(service, project, tmp_path):
    fields = {"name": "deploy", "scopes": ["write_repository"], "access_level": 40}
    token = project.access_tokens.create(fields)
    origin = urlsplit(service.url)._replace(
        netloc=f"deploy:{token.token}@{urlsplit(service.url).netloc}", path=f"/{project.path_with_namespace}.git"
    )
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "Begin")

    git(tmp_path, "push", origin.geturl(), "main")
    git(tmp_path, "clone", "--quiet", origin.geturl(), "clone")
    project.access_tokens.delete(token.id)

    refused = git(tmp_path / "clone", "fetch", check=False)
    assert (refused.returncode, "Access denied" in refused.stderr) == (128, True)
