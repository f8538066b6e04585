"""Who may fetch and push over HTTP: statuses, headers and texts (repositories reference, section 1.2)."""

from __future__ import annotations

import base64
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest

from project_service.areas.repositories import git_access
from project_service.domain.access_levels import Visibility
from project_service.domain.repositories import slots
from project_service.domain.repositories.reading import processes
from project_service.kit.db.session import db
from project_service.kit.http.errors import Unavailable
from project_service.kit.security import passwords
from tests.support.sample_data import ADA, DEV, GUS, MAX, NOBODY, RITA, SAM, make_token

FETCH, PUSH = "git-upload-pack", "git-receive-pack"


@pytest.fixture
def ask(app, people):
    """Asks for the refs of a repository, as git does first."""

    def ask(person, path, service=FETCH, *scopes, login="anything", password=None, **headers):
        secret = password or (make_token(people[person], *scopes) if person else None)
        if secret:
            headers["Authorization"] = "Basic " + base64.b64encode(f"{login}:{secret}".encode()).decode()
        query = {"service": service} if service else {}
        return app.test_client().get(f"/{path}.git/info/refs", query_string=query, headers=headers)

    return ask


def test_roles_that_fetch_and_push_in_a_private_project(ask, project):
    fetched = {person: ask(person, "acme/shop").status_code for person in (ADA, MAX, DEV, RITA, GUS, SAM, NOBODY)}
    pushed = {person: ask(person, "acme/shop", PUSH).status_code for person in (ADA, MAX, DEV, RITA, GUS, SAM, NOBODY)}

    assert fetched == {ADA: 200, MAX: 200, DEV: 200, RITA: 200, GUS: 403, SAM: 404, NOBODY: 401}
    assert pushed == {ADA: 200, MAX: 200, DEV: 200, RITA: 403, GUS: 403, SAM: 404, NOBODY: 401}


def test_anonymous_clients_may_fetch_from_a_public_project(ask, project, group):
    group.visibility = project.visibility = Visibility.PUBLIC
    db.session.commit()

    assert (ask(NOBODY, "ACME/shop").status_code, ask(NOBODY, "acme/shop", PUSH).status_code) == (200, 401)
    assert ask(NOBODY, "acme/shop", password="nonsense").status_code == 401
    assert (ask(NOBODY, "acme/shop", "").status_code, ask(SAM, "acme/shop", "").status_code) == (401, 403)


def test_refusals_are_plain_text_for_git(ask, project):
    denied, hidden, missing, guest = (
        ask(NOBODY, "acme/no"),
        ask(SAM, "acme/shop"),
        ask(SAM, "a/b"),
        ask(GUS, "acme/shop"),
    )

    assert denied.headers["WWW-Authenticate"] == 'Basic realm="GitLab"'
    assert denied.text.startswith("HTTP Basic: Access denied.")
    assert (hidden.status_code, hidden.text) == (missing.status_code, missing.text) == (404, git_access.NO_PROJECT)
    assert (guest.text, guest.content_type) == (git_access.NO_FETCH, "text/plain; charset=utf-8")
    assert guest.headers["Cache-Control"] == "no-cache, max-age=0, must-revalidate"
    assert ask(GUS, "acme/shop", PUSH).text == git_access.NO_PUSH


@pytest.mark.parametrize(
    ("scope", "fetch", "push"),
    [("api", 200, 200), ("write_repository", 200, 200), ("read_repository", 200, 403), ("read_user", 403, 403)],
)
def test_tokens_need_a_scope(ask, project, scope, fetch, push):
    assert (ask(DEV, "acme/shop", FETCH, scope).status_code, ask(DEV, "acme/shop", PUSH, scope).status_code) == (
        fetch,
        push,
    )


def test_an_archived_project_can_be_fetched_only(ask, project):
    project.archived = True
    db.session.commit()

    assert ask(DEV, "acme/shop").status_code == 200
    assert ask(DEV, "acme/shop", PUSH).text == git_access.ARCHIVED
    assert ask(RITA, "acme/shop", PUSH).text == git_access.NO_PUSH


def test_passwords_are_accepted_unless_the_instance_disables_them(ask, project, people, as_admin):
    def by_password(password):
        return ask(NOBODY, "acme/shop", login=people[ADA].email, password=password).status_code

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
    with ExitStack() as held:
        for number in range(100):
            with suppress(slots.NoSlot):
                held.enter_context(slots.git_slot(tmp_path, None, f"192.0.2.{number % 50}", max_wait_seconds=0))

        with pytest.raises(slots.NoSlot), slots.git_slot(tmp_path, None, max_wait_seconds=0):
            pass
        for user_id in range(slots.MAX_PROCESSES - slots.MAX_ANONYMOUS_PROCESSES):
            held.enter_context(slots.git_slot(tmp_path, user_id, max_wait_seconds=0))


def test_an_ip_address_has_the_slot_limit_of_a_user(tmp_path):
    with ExitStack() as held:
        for _ in range(slots.MAX_PROCESSES_PER_USER):
            held.enter_context(slots.git_slot(tmp_path, None, "192.0.2.1", max_wait_seconds=0))

        with pytest.raises(slots.NoSlot), slots.git_slot(tmp_path, None, "192.0.2.1", max_wait_seconds=0):
            pass
        held.enter_context(slots.git_slot(tmp_path, None, "192.0.2.2", max_wait_seconds=0))


def test_an_expired_password_is_refused_by_git(ask, people, project):
    person = people[MAX]
    person.password_hash, person.password_expired = passwords.hash_password("correct horse"), False
    db.session.commit()
    responses = [ask(None, "acme/shop", login=person.username, password="correct horse").status_code]
    people[MAX].password_expired = True
    db.session.commit()

    responses.append(ask(None, "acme/shop", login=person.username, password="correct horse").status_code)

    assert responses == [200, 401]


def test_the_number_of_waiting_threads_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(slots, "anonymous_waiters", threading.BoundedSemaphore(1))
    with ExitStack() as held:
        for _ in range(slots.MAX_ANONYMOUS_PROCESSES):
            held.enter_context(slots.git_slot(tmp_path, None, max_wait_seconds=0))
        slots.anonymous_waiters.acquire()  # another thread waits

        began = time.monotonic()
        with pytest.raises(slots.NoSlot), slots.git_slot(tmp_path, None, max_wait_seconds=30):
            pass
        assert time.monotonic() - began < 5


def test_downloads_are_refused_at_once_while_one_waits(monkeypatch):
    monkeypatch.setattr(processes, "WAIT_SECONDS", 2.0)
    few, refused = processes.Slots(1), []
    few.acquire()

    def wait():
        with pytest.raises(Unavailable):
            few.acquire()
        refused.append(time.monotonic())

    began, threads = time.monotonic(), [threading.Thread(target=wait) for _ in range(5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert [moment - began > 1.9 for moment in sorted(refused)] == [False] * 4 + [True]


def test_concurrent_passwords_are_counted_before_the_next_check(ask, people, project):
    username = people[MAX].username
    people[MAX].password_hash = passwords.hash_password("correct horse")
    db.session.commit()
    db.session.remove()

    with ThreadPoolExecutor(20) as clients:
        asked = [clients.submit(ask, None, "acme/shop", login=username, password=f"guess {n}") for n in range(30)]
        statuses = [one.result().status_code for one in asked]

    assert (statuses.count(401), statuses.count(429)) == (10, 20)
