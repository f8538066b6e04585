"""Links that acknowledge the alerts of a message (acknowledging reference)."""

from __future__ import annotations

import datetime as dt
import itertools

import pytest
from itsdangerous import URLSafeTimedSerializer
from sqlalchemy import select, update

from project_service.areas.alerts.models import Alert, Status
from project_service.areas.notifications.actions import links
from project_service.areas.notifications.actions.links import Link
from project_service.areas.notifications.models import NotificationChannel, NotificationDelivery
from project_service.domain.accounts.users import User
from project_service.domain.tracker.notes import Note
from project_service.kit.db.session import db, unit_of_work
from tests.areas.notifications.conftest import make_rule, to
from tests.support.sample_data import DEV, GUS


@pytest.fixture
def link_of(post, send, channel, people, project):
    """Has two alerts told to the channel; makes a link of the message, by default for a developer."""
    make_rule(project, to(channel))

    def make(**whose):
        post({"title": "Disk full"}, {"title": "CPU hot"})
        send()
        number = db.session.scalars(select(NotificationDelivery.id).order_by(NotificationDelivery.id.desc())).first()
        return links.PATH + links.token_of(Link(number, **(whose or {"user_id": people[DEV].id})))

    return make


@pytest.fixture
def ask(app):
    def send_request(path, method="POST", accept=None, **options):
        db.session.remove()
        headers = {"Accept": accept} if accept else {}
        response = app.test_client(use_cookies=False).open(path, method=method, headers=headers, **options)
        db.session.remove()
        return response

    return send_request


def statuses():
    return sorted(Status(one).name for one in db.session.scalars(select(Alert.status)))


def test_opening_a_link_changes_nothing_and_the_button_acknowledges_all_alerts(ask, link_of):
    link = link_of()

    shown, _, _ = (ask(link, method) for method in ("GET", "HEAD", "GET"))
    before = statuses()
    told, again = ask(link), ask(link)

    assert ("Acknowledge 2 alerts?" in shown.text, "You act as @dev" in shown.text) == (True, True)
    assert (shown.headers["Referrer-Policy"], shown.headers["Cache-Control"]) == ("no-referrer", "no-store")
    assert (before, statuses()) == (["TRIGGERED"] * 2, ["ACKNOWLEDGED"] * 2)
    assert (told.text, told.mimetype, again.text) == (
        *("Acknowledged 2 alerts.", "text/plain"),
        "Already acknowledged by @dev.",
    )
    assert "Already acknowledged" in ask(link, accept="text/html").text


def test_only_alerts_that_are_still_triggered_are_acknowledged(ask, link_of):
    link = link_of()
    with unit_of_work():
        db.session.execute(update(Alert).where(Alert.iid == 1).values(status=int(Status.RESOLVED)))

    assert (ask(link).text, statuses()) == ("Acknowledged 1 alert.", ["ACKNOWLEDGED", "RESOLVED"])


def test_a_shared_channel_asks_to_sign_in(ask, link_of, channel, visit):
    link = link_of(channel_id=channel.id)
    session = link.replace("/a/", "/s/")

    assert "Sign in" in ask(link, "GET").text
    assert [ask(link).status_code, ask(link, accept="text/html").status_code, statuses()] == [
        *(403, 303),
        ["TRIGGERED"] * 2,
    ]
    assert visit(GUS).send(session).status_code == 404
    developer = visit(DEV)
    assert "You act as @dev" in developer.get(link).text
    assert "Acknowledged 2 alerts." in developer.send(session).text


def test_a_channel_with_anonymous_actions_acts_as_the_bot(ask, link_of, channel):
    with unit_of_work():
        db.session.get(NotificationChannel, channel.id).anonymous_actions = True
    link = link_of(channel_id=channel.id)

    assert ask(link).text == "Acknowledged 2 alerts."
    assert "acknowledged through the channel **#ops**" in list(db.session.scalars(select(Note.body)))


def test_links_end_with_the_access_of_their_user_after_a_week_and_with_another_key(
    ask, link_of, later, people, monkeypatch
):
    link = link_of()
    with unit_of_work():
        db.session.get(User, people[DEV].id).state = "blocked"
    blocked = ask(link)
    with unit_of_work():
        db.session.get(User, people[DEV].id).state = "active"
    forged = links.PATH + URLSafeTimedSerializer("another key", salt=links.SALT).dumps([1, "acknowledge", 1, None])
    monkeypatch.setattr(links, "LIFETIME", dt.timedelta(seconds=-1))

    answers = [blocked, ask(forged), ask(link), ask(link, "GET")]
    assert [one.status_code for one in answers] == [404] * 4
    assert "This link is no longer valid." in answers[-1].text
    assert statuses() == ["TRIGGERED"] * 2


def test_links_are_limited_by_address(ask, link_of):
    link = link_of()

    answers = [ask(link).status_code for _ in itertools.repeat(None, 31)]
    assert answers == [200] * 30 + [429]


def test_messages_of_channels_have_the_link_only_for_alerts_that_were_opened(link_of, project):
    link_of()
    delivery = db.session.scalars(select(NotificationDelivery)).first()
    channel = db.session.scalars(select(NotificationChannel)).first()

    url, resolve_url = links.urls_for_channel(delivery, channel)
    assert (url.startswith("http://localhost/-/notifications/a/"), len(url) <= 200, len(resolve_url) <= 200) == (
        True,
    ) * 3
    delivery.content = delivery.content | {"items": [{"event": "alert_resolved"}]}
    assert links.urls_for_channel(delivery, channel) == (None, None)
    db.session.rollback()


def test_a_link_resolves_what_was_acknowledged_before(ask, link_of, people):
    acknowledging = link_of()
    number = links.read(acknowledging.removeprefix(links.PATH)).delivery_id
    link = links.PATH + links.token_of(Link(number, people[DEV].id, action=links.RESOLVE))

    done = ask(acknowledging, accept="text/html").text
    assert (">Resolve</a>" in done, "Resolve 2 alerts?" in ask(link, "GET").text) == (True, True)
    assert (ask(link).text, statuses()) == ("Resolved 2 alerts.", ["RESOLVED"] * 2)
    assert ask(link).text == "Already resolved by @dev."
