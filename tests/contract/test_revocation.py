"""Revoked permissions are refused by every web process as soon as the revoking request was answered."""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile

import pytest
import requests

from tests.contract.alerting import CSRF, Maintainer
from tests.contract.service import COMMAND, TOKEN, Service, children_of
from tests.support.databases import create_database

CONNECTIONS = 12
PASSWORD = "a password of this test only"
CHANGES = {
    "the token is revoked": ("DELETE", "/personal_access_tokens/{token}", {}, {401}),
    "the membership is removed": ("DELETE", "/groups/{group}/members/{user}", {}, {404}),
    "the role is lowered": ("PUT", "/groups/{group}/members/{user}", {"access_level": 10}, {403}),
    "the person is blocked": ("POST", "/users/{user}/block", {}, {403}),
    "the person is deleted": ("DELETE", "/users/{user}", {}, {401}),
}
# changes of visibility, and the statuses that a user with and without a shared role gets afterwards
RESTRICTIONS = {
    "a public project becomes private": ("PUT", "/projects/{project}", {"visibility": "private"}, {404}),
    "issues are switched off": ("PUT", "/projects/{project}", {"issues_access_level": "disabled"}, {403, 404}),
    "issues are for members": ("PUT", "/projects/{project}", {"issues_access_level": "private"}, {403, 404}),
    "the project is removed": ("DELETE", "/projects/{project}", {}, {404}),
    "the group is removed": ("DELETE", "/groups/{group}", {}, {404}),
    "the project moves to another path": ("PUT", "/projects/{project}", {"path": "elsewhere"}, {404}),
    "the group moves to another path": ("PUT", "/groups/{group}", {"path": "{name}-elsewhere"}, {404}),
    "the issue becomes confidential": ("PUT", "/projects/{project}/issues/1", {"confidential": True}, {404}),
    "the issue is removed": ("DELETE", "/projects/{project}/issues/1", {}, {404}),
    "an administrator becomes a user": ("PUT", "/users/{user}", {"admin": False}, {403}),
    "the person is deactivated": ("POST", "/users/{user}/block", {}, {403}),
    "the share ends": ("DELETE", "/groups/{shared}/share/{group}", {}, {404}),
}
# statuses that a browser with the cached page gets: refused, hidden, or redirected to sign in
PAGES = {
    "the membership is removed": {404},
    "the role is lowered": {403},
    "the person is blocked": {302},
    "the person is deleted": {302},
}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def service(request, tmp_path_factory):
    """A service of two web processes on each database."""
    if request.param == "sqlite":
        yield request.getfixturevalue("running")
        return
    address = create_database(f"revocation_{os.environ.get('PYTEST_XDIST_WORKER', 'gw')}")
    made = Service(tmp_path_factory.mktemp("revocation"), PROJECT_SERVICE_DATABASE_URL=address)
    made.start()
    yield made
    made.stop()


def admin(service, method, path, /, **fields):
    response = requests.request(
        method, f"{service.url}/api/v4{path}", json=fields, headers={"PRIVATE-TOKEN": TOKEN}, timeout=30
    )
    assert response.status_code < 300, response.text
    return response.json() if response.content else None


@pytest.fixture
def world(service):
    """A maintainer through a group, and a project whose list both web processes have answered."""
    name = f"rev{secrets.token_hex(4)}"
    user = admin(service, "POST", "/users", username=name, name=name, email=f"{name}@example.org", password=PASSWORD)
    token = admin(service, "POST", f"/users/{user['id']}/personal_access_tokens", name="t", scopes=["api"])
    group = admin(service, "POST", "/groups", name=name, path=f"{name}-group")
    admin(service, "POST", f"/groups/{group['id']}/members", user_id=user["id"], access_level=40)
    project = admin(service, "POST", "/projects", name=name, namespace_id=group["id"])
    admin(service, "POST", f"/projects/{project['id']}/variables", key="A", value="1")
    ids = {"user": user["id"], "token": token["id"], "group": group["id"], "name": name}
    return f"{service.url}/api/v4/projects/{project['id']}/variables", {"PRIVATE-TOKEN": token["token"]}, ids


def ask(address, headers):
    """Send several requests on new connections, so that every process answers some."""
    return [requests.get(address, headers=headers, timeout=30) for _ in range(CONNECTIONS)]


@pytest.mark.parametrize(("method", "path", "fields", "refused"), CHANGES.values(), ids=CHANGES)
def test_revoked_access_is_refused_by_the_next_request(service, world, method, path, fields, refused):
    address, headers, ids = world
    tag = ask(address, headers)[-1].headers["ETag"]
    assert {response.status_code for response in ask(address, headers | {"If-None-Match": tag})} == {304}

    admin(service, method, path.format(**ids), **fields)

    assert {response.status_code for response in ask(address, headers | {"If-None-Match": tag})} == refused
    assert {response.status_code for response in ask(address, headers)} == refused
    assert len(children_of(service.child("web"))) == 2


@pytest.mark.nightly
@pytest.mark.parametrize("change", RESTRICTIONS)
def test_restricted_visibility_applies_to_the_next_request(service, world, change):
    _, headers, ids = world
    api, name = f"{service.url}/api/v4", ids["name"]
    project = requests.get(f"{api}/projects/{name}-group%2F{name}", headers={"PRIVATE-TOKEN": TOKEN}, timeout=30).json()
    shared = admin(service, "POST", "/groups", name=f"{name}-shared", path=f"{name}-shared", visibility="private")
    ids |= {"project": project["id"], "shared": shared["id"]}
    admin(service, "PUT", f"/groups/{ids['group']}", visibility="public")
    admin(service, "PUT", f"/projects/{ids['project']}", visibility="public")
    admin(service, "POST", f"/projects/{ids['project']}/issues", title="Seen by everybody")
    admin(service, "POST", f"/groups/{ids['shared']}/share", group_id=ids["group"], group_access=30)
    address = f"{api}/projects/{name}-group%2F{name}/issues/1"
    if change == "the share ends":
        address = f"{api}/groups/{ids['shared']}"
    elif change == "an administrator becomes a user":
        admin(service, "PUT", f"/users/{ids['user']}", admin=True)
        address = f"{api}/application/settings"
    elif "issue" not in change and "person" not in change:
        headers = {}  # anonymous
        address = f"{api}/projects/{name}-group%2F{name}"
    if "issue" in change:
        admin(service, "DELETE", f"/groups/{ids['group']}/members/{ids['user']}")
    tag = ask(address, headers)[-1].headers["ETag"]
    assert {response.status_code for response in ask(address, headers | {"If-None-Match": tag})} == {304}

    method, path, fields, refused = RESTRICTIONS[change]
    admin(
        service,
        method,
        path.format(**ids),
        **{name: text.format(**ids) if isinstance(text, str) else text for name, text in fields.items()},
    )

    assert {response.status_code for response in ask(address, headers | {"If-None-Match": tag})} <= refused
    assert {response.status_code for response in ask(address, headers)} <= refused


@pytest.mark.nightly
def test_a_restart_with_other_keys_keeps_revocations(tmp_path):
    old, new = secrets.token_hex(20), secrets.token_hex(20)
    made = Service(tmp_path / "service", PROJECT_SERVICE_SECRET_KEY=old)
    made.start()
    name = "revoked"
    user = admin(made, "POST", "/users", username=name, name=name, email=f"{name}@example.org", password=PASSWORD)
    tokens = [
        admin(made, "POST", f"/users/{user['id']}/personal_access_tokens", name="t", scopes=["api"]) for _ in range(2)
    ]
    browser = requests.Session()
    form = CSRF.search(browser.get(f"{made.url}/users/sign_in", timeout=30).text)
    fields = {"login": name, "password": PASSWORD, "csrf_token": form[1]}
    browser.post(f"{made.url}/users/sign_in", data=fields, timeout=30).raise_for_status()
    cookie = {"Cookie": "; ".join(f"{one.name}={one.value}" for one in browser.cookies)}
    admin(made, "DELETE", f"/personal_access_tokens/{tokens[0]['id']}")
    found = []
    with_both_keys = {
        **os.environ,
        "PROJECT_SERVICE_DATA_DIR": str(made.directory / "data"),
        "PROJECT_SERVICE_SECRET_KEY": f"{new},{old}",
    }
    for keys in (f"{new},{old}", new):
        made.stop()
        temporary = tempfile.mkdtemp()
        made.environment |= {"PROJECT_SERVICE_SECRET_KEY": keys, "TMPDIR": temporary}
        if keys == new:
            subprocess.run([COMMAND, "secrets", "rotate"], env=with_both_keys, check=True, capture_output=True)
        made.start()
        statuses = [
            {response.status_code for response in ask(f"{made.url}/api/v4/user", {"PRIVATE-TOKEN": token["token"]})}
            for token in tokens
        ]
        address = f"{made.url}/-/profile/personal_access_tokens"
        page = requests.get(address, headers=cookie, timeout=30, allow_redirects=False)
        found.append((statuses, page.status_code))
    made.stop()

    assert found == [([{401}, {200}], 200), ([{401}, {200}], 302)]


@pytest.mark.parametrize("change", PAGES)
def test_a_page_is_refused_after_access_was_revoked(service, world, change):
    _, _, ids = world
    browser = requests.Session()
    form = CSRF.search(browser.get(f"{service.url}/users/sign_in", timeout=30).text)
    fields = {"login": ids["name"], "password": PASSWORD, "csrf_token": form[1]}
    browser.post(f"{service.url}/users/sign_in", data=fields, timeout=30).raise_for_status()
    page = f"{service.url}/{ids['name']}-group/{ids['name']}/-/settings/ci_cd"
    browser.get(page, timeout=30)
    cookie = {"Cookie": "; ".join(f"{one.name}={one.value}" for one in browser.cookies)}

    def look():
        return {requests.get(page, headers=cookie, timeout=30, allow_redirects=False).status_code for _ in range(12)}

    assert look() == {200}
    method, path, fields, _ = CHANGES[change]
    admin(service, method, path.format(**ids), **fields)

    assert look() == PAGES[change]


@pytest.mark.parametrize(("act", "refused"), [("reset_key", 401), ("delete", 403)])
def test_a_revoked_alert_key_is_refused_by_the_next_request(service, world, act, refused):
    _, _, ids = world
    project = f"{ids['name']}-group/{ids['name']}"
    maintainer = Maintainer(service)
    made = maintainer.add_integration(project, type="http", name="Monitoring")

    def tell():
        sent, headers = {"title": "A", "fingerprint": "a"}, {"Authorization": f"Bearer {made.key}"}
        return [requests.post(made.url, json=sent, headers=headers, timeout=30) for _ in range(CONNECTIONS)]

    assert {response.status_code for response in tell() + tell()} == {200}
    settings = f"/{project}/-/settings/operations/integrations/{made.number}"
    maintainer.send(f"{settings}/edit", f"{settings}/{act}")

    assert {response.status_code for response in tell()} == {refused}
    counts = maintainer.counts(project)
    maintainer.close()
    assert counts["All"] == 1


def test_every_web_process_lists_a_row_right_after_its_creation(service, world):
    address, headers, _ = world
    for number in range(5):
        ask(address, headers)
        requests.post(address, json={"key": f"B{number}", "value": "x"}, headers=headers, timeout=30).raise_for_status()

        found = [(response.headers["X-Total"], len(response.json())) for response in ask(address, headers)]

        assert set(found) == {(str(number + 2), number + 2)}
