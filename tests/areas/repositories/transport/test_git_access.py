"""Permissions to fetch and push over HTTP: statuses, headers and texts (repositories reference, section 1.2)."""

from __future__ import annotations

import base64
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest
from flask import g

from project_service.access import identity
from project_service.areas.repositories import code_reading
from project_service.areas.repositories.transport import git_access
from project_service.domain.access_levels import Visibility
from project_service.domain.repositories import slots
from project_service.domain.repositories.reading import processes
from project_service.kit.db.session import db
from project_service.kit.http.errors import Unavailable
from project_service.kit.security import passwords
from tests.support.sample_data import ADA, DEV, GUS, MAX, NOBODY, RITA, SAM, make_token

FETCH, PUSH = "git-upload-pack", "git-receive-pack"


@pytest.fixture
def request_refs(app, people):
    """Requests the refs of a repository, the first request of a git client."""

    def request_refs(person, path, service=FETCH, *scopes, login="anything", password=None, **headers):
        secret = password or (make_token(people[person], *scopes) if person else None)
        if secret:
            headers["Authorization"] = "Basic " + base64.b64encode(f"{login}:{secret}".encode()).decode()
        query = {"service": service} if service else {}
        return app.test_client().get(f"/{path}.git/info/refs", query_string=query, headers=headers)

    return request_refs


def test_reporters_fetch_and_developers_push_in_a_private_project(request_refs, project):
    fetched = {
        person: request_refs(person, "acme/shop").status_code for person in (ADA, MAX, DEV, RITA, GUS, SAM, NOBODY)
    }
    pushed = {
        person: request_refs(person, "acme/shop", PUSH).status_code
        for person in (ADA, MAX, DEV, RITA, GUS, SAM, NOBODY)
    }

    assert fetched == {ADA: 200, MAX: 200, DEV: 200, RITA: 200, GUS: 403, SAM: 404, NOBODY: 401}
    assert pushed == {ADA: 200, MAX: 200, DEV: 200, RITA: 403, GUS: 403, SAM: 404, NOBODY: 401}


def test_anonymous_clients_may_fetch_from_a_public_project(request_refs, project, group):
    group.visibility = project.visibility = Visibility.PUBLIC
    db.session.commit()

    assert (request_refs(NOBODY, "ACME/shop").status_code, request_refs(NOBODY, "acme/shop", PUSH).status_code) == (
        200,
        401,
    )
    assert request_refs(NOBODY, "acme/shop", password="nonsense").status_code == 401
    assert (request_refs(NOBODY, "acme/shop", "").status_code, request_refs(SAM, "acme/shop", "").status_code) == (
        401,
        403,
    )


def test_refusals_are_plain_text_for_git(request_refs, project):
    denied, hidden, missing, guest = (
        request_refs(NOBODY, "acme/no"),
        request_refs(SAM, "acme/shop"),
        request_refs(SAM, "a/b"),
        request_refs(GUS, "acme/shop"),
    )

    assert denied.headers["WWW-Authenticate"] == 'Basic realm="GitLab"'
    assert denied.text.startswith("HTTP Basic: Access denied.")
    assert (hidden.status_code, hidden.text) == (missing.status_code, missing.text) == (404, git_access.NO_PROJECT)
    assert (guest.text, guest.content_type) == (git_access.NO_FETCH, "text/plain; charset=utf-8")
    assert guest.headers["Cache-Control"] == "no-cache, max-age=0, must-revalidate"
    assert request_refs(GUS, "acme/shop", PUSH).text == git_access.NO_PUSH


@pytest.mark.parametrize(
    ("scope", "fetch", "push"),
    [("api", 200, 200), ("write_repository", 200, 200), ("read_repository", 200, 403), ("read_user", 403, 403)],
)
def test_tokens_need_a_scope(request_refs, project, scope, fetch, push):
    assert (
        request_refs(DEV, "acme/shop", FETCH, scope).status_code,
        request_refs(DEV, "acme/shop", PUSH, scope).status_code,
    ) == (
        fetch,
        push,
    )


def test_an_archived_project_can_be_fetched_only(request_refs, project):
    project.archived = True
    db.session.commit()

    assert request_refs(DEV, "acme/shop").status_code == 200
    assert request_refs(DEV, "acme/shop", PUSH).text == git_access.ARCHIVED
    assert request_refs(RITA, "acme/shop", PUSH).text == git_access.NO_PUSH


def test_passwords_are_accepted_unless_the_instance_disables_them(request_refs, project, people, as_admin):
    def by_password(password):
        return request_refs(NOBODY, "acme/shop", login=people[ADA].email, password=password).status_code

    as_admin.put(f"/users/{people[ADA].id}", json={"password": "correct horse battery"})

    assert (by_password("correct horse battery"), by_password("wrong")) == (200, 401)
    as_admin.put("/application/settings", json={"password_authentication_enabled_for_git": False})
    assert by_password("correct horse battery") == 401


def test_the_dumb_protocol_and_lfs_are_not_served(app, project):
    client = app.test_client()

    assert client.get("/acme/shop/info/refs?service=git-upload-pack").status_code == 301
    assert client.get("/acme/shop.git/HEAD").status_code == 302
    assert client.post("/acme/shop.git/info/lfs/objects/batch").status_code == 501
    assert client.head("/acme/shop.git/info/refs?service=git-upload-pack").status_code == 403


@pytest.mark.parametrize(
    ("level", "scope", "status"), [(20, "read_repository", 200), (20, "read_registry", 403), (10, "api", 403)]
)
def test_a_project_token_fetches_with_the_role_of_its_bot(level, scope, status, app, project, as_maintainer):
    fields = {"name": "ci", "scopes": [scope], "access_level": level}
    token = as_maintainer.post(f"/projects/{project.id}/access_tokens", json=fields).json["token"]

    response = app.test_client().get("/acme/shop.git/info/refs?service=git-upload-pack", auth=("ci", token))

    assert response.status_code == status


def test_anonymous_clients_cannot_occupy_all_slots(tmp_path):
    with ExitStack() as acquired:
        for number in range(100):
            with suppress(slots.NoSlot):
                acquired.enter_context(slots.git_slot(tmp_path, None, f"192.0.2.{number % 50}", max_wait_seconds=0))

        with pytest.raises(slots.NoSlot), slots.git_slot(tmp_path, None, max_wait_seconds=0):
            pass
        for user_id in range(slots.MAX_PROCESSES - slots.MAX_ANONYMOUS_PROCESSES):
            acquired.enter_context(slots.git_slot(tmp_path, user_id, max_wait_seconds=0))


def test_an_ip_address_has_the_slot_limit_of_a_user(tmp_path):
    with ExitStack() as acquired:
        for _ in range(slots.MAX_PROCESSES_PER_USER):
            acquired.enter_context(slots.git_slot(tmp_path, None, "192.0.2.1", max_wait_seconds=0))

        with pytest.raises(slots.NoSlot), slots.git_slot(tmp_path, None, "192.0.2.1", max_wait_seconds=0):
            pass
        acquired.enter_context(slots.git_slot(tmp_path, None, "192.0.2.2", max_wait_seconds=0))


def test_an_expired_password_is_refused_by_git(request_refs, people, project):
    person = people[MAX]
    person.password_hash, person.password_expired = passwords.hash_password("correct horse"), False
    db.session.commit()
    responses = [request_refs(None, "acme/shop", login=person.username, password="correct horse").status_code]
    people[MAX].password_expired = True
    db.session.commit()

    responses.append(request_refs(None, "acme/shop", login=person.username, password="correct horse").status_code)

    assert responses == [200, 401]


def test_the_number_of_waiting_threads_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(slots, "anonymous_waiters", threading.BoundedSemaphore(1))
    with ExitStack() as acquired:
        for _ in range(slots.MAX_ANONYMOUS_PROCESSES):
            acquired.enter_context(slots.git_slot(tmp_path, None, max_wait_seconds=0))
        slots.anonymous_waiters.acquire()  # another thread waits

        start = time.monotonic()
        with pytest.raises(slots.NoSlot), slots.git_slot(tmp_path, None, max_wait_seconds=30):
            pass
        assert time.monotonic() - start < 5


def test_downloads_are_refused_at_once_while_one_waits(monkeypatch):
    monkeypatch.setattr(processes, "WAIT_SECONDS", 2.0)
    slot, refused = processes.Slots(1), []
    slot.acquire()

    def wait():
        with pytest.raises(Unavailable):
            slot.acquire()
        refused.append(time.monotonic())

    start, threads = time.monotonic(), [threading.Thread(target=wait) for _ in range(5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert [moment - start > 1.9 for moment in sorted(refused)] == [False] * 4 + [True]


def test_one_caller_leaves_downloads_to_others():
    slots = processes.Slots(8, per_caller=2)
    for _ in range(2):
        slots.acquire("192.0.2.1")

    with pytest.raises(Unavailable):
        slots.acquire("192.0.2.1")
    slots.acquire("192.0.2.2")
    slots.release("192.0.2.1")
    slots.acquire("192.0.2.1")


def test_tokens_and_addresses_of_one_user_share_its_downloads(app, people):
    callers = [identity.Caller(user_id=people[MAX].id, token_id=number) for number in (1, 2)] + [identity.ANONYMOUS] * 2
    found = []
    for caller, address in zip(callers, ("192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1:2"), strict=True):
        with app.test_request_context(environ_base={"REMOTE_ADDR": address}):
            g.caller = caller
            found.append(code_reading.download_slots())

    users = processes.CallerSlots(processes.downloads, people[MAX].id)
    anonymous = [processes.CallerSlots(processes.anonymous_downloads, name) for name in ("192.0.2.3", "2001:db8::/64")]
    assert found == [users, users, *anonymous]


def test_concurrent_password_attempts_are_limited(request_refs, people, project):
    username = people[MAX].username
    people[MAX].password_hash = passwords.hash_password("correct horse")
    db.session.commit()
    db.session.remove()

    with ThreadPoolExecutor(passwords.MAX_CHECKS + passwords.MAX_WAITING) as clients:
        pending = [
            clients.submit(request_refs, None, "acme/shop", login=username, password=f"guess {n}") for n in range(30)
        ]
        statuses = [one.result().status_code for one in pending]

    assert (statuses.count(401), statuses.count(429)) == (10, 20)
