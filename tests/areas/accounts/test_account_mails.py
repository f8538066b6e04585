"""Mails about sign-ins from new addresses and about access tokens that expire soon."""

from __future__ import annotations

import datetime as dt

import pytest

from project_service.areas.accounts.sign_in import networks, sessions
from project_service.areas.accounts.sign_in.models import SignInNetwork
from project_service.areas.accounts.tokens import jobs
from project_service.domain.accounts.tokens import PersonalAccessToken
from project_service.domain.accounts.users import BLOCKED, User
from project_service.kit import clock, mail
from project_service.kit.db.session import db, unit_of_work
from tests.support.mails import queued_mails
from tests.support.sample_data import DEV, MAX, make_token, make_user


@pytest.fixture(autouse=True)
def _mail_is_on(monkeypatch):
    monkeypatch.setattr(mail, "is_on", lambda: True)


def mails():
    return [(one.recipient, one.subject) for one in queued_mails()]


def sign_in(user, address):
    with unit_of_work():
        row = db.session.get(User, user.id)
        sessions.start_session(row, second_factor=False, address=address, agent="Firefox\r\nBcc: x@example.org")


def test_a_sign_in_from_a_new_address_is_mailed_once(app):
    user = make_user("paula")
    for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.1"):
        sign_in(user, address)

    [one] = queued_mails()
    assert (one.recipient, one.subject) == ("paula@example.org", "Sign-in from a new address")
    assert "192.0.2.2" in one.body


def test_addresses_of_sessions_before_the_upgrade_are_known(app):
    user = make_user("paula", current_sign_in_ip="192.0.2.1", last_sign_in_ip="192.0.2.2")
    for address in ("192.0.2.2", "192.0.2.1"):
        sign_in(user, address)
    assert mails() == []

    sign_in(user, "192.0.2.3")
    assert len(mails()) == 1


def test_a_different_host_part_of_ipv6_is_the_same_address(app):
    user = make_user("paula")
    for address in ("2001:db8:1:2::5", "2001:db8:1:2:aaaa::7", None, "unknown"):
        sign_in(user, address)
    assert mails() == []

    sign_in(user, "2001:db8:1:3::5")
    assert len(mails()) == 1


def test_unused_networks_are_forgotten(app, monkeypatch):
    sign_in(make_user("paula"), "192.0.2.1")
    later = clock.now() + dt.timedelta(days=366)
    monkeypatch.setattr(clock, "now", lambda: later)

    with unit_of_work():
        networks.prune()

    assert db.session.scalar(db.select(SignInNetwork)) is None


@pytest.mark.parametrize(
    ("address", "network"),
    [("::ffff:192.0.2.1", "192.0.2.1"), ("fe80::1%eth0", "fe80::/64"), ("", None), (None, None), ("x", None)],
)
def test_networks(address, network):
    assert networks.network_of(address) == network


@pytest.mark.both_databases
def test_access_tokens_are_mailed_once_a_week_before_they_expire(app, people, monkeypatch):
    today = clock.today()
    for days, name in ((0, "expired"), (1, "soon"), (7, "in a week"), (8, "later")):
        make_token(people[MAX], name=name, expires_at=today + dt.timedelta(days=days))
    make_token(people[MAX], name="revoked", expires_at=today + dt.timedelta(days=1), revoked=True)
    make_token(people[MAX], name="unlimited")
    make_token(people[DEV], name="of dev", expires_at=today + dt.timedelta(days=2))
    make_token(make_user("barred", state=BLOCKED), name="barred", expires_at=today + dt.timedelta(days=2))

    jobs.mail_expiring_personal_tokens()
    jobs.mail_expiring_personal_tokens()

    by_recipient = {one.recipient: one.body for one in queued_mails()}
    assert sorted(mails()) == [(f"{name}@example.org", "Access tokens expire soon") for name in (DEV, MAX)]
    listed = [
        name
        for name in ("soon", "in a week", "expired", "later", "revoked")
        if f"- {name}," in by_recipient["max@example.org"]
    ]
    assert listed == ["soon", "in a week"]

    monkeypatch.setattr(clock, "today", lambda: today + dt.timedelta(days=1))
    jobs.mail_expiring_personal_tokens()
    assert len(mails()) == 3


def test_without_mail_tokens_are_mailed_later(app, people, monkeypatch):
    make_token(people[MAX], expires_at=clock.today() + dt.timedelta(days=1))
    monkeypatch.setattr(mail, "is_on", lambda: False)

    jobs.mail_expiring_personal_tokens()

    assert db.session.scalar(db.select(PersonalAccessToken.expiry_mailed_on)) is None
