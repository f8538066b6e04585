"""The outbox, and what drains it: through a small mail server of the tests' own."""

from __future__ import annotations

import dataclasses
import smtplib
import socketserver
import ssl
import threading
import time
from email import message_from_bytes, policy

import pytest
from sqlalchemy import select

from project_service.kit import jobs, mail
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.jobs import Task
from project_service.kit.mail import Mail


class Postman(socketserver.StreamRequestHandler):
    """Speaks just enough of SMTP."""

    def handle(self):
        server = self.server
        server.connections += 1
        self.say("220 here")
        recipients, body = [], []
        while line := self.rfile.readline():
            words = line.decode().split()
            command = words[0].upper()
            if command == "EHLO":
                self.say("250-here", "250 AUTH PLAIN")
            elif command == "AUTH":
                server.logins.append(words)
                self.say("235 fine")
            elif command == "RCPT":
                recipients.append(line.decode().split("<")[1].split(">")[0])
                self.say(server.answers.get(recipients[-1], "250 fine"))
            elif command == "DATA":
                self.say("354 go on")
                body = []
                while (line := self.rfile.readline()) != b".\r\n":
                    body.append(line)
                answer = server.answers.get("DATA", "250 fine")
                if answer.startswith("250"):
                    server.mails.append((recipients[-1], message_from_bytes(b"".join(body), policy=policy.default)))
                self.say(answer)
            elif command == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 fine")

    def say(self, *lines):
        self.wfile.write("".join(f"{line}\r\n" for line in lines).encode())


class MailServer(socketserver.ThreadingTCPServer):
    """Keeps what it is sent; ``answers`` by recipient, or to ``DATA``."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Postman)
        self.mails, self.logins, self.answers, self.connections = [], [], {}, 0


@pytest.fixture
def post_office():
    with MailServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def configure(app, monkeypatch):
    """Changes settings of mail for one test."""

    def change(**changes):
        settings = dataclasses.replace(app.config["SETTINGS"], **changes)
        monkeypatch.setitem(app.config, "SETTINGS", settings)
        return settings

    return change


@pytest.fixture
def configured(configure, post_office):
    return configure(smtp_host="127.0.0.1", smtp_port=post_office.server_address[1], smtp_from="us@example.org")


def send(*recipients, subject="Hello", body="Well\n"):
    """Queue mails in a unit of their own; how many."""
    with unit_of_work():
        return mail.queue(recipients, subject, body)


def waiting():
    db.session.remove()
    return [one.recipient for one in db.session.scalars(select(Mail).order_by(Mail.id))]


def drains():
    db.session.remove()
    return list(db.session.scalars(select(Task).where(Task.name == "kit.mail.drain").order_by(Task.id)))


def test_nothing_is_queued_without_a_mail_server(app):
    assert send("a@example.org") == 0
    assert (waiting(), drains()) == ([], [])


def test_nobody_is_sent_nothing(configured):
    assert send() == 0
    assert (waiting(), drains()) == ([], [])


def test_a_mail_is_sent_and_leaves_the_outbox(configured, post_office, run_jobs):
    assert send("a@example.org", subject="A\r\nBcc: all@example.org", body="Grüße\n") == 1

    run_jobs()

    [(recipient, message)] = post_office.mails
    assert (recipient, message["To"], message["From"]) == ("a@example.org", "a@example.org", "us@example.org")
    assert (message["Subject"], message["Bcc"]) == ("A Bcc: all@example.org", None)
    assert message.get_content().splitlines() == ["Grüße"]
    assert message["Date"]
    assert message["Message-ID"]
    assert (waiting(), drains(), post_office.logins) == ([], [], [])


def test_everybody_gets_one_mail_however_often_named(configured, post_office, run_jobs):
    assert send("b@example.org", "a@example.org", "b@example.org") == 2

    run_jobs()

    assert [recipient for recipient, _ in post_office.mails] == ["a@example.org", "b@example.org"]


def test_one_bell_is_rung_for_many_mails(configured, post_office, run_jobs):
    for number in range(60):
        send(f"a{number}@example.org")

    assert len(drains()) == 1
    assert run_jobs() == 1
    assert len(post_office.mails) == 60
    assert post_office.connections == 2


def test_a_mail_is_gone_with_what_it_tells_of(configured):
    def fail():
        with unit_of_work():
            mail.queue(["a@example.org"], "Hello", "Well")
            raise LookupError

    with pytest.raises(LookupError):
        fail()

    assert (waiting(), drains()) == ([], [])


def test_a_drain_at_work_or_given_up_is_none_that_is_due(configured):
    send("a@example.org")
    jobs.take_up(drains()[0].id)
    send("b@example.org")
    with unit_of_work():
        for task in drains():
            db.session.merge(task).failed_at = task.created_at
    send("c@example.org")

    assert len(drains()) == 3


@pytest.mark.both_databases
def test_a_drain_that_ends_meanwhile_leaves_no_mail_behind(app, configured, post_office, run_jobs):
    send("a@example.org")
    task_id = drains()[0].id
    db.session.remove()

    def drain():
        with app.app_context():
            jobs.answer(task_id)
            db.session.remove()

    worker = threading.Thread(target=drain)
    with unit_of_work():
        mail.queue(["b@example.org"], "Hello", "Well")
        worker.start()
        worker.join(0.5)
    worker.join()
    run_jobs()

    assert (waiting(), len(post_office.mails)) == ([], 2)


def test_nobodys_writing_waits_for_the_mail_server(app, configured, monkeypatch, post_office, run_jobs):
    written = []

    def write():
        with app.app_context():
            send("b@example.org")
            written.append(time.monotonic())
            db.session.remove()

    def connect(settings):
        if not written:
            thread = threading.Thread(target=write)
            thread.start()
            thread.join(20)
        assert written
        return smtplib.SMTP(settings.smtp_host, settings.smtp_port)

    send("a@example.org")
    monkeypatch.setattr(mail, "connect", connect)
    with unit_of_work():
        mail.drain.function()

    assert len(post_office.mails) == 2


def test_a_mail_that_is_refused_for_good_is_dropped(configured, post_office, run_jobs):
    post_office.answers["a@example.org"] = "550 nobody"
    send("a@example.org", "b@example.org")

    run_jobs()

    assert [recipient for recipient, _ in post_office.mails] == ["b@example.org"]
    assert (waiting(), drains()) == ([], [])


def test_a_mail_that_is_refused_for_its_text_is_dropped(configured, post_office, run_jobs):
    post_office.answers["DATA"] = "554 no"
    send("a@example.org")

    run_jobs()

    assert (waiting(), drains(), post_office.mails) == ([], [], [])


def test_an_address_the_server_cannot_write_to_is_dropped(configured, post_office, run_jobs):
    send("ä@example.org", "b@example.org")

    run_jobs()

    assert [recipient for recipient, _ in post_office.mails] == ["b@example.org"]
    assert waiting() == []


@pytest.mark.parametrize("step", ["a@example.org", "DATA"])
def test_a_mail_that_the_server_wants_later_stays(step, configured, post_office, run_jobs):
    post_office.answers[step] = "451 come back"
    send("a@example.org")

    run_jobs()

    assert (waiting(), post_office.mails) == (["a@example.org"], [])
    assert [(task.attempts, task.failed_at) for task in drains()] == [(1, None)]


def test_others_do_not_wait_for_one_that_is_wanted_later(configured, post_office, run_jobs):
    post_office.answers["a@example.org"] = "451 come back"
    send("a@example.org", "b@example.org")

    run_jobs()

    assert ([recipient for recipient, _ in post_office.mails], waiting()) == (["b@example.org"], ["a@example.org"])


def test_a_mail_server_that_is_away_loses_nothing(configure, run_jobs):
    with socketserver.TCPServer(("127.0.0.1", 0), Postman) as nobody:
        port = nobody.server_address[1]
    configure(smtp_host="127.0.0.1", smtp_port=port)
    send("a@example.org")

    run_jobs()

    assert waiting() == ["a@example.org"]
    assert [(task.attempts, task.failed_at) for task in drains()] == [(1, None)]


def test_the_user_signs_in(configure, configured, post_office, run_jobs):
    configure(smtp_host=configured.smtp_host, smtp_port=configured.smtp_port, smtp_username="us", smtp_password="pw")
    send("a@example.org")

    run_jobs()

    assert ([words[:2] for words in post_office.logins], len(post_office.mails)) == ([["AUTH", "PLAIN"]], 1)


class Fake:
    """What is asked of a connection."""

    def __init__(self, host, port, timeout, context=None):
        self.host, self.port, self.contexts = host, port, [context] if context else []

    def starttls(self, *, context):
        self.contexts.append(context)


@pytest.mark.parametrize(("security", "count"), [("none", 0), ("starttls", 1), ("tls", 1)])
def test_a_secured_connection_checks_whom_it_speaks_to(security, count, configure, monkeypatch):
    for name in ("SMTP", "SMTP_SSL"):
        monkeypatch.setattr(smtplib, name, type(name, (Fake,), {}))

    server = mail.connect(configure(smtp_host="mail.example", smtp_port=587, smtp_security=security))

    assert type(server).__name__ == ("SMTP_SSL" if security == "tls" else "SMTP")
    assert [(one.verify_mode, one.check_hostname) for one in server.contexts] == [(ssl.CERT_REQUIRED, True)] * count
