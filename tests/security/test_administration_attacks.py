"""Attacks on the administration pages and on mails about accounts: forged ids, absurd numbers, foreign hosts."""

from __future__ import annotations

import html
import re

import pytest

from project_service.areas.accounts.sign_in import password_resets
from project_service.kit import mail
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.jobs import Task
from tests.support.mails import queued_mails
from tests.support.sample_data import ADA
from tests.support.visitors import CSRF

FIELD = re.compile(r'<(?:input|select|textarea)[^>]*\bname="([^"]+)"')
ABSURD = ("-1", "0", "99999999999999999999999", "1e400", "NaN", "\u0662", "x" * 5000, "", "true", "2147483648", "-0.5")
IDS = ("0", "2147483648", "99999999999999999999999")
REQUEST = "/users/password/new"


def admin_posts(app):
    return [
        (rule.endpoint, rule)
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/admin") and "POST" in (rule.methods or ())
    ]


def test_administration_pages_refuse_forged_ids_and_absurd_numbers(app, visit):
    administrator = visit(ADA)
    names = set()
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith("/admin") and "GET" in (rule.methods or ()) and not rule.arguments:
            names |= set(map(html.unescape, FIELD.findall(administrator.get(rule.rule).text)))
    assert len(names) > 20
    token = administrator.csrf_token()

    failures = []
    for endpoint, rule in admin_posts(app):
        for number in IDS if rule.arguments else ("",):
            path = re.sub(r"<[^>]+>", number, rule.rule)
            fields = dict.fromkeys(names, number or "99999999999999999999999") | {"csrf_token": token}
            for value in ABSURD if not rule.arguments else ABSURD[:2]:
                response = administrator.open("POST", path, data=fields | dict.fromkeys(names - {"csrf_token"}, value))
                if response.status_code >= 500:
                    failures.append((endpoint, path, value, response.status_code))

    assert failures == []


def run_requests():
    for task in list(db.session.scalars(db.select(Task).where(Task.name == password_resets.send_reset.name))):
        with unit_of_work():
            password_resets.send_reset(*task.arguments)
            db.session.delete(task)


@pytest.fixture
def _mail_is_on(monkeypatch):
    monkeypatch.setattr(mail, "is_on", lambda: True)


@pytest.mark.usefixtures("_mail_is_on")
def test_links_of_mails_never_name_the_host_of_a_request(visitor, paula):
    host, headers = "http://evil.example.org", {"X-Forwarded-Host": "evil.example.org"}
    token = html.unescape(CSRF.search(visitor.get(REQUEST, base_url=host, headers=headers).text).group(1))
    fields = {"csrf_token": token, "email": "paula@example.org"}
    assert visitor.open("POST", REQUEST, data=fields, base_url=host, headers=headers).status_code == 302
    run_requests()

    (sent,) = queued_mails()
    assert "reset_password_token=" in sent.body
    assert "evil" not in sent.body


@pytest.mark.usefixtures("_mail_is_on")
def test_spellings_of_an_address_share_their_limit_of_mails(visitor, paula):
    spellings = (
        "paula@example.org",
        "PAULA@example.org",
        " paula@example.org",
        "Paula@Example.Org\t",
        "paula@EXAMPLE.org",
    )
    statuses = {visitor.send(REQUEST, email=email).status_code for email in spellings * 2}
    run_requests()

    assert statuses == {302}
    assert len(queued_mails()) == password_resets.MAILS.calls


@pytest.mark.usefixtures("_mail_is_on")
@pytest.mark.parametrize("email", ["paula@example.org\r\nBcc: x@example.org", "paula@example.org,x@example.org", "%"])
def test_addresses_with_more_than_an_address_get_no_mail(email, visitor, paula):
    visitor.send(REQUEST, email=email)
    run_requests()

    assert queued_mails() == []
