"""Receivers that are remembered from one request to the next: nobody comes in with what was taken away meanwhile."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import has_app_context
from sqlalchemy import select, update

from project_service.access import webhooks
from project_service.areas.alerts import ingestion
from project_service.areas.alerts.models import (
    HTTP,
    PROMETHEUS,
    TARGET,
    Alert,
    AlertIntegration,
    IncidentSetting,
    Status,
)
from project_service.areas.alerts.payloads import parse_plain
from project_service.domain.bots import ALERT_BOT
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.notes import Note
from project_service.domain.users import User
from project_service.kit import clock
from project_service.kit.db.session import db

KEY, OTHER_KEY = "0123456789abcdef" * 2, "f" * 32
IDENTIFIER = "00112233445566ff"
PATH = f"/acme/shop/alerts/notify/x/{IDENTIFIER}.json"
OF_PROMETHEUS = "/acme/shop/prometheus/alerts/notify.json"
BATCH_KEYS = ("groupKey", "status", "receiver", "groupLabels", "commonLabels", "commonAnnotations", "externalURL")
START, END = "2026-03-04T05:06:07Z", "2026-03-04T06:00:00Z"


def element(name, **more):
    return {"labels": {"alertname": name}, "annotations": {}, "startsAt": START, "status": "firing"} | more


def batch(*elements):
    return dict.fromkeys(BATCH_KEYS, "x") | {"version": "4", "alerts": list(elements)}


BODIES = {
    "a repeated one": {"title": "known", "fingerprint": "known"},
    "a new one": {"title": "new", "fingerprint": "new"},
    "one without a fingerprint": {},
    "a recovery": {"title": "known", "fingerprint": "known", "end_time": END},
    "the recovery of nothing": {"title": "new", "fingerprint": "new", "end_time": END},
    "several": batch(element("A"), element("B")),
    "none at all": batch(),
    "several that are no alerts": batch({"labels": {}}, 5),
    "the same one twice": batch(element("A"), element("A")),
    "several, some of them over": batch(element("A"), element("B", status="resolved", endsAt=END)),
}


@pytest.fixture
def endpoint(project):
    row = AlertIntegration(
        project_id=project.id,
        type=HTTP,
        name="Shop",
        active=True,
        endpoint_identifier=IDENTIFIER,
        token=KEY,
        mapping={},
    )
    db.session.add(row)
    db.session.commit()
    return row


@pytest.fixture
def post(app, endpoint):
    """Sends an alert to the endpoint."""

    def send(body, *, key=KEY, path=PATH):
        if has_app_context():
            db.session.remove()
        client = app.test_client(use_cookies=False)
        return client.post(path, data=json.dumps(body), headers={"Authorization": f"Bearer {key}"})

    return send


@pytest.fixture
def known(post):
    """Has the endpoint remembered, with an open alert."""
    assert [post(BODIES["a repeated one"]).status_code for _ in range(3)] == [200] * 3


def alerts():
    db.session.remove()
    return [
        (alert.title, alert.events, alert.status == Status.RESOLVED)
        for alert in db.session.scalars(select(Alert).order_by(Alert.iid))
    ]


def change(model, **values):
    db.session.remove()
    db.session.execute(update(model).values(values))
    db.session.commit()


def remove(_endpoint):
    db.session.delete(db.session.get_one(AlertIntegration, _endpoint.id))
    db.session.commit()


CHANGES = {
    "another key": (lambda one: change(AlertIntegration, token=OTHER_KEY), 401),
    "switched off": (lambda one: change(AlertIntegration, active=False), 403),
    "of another type": (lambda one: change(AlertIntegration, type=PROMETHEUS), 403),
    "another address": (lambda one: change(AlertIntegration, endpoint_identifier="ff"), 403),
    "removed": (remove, 403),
    "the project moved": (lambda one: change(Project, path="store", full_path="acme/store"), 404),
    "the project is being removed": (lambda one: change(Project, deleting_since=clock.now()), 404),
}


def test_who_was_let_in_is_not_looked_for_again(known, post, count_queries):
    with count_queries() as queries:
        assert post(BODIES["a repeated one"]).json == [{"iid": 1, "title": "known"}]

    assert [statement.split()[0] for statement in queries if not statement.startswith("BEGIN")] == ["UPDATE"]
    assert alerts() == [("known", 4, False)]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_all_that_is_sent_is_taken_in_as_by_one_that_was_looked_for(body, app, known, post):
    post(body)
    remembered = alerts()
    for model in (Note, Alert):
        db.session.query(model).delete()
    db.session.commit()
    app.extensions[webhooks.REMEMBERED] = webhooks.Remembered()
    for _ in range(3):
        post(BODIES["a repeated one"])
        app.extensions[webhooks.REMEMBERED] = webhooks.Remembered()

    post(body)

    assert alerts() == remembered


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("changed", CHANGES)
def test_whoever_has_lost_the_way_in_is_refused_at_once_and_nothing_is_stored(changed, body, endpoint, known, post):
    make, status = CHANGES[changed]
    make(endpoint)

    answers = [post(body), post(body)]

    assert [(answer.status_code, answer.data) for answer in answers] == [(status, b"")] * 2
    assert alerts() == [("known", 3, False)]
    assert db.session.query(Note).count() == 1


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_of_a_project_that_is_gone_nothing_is_remembered(body, known, post):
    for model in (Note, Alert, Project):
        db.session.query(model).delete()
    db.session.commit()

    assert [post(body).status_code for _ in range(2)] == [404] * 2


def test_whoever_was_refused_is_not_let_as_far_again(known, post, count_queries):
    change(AlertIntegration, active=False)
    post(BODIES["a repeated one"])

    with count_queries() as queries:
        assert post(BODIES["a repeated one"]).status_code == 403

    assert [statement.split()[0] for statement in queries] == ["SELECT"]


def test_one_that_was_remembered_anew_meanwhile_is_not_forgotten(known):
    one = ingestion.endpoint("acme/shop", IDENTIFIER).remembered()
    other = ingestion.endpoint("acme/shop", IDENTIFIER).remembered()
    remembered = webhooks.Remembered()
    remembered.put("a", other)
    remembered.forget("a", one)

    assert remembered.find("a", KEY) is other
    remembered.forget("a", other)
    assert remembered.find("a", KEY) is None


@pytest.mark.parametrize("path", [PATH.replace("/x/", "/another name/"), PATH.replace("acme/shop", "Acme/SHOP")])
def test_it_is_known_by_any_name_that_it_is_called(path, app, known, post, count_queries):
    kept = app.extensions[webhooks.REMEMBERED]._kept
    before = list(kept)
    post(BODIES["a repeated one"], path=path)
    assert list(kept) == before

    with count_queries() as queries:
        assert post(BODIES["a repeated one"], path=path).status_code == 200

    assert [statement.split()[0] for statement in queries if not statement.startswith("BEGIN")] == ["UPDATE"]


def test_an_identifier_in_other_letters_is_another(known, post, endpoint):
    change(AlertIntegration, endpoint_identifier="00112233445566ab")
    path = PATH.replace(IDENTIFIER, "00112233445566ab")
    assert [post({}, path=path).status_code for _ in range(2)] == [200] * 2

    assert post({}, path=path.replace("ab.json", "AB.json")).status_code == 403


def test_a_new_key_opens_and_the_one_before_does_not(known, post):
    change(AlertIntegration, token=OTHER_KEY)

    assert [post({}, key=key).status_code for key in (OTHER_KEY, KEY, OTHER_KEY)] == [200, 401, 200]


def test_another_key_never_opened(known, post):
    assert [post({}, key=key).status_code for key in (OTHER_KEY, "", KEY[:-1])] == [401] * 3


def test_a_key_that_is_encrypted_anew_still_opens(known, post):
    change(AlertIntegration, token=KEY)  # which looks another way where it is stored

    assert post(BODIES["a repeated one"]).json == [{"iid": 1, "title": "known"}]
    assert alerts() == [("known", 4, False)]


def test_where_fields_come_from_is_what_it_is_now(known, post):
    change(AlertIntegration, mapping={"title": {"path": ["name"], "type": "string"}})

    assert post({"name": "by its name"}).json == [{"iid": 2, "title": "by its name"}]


def test_what_else_is_to_follow_is_what_it_is_now(known, post, project):
    db.session.add(IncidentSetting(project_id=project.id, create_issue=True))
    db.session.commit()

    post(BODIES["a repeated one"])

    assert [issue.title for issue in db.session.scalars(select(Issue))] == ["known"]
    assert alerts() == [("known", 4, False)]


def test_a_bot_that_was_removed_is_made_again(known, post):
    change(User, username="gone", email="gone@example.org", deleting_since=clock.now())

    assert post(BODIES["a new one"]).status_code == 200

    db.session.remove()
    notes = list(db.session.scalars(select(Note).where(Note.noteable_type == TARGET).order_by(Note.id)))
    assert [note.author.username for note in notes] == ["gone", ALERT_BOT]


def test_each_of_several_is_remembered_by_its_own_key(post, project, count_queries):
    for number, key in enumerate((KEY, OTHER_KEY)):
        row = AlertIntegration(project_id=project.id, type=PROMETHEUS, name=f"P{number}", active=True, token=key)
        row.endpoint_identifier = f"p{number}"
        db.session.add(row)
    db.session.commit()
    sent = batch(element("A"))

    answers = [post(sent, key=key, path=OF_PROMETHEUS) for key in (KEY, OTHER_KEY, KEY, KEY, OTHER_KEY)]

    assert [answer.status_code for answer in answers] == [200] * 5
    assert alerts() == [("A", 5, False)]
    db.session.execute(update(AlertIntegration).where(AlertIntegration.name == "P1").values(active=False))
    db.session.commit()
    assert [post(sent, key=key, path=OF_PROMETHEUS).status_code for key in (OTHER_KEY, KEY)] == [401, 200]


def test_one_that_is_outdated_harms_none_that_is_written_with_it(app, project, endpoint, known):
    other = AlertIntegration(project_id=project.id, type=HTTP, name="B", active=True, token=KEY, mapping={})
    other.endpoint_identifier = "bb"
    db.session.add(other)
    db.session.commit()
    remembered = [ingestion.endpoint("acme/shop", one).remembered() for one in (IDENTIFIER, "bb")]
    db.session.execute(update(AlertIntegration).where(AlertIntegration.id == endpoint.id).values(token=OTHER_KEY))
    db.session.commit()
    db.session.remove()

    def told(number):
        receiver = remembered[number % 2]
        one = parse_plain({"title": f"t{number}", "fingerprint": f"f{number}"})
        with app.app_context():
            try:
                return [taken.title for taken in ingestion.take_in_at_once((receiver, [one]))]
            except webhooks.Outdated:
                return None

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(told, range(16)))

    assert found == [[f"t{number}"] if number % 2 else None for number in range(16)]
    assert sorted(alerts()) == sorted([("known", 3, False), *((f"t{number}", 1, False) for number in range(1, 16, 2))])


def test_those_that_came_last_the_longest_ago_are_forgotten_when_they_are_too_many(known, monkeypatch):
    monkeypatch.setattr(webhooks, "MOST_REMEMBERED", 2)
    db.session.remove()
    one = ingestion.endpoint("acme/shop", IDENTIFIER).remembered()
    remembered = webhooks.Remembered()
    for place in "ab":
        remembered.put(place, one)
    remembered.find("a", KEY)
    remembered.put("c", one)

    assert [remembered.find(place, KEY) is one for place in "abc"] == [True, False, True]
