"""What silences hold back, and what is announced at their end (silences reference, section 3)."""

from __future__ import annotations

import pytest

from project_service.areas.silences.jobs import update_silences
from project_service.kit.db.session import db
from tests.areas.notifications.conftest import channel, later, local_hooks, make_rule, post, receiver, send, to

__all__ = ["channel", "later", "local_hooks", "post", "receiver", "send"]


@pytest.fixture
def titles(channel, project, receiver):
    make_rule(project, to(channel), events=["alert_triggered", "alert_resolved", "alert_reopened"], group_interval=30)
    return lambda: [body["title"] for body in receiver.bodies]


@pytest.fixture
def silence(as_maintainer, project):
    def make(value="Disk*", duration=3600):
        matcher = {"field": "title", "operator": "matches", "value": value}
        fields = {"matchers": [matcher], "duration": duration, "comment": "Move"}
        response = as_maintainer.post(f"/projects/{project.id}/silences", json=fields)
        assert response.status_code == 201, response.json
        update()
        return f"/projects/{project.id}/silences/{response.json['id']}"

    return make


def update():
    db.session.remove()
    update_silences()
    db.session.remove()


def test_what_is_still_open_at_the_end_is_one_message(post, later, send, silence, titles):
    silence()
    post({"title": "Disk full"}, {"title": "Disk slow"}, {"title": "Disk hot", "fingerprint": "hot"})
    post({"title": "Disk hot", "fingerprint": "hot", "end_time": "2030-01-01T00:00:00Z"})
    send()
    during = titles()
    later(hours=1)
    update()
    send()

    assert (during, titles()) == ([], ["2 alerts are open in shop after the silence ended"])
    later(hours=1)
    update()
    send()
    assert len(titles()) == 1


def test_an_alert_that_was_announced_before_is_told_when_it_is_resolved_and_not_again(
    post, later, send, silence, titles
):
    post({"title": "Disk full", "fingerprint": "a"}, {"title": "Disk hot", "fingerprint": "b"})
    send()
    silence()
    post({"title": "Disk full", "fingerprint": "a", "end_time": "2030-01-01T00:00:00Z"})
    send(60)
    later(hours=1)
    update()
    send(60)

    assert titles()[1:] == ["[RESOLVED] Disk full"]


def test_web_hooks_are_told_of_silenced_alerts_and_that_they_are(
    as_maintainer, local_hooks, post, project, receiver, send, silence
):
    hook = {"url": receiver.url, "alert_events": True, "push_events": False}
    assert as_maintainer.post(f"/projects/{project.id}/hooks", json=hook).status_code == 201
    silence()
    post({"title": "Disk full"}, {"title": "CPU hot"})
    send()

    told = [(body["object_attributes"]["title"], body["object_attributes"]["silenced"]) for body in receiver.bodies]
    assert told == [("Disk full", True), ("CPU hot", False)]


def test_the_last_of_overlapping_silences_announces(post, later, send, silence, titles):
    silence()
    silence("*full", duration=7200)
    post({"title": "Disk full"})
    send()
    later(hours=1)
    update()
    send()
    between = titles()
    later(hours=1)
    update()
    send()

    assert (between, titles()) == ([], ["[CRITICAL] Disk full"])


def test_a_silence_that_is_ended_early_announces_at_once(as_maintainer, post, send, silence, titles):
    address = silence()
    post({"title": "Disk full"})
    send()
    as_maintainer.delete(address)
    update()
    send()

    assert titles() == ["[CRITICAL] Disk full"]


def test_a_silence_that_is_made_while_a_group_waits_holds_back_what_waits(post, later, send, silence, titles):
    post({"title": "Disk full"}, {"title": "CPU hot"})
    send(0)
    silence()
    send()
    during = titles()
    later(hours=1)
    update()
    send(60)

    assert (during, titles()[1:]) == (["[CRITICAL] CPU hot"], ["[CRITICAL] Disk full"])
