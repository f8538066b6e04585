"""Lists that have been answered before, while nothing has changed since."""

from __future__ import annotations

import pytest
from flask import g, request, session
from sqlalchemy import select, text

from project_service.access import identity
from project_service.domain.access_levels import Visibility
from project_service.kit import metrics
from project_service.kit.db.session import db, reading
from project_service.kit.http import kept
from tests.conftest import POSTGRESQL
from tests.worlds import DEV, GUS, MAX, NOBODY, OLIVE

pytestmark = pytest.mark.both_databases
OF_ONE_REQUEST = {"X-Request-Id", "X-Runtime"}


@pytest.fixture
def undisturbed(count_queries):
    """Does something until no statement was needed, or gives the last result with the statements.

    PostgreSQL numbers the transactions of all its databases together: those of other tests come in between.
    """

    def done(doing, attempts=50):
        for _ in range(attempts):
            with count_queries() as sent:
                result = doing()
            if not sent:
                break
        return result, sent

    return done


@pytest.fixture
def asked(project, as_):
    """The first answer to a list, and what asks for it again."""
    client, address = as_(MAX), f"/projects/{project.id}/issues?per_page=5&state=all"
    client.post(f"/projects/{project.id}/issues", json={"title": "It is cold"})
    client.get(address)  # notes that the token was used
    return client.get(address), lambda **headers: client.get(address, headers=headers)


def headers_of(answer):
    """All of them, in pairs, so that none is there twice."""
    return sorted(pair for pair in answer.headers if pair[0] not in OF_ONE_REQUEST)


def test_the_same_is_answered_without_a_statement(asked, undisturbed):
    first, ask = asked

    again, sent = undisturbed(ask)

    assert (again.status_code, again.data, headers_of(again), sent) == (200, first.data, headers_of(first), [])
    assert again.headers["X-Request-Id"] != first.headers["X-Request-Id"]


def test_who_has_it_already_is_told_so(asked, undisturbed):
    first, ask = asked
    tags = (first.headers["ETag"], f'"x", {first.headers["ETag"]}', "*")

    answers, sent = undisturbed(lambda: [ask(**{"If-None-Match": tag}) for tag in tags])
    other = ask(**{"If-None-Match": 'W/"other"'})

    assert [(answer.status_code, answer.data) for answer in answers] == [(304, b"")] * 3
    assert not any({"Content-Type", "Content-Length"} & set(answer.headers.keys()) for answer in answers)
    assert ({answer.headers["ETag"] for answer in answers}, sent) == ({first.headers["ETag"]}, [])
    assert (other.status_code, other.data) == (200, first.data)


def test_the_id_of_the_request_is_its_own(asked):
    _, ask = asked

    assert ask(**{"X-Request-Id": "mine-1"}).headers["X-Request-Id"] == "mine-1"
    assert len(ask(**{"X-Request-Id": "no id at all!"}).headers["X-Request-Id"]) == 32


def test_pages_of_other_origins_may_read_it(asked, undisturbed):
    first, ask = asked

    again, sent = undisturbed(lambda: ask(Origin="https://elsewhere.example.org"))

    assert (again.headers["Access-Control-Allow-Origin"], again.data, sent) == ("*", first.data, [])
    assert "Access-Control-Allow-Origin" not in ask().headers


def test_a_head_of_it_is_the_same(asked, project, as_):
    first, _ = asked
    head = as_(MAX).open("HEAD", f"/projects/{project.id}/issues?per_page=5&state=all")

    assert (head.status_code, head.data, head.headers["X-Total"]) == (200, b"", first.headers["X-Total"])


def test_whatever_is_committed_makes_it_worthless(asked, project, as_):
    first, ask = asked
    as_(DEV).post(f"/projects/{project.id}/issues", json={"title": "It is dark"})

    assert [issue["title"] for issue in ask().json] == ["It is dark", "It is cold"]
    assert len(first.json) == 1


def test_others_get_their_own(project, as_):
    address = f"/projects/{project.id}/variables"
    as_(MAX).post(address, json={"key": "A", "value": "1"})

    statuses = [as_(name).get(address).status_code for name in (MAX, MAX, GUS, MAX, GUS)]

    assert statuses == [200, 200, 403, 200, 403]


def test_what_comes_with_a_body_is_made_anew(asked, project, as_, count_queries):
    """What is asked in a body is no part of what an answer is known by."""
    first, _ = asked

    with count_queries() as sent:
        again = as_(MAX).open("GET", f"/projects/{project.id}/issues?per_page=5&state=all", json={"state": "closed"})

    assert (again.data, len(sent) > 0) == (first.data, True)


@pytest.mark.parametrize("name", [MAX, NOBODY])
def test_the_state_is_asked_for_where_no_statement_tells_it(name, app, project, as_, backend, monkeypatch, undisturbed):
    """PostgreSQL tells it along with who asks, if somebody does."""
    project = db.session.merge(project)
    project.visibility = project.namespace.visibility = Visibility.PUBLIC
    db.session.commit()
    client, source, asked = as_(name), kept.answers_of(app).source, []
    client.get("/projects")  # notes that the token was used
    monkeypatch.setattr(source, "state", lambda real=source.state: asked.append(1) or real())

    first = client.get("/projects?simple=true")
    once = len(asked)
    again, sent = undisturbed(lambda: client.get("/projects?simple=true"))

    assert once == (0 if name == MAX and backend == POSTGRESQL else 1)
    assert (first.status_code, again.data, sent) == (200, first.data, [])


def test_a_session_that_is_not_there_is_not_there_in_the_state_it_is_kept_under(app, people, backend, monkeypatch):
    """Somebody may have become somebody between the two."""
    answers = kept.answers_of(app)
    with app.test_request_context("/", environ_overrides={kept.KEY: b"key"}, headers={"Cookie": "a=b"}), reading():
        session[identity.SESSION_SECRET] = "of nobody"
        answers.expect(request.environ)
        looked, real = [], identity._browser_of
        monkeypatch.setattr(identity, "_browser_of", lambda **given: looked.append(g.get("kept_as")) or real(**given))
        assert identity.by_session() is identity.NOBODY

        assert [state is not None for state in looked] == ([False, True] if backend == POSTGRESQL else [True])
        assert looked[-1] == g.kept_as


def test_a_server_that_comes_back_is_told_apart(app, backend):
    """By the connections that were lost, and on PostgreSQL by when it was started, whoever tells the state."""
    source = kept.answers_of(app).source
    before = source.state()
    source.close()

    assert source.state() != before
    if backend == POSTGRESQL:
        started = db.session.scalar(text("SELECT EXTRACT(EPOCH FROM pg_postmaster_start_time())::text"))
        assert source.state()[1].split()[1] == db.session.scalar(select(source.column)).split()[1] == started


def test_what_was_refused_leaves_nothing_to_the_next_request(project, as_, undisturbed):
    client, address = as_(MAX), f"/projects/{project.id}/issues"
    refused = client.get(address, headers={"PRIVATE-TOKEN": "none"}).status_code
    other = client.get(f"/projects/{project.id}").json["id"]

    again, _ = undisturbed(lambda: client.get(address, headers={"PRIVATE-TOKEN": "none"}), attempts=3)

    assert (refused, other, again.status_code) == (401, project.id, 401)


@pytest.fixture
def long_list(project, as_):
    """The address of a list of seven, one of which guests do not see, and of which three are closed."""
    client, address = as_(MAX), f"/projects/{project.id}/issues"
    for number in range(7):
        client.post(address, json={"title": f"Till {number}", "confidential": number == 0})
    for iid in (1, 2, 3):
        client.put(f"{address}/{iid}", json={"state_event": "close"})
    return f"{address}?per_page=2"


def test_a_list_is_counted_once_for_all_its_pages(long_list, as_, count_queries):
    client = as_(MAX)

    def page(number):
        with count_queries(totals_kept=True) as sent:
            answer = client.get(f"{long_list}&page={number % 3 + 1}&run={number}")
        assert answer.headers["X-Total"] == "7"
        return [statement for statement in sent if "count(" in statement]

    assert any(not page(number) for number in range(50))  # what others commit makes it counted anew on PostgreSQL


def test_a_total_follows_whatever_is_committed(long_list, as_):
    client = as_(MAX)

    def total():
        return client.get(f"{long_list}&page=1").headers["X-Total"]

    before = [total(), total()]
    as_(OLIVE).delete(f"{long_list.partition('?')[0]}/5")
    fewer = total()
    as_(DEV).post(long_list.partition("?")[0], json={"title": "One more"})

    assert (before, fewer, total()) == (["7", "7"], "6", "7")


def test_other_lists_and_other_people_have_their_own_totals(long_list, as_):
    asked = [(MAX, ""), (GUS, ""), (MAX, "&state=closed"), (MAX, "&iids[]=6"), (MAX, ""), (GUS, "")]

    found = [as_(name).get(f"{long_list}{wanted}").headers["X-Total"] for name, wanted in asked]

    assert found == ["7", "6", "3", "1", "7", "6"]


def test_it_is_counted_as_every_answer(asked):
    _, ask = asked
    route = "/api/v4/projects/<project>/issues"

    def counted(status):
        return metrics.REQUESTS.labels("GET", route, status)._value.get()

    before = counted("200")
    ask()

    assert counted("200") == before + 1


def test_what_was_asked_for_last_is_kept_as_far_as_there_is_room(asked, project, as_, undisturbed, monkeypatch):
    first, _ = asked
    client = as_(MAX)
    oldest, *others = [f"/projects/{project.id}/issues?per_page=5&state=all&run={number}" for number in range(3)]
    size = kept.size_of(tuple(first.headers), first.data)
    monkeypatch.setattr(kept, "MOST_BYTES", size * 2)
    client.get(oldest)

    _, sent = undisturbed(lambda: [client.get(address) for address in others])
    _, sent_for_the_oldest = undisturbed(lambda: client.get(oldest), attempts=1)

    assert (sent, len(sent_for_the_oldest) > 0) == ([], True)
