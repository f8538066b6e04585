"""Queued mails, and how they are sent: through a small mail server of the tests' own."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import re
import smtplib
import socketserver
import ssl
import threading
import time
from email import message_from_bytes, policy
from email.header import decode_header, make_header

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select, text

from project_service.kit import clock, deliveries, mail
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.deliveries import Delivery
from project_service.kit.deliveries.dispatching import prune_deliveries
from project_service.kit.mail import OutgoingMail
from tests.support.mails import queued_mails


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
                self.say(server.responses.get(recipients[-1], "250 fine"))
            elif command == "DATA":
                self.say("354 go on")
                body = []
                while (line := self.rfile.readline()) != b".\r\n":
                    body.append(line)
                response = server.responses.get("DATA", "250 fine")
                if response.startswith("250"):
                    server.mails.append((recipients[-1], message_from_bytes(b"".join(body), policy=policy.default)))
                self.say(response)
            elif command == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 fine")

    def say(self, *lines):
        self.wfile.write("".join(f"{line}\r\n" for line in lines).encode())


class MailServer(socketserver.ThreadingTCPServer):
    """Records received mails; ``responses`` by recipient, or to ``DATA``."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Postman)
        self.mails, self.logins, self.responses, self.connections = [], [], {}, 0


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


@pytest.fixture
def later(monkeypatch):
    """Moves the clock forward."""
    real = clock.now
    passed = [dt.timedelta()]
    monkeypatch.setattr(clock, "now", lambda: real() + passed[0])

    def move(time):
        passed[0] += time

    return move


def send(*recipients, subject="Hello", body="Well\n"):
    """Queue mails in a unit of their own; how many."""
    with unit_of_work():
        return mail.queue(recipients, subject, body)


def waiting():
    db.session.remove()
    return [mail.recipient for mail in queued_mails()]


def set_aside():
    """The recipients of mails that will not be sent, with the errors."""
    db.session.remove()
    failed = select(Delivery).where(Delivery.failed_at.is_not(None)).order_by(Delivery.id)
    return [(row.content["recipient"], row.error) for row in db.session.scalars(failed)]


def test_no_mail_is_queued_without_a_mail_server(app):
    assert send("a@example.org") == 0
    assert waiting() == []


def test_a_mail_without_recipients_is_not_queued(configured):
    assert send() == 0
    assert waiting() == []


def test_a_mail_is_sent_and_leaves_the_outbox(configured, post_office):
    assert send("a@example.org", subject="A\r\nBcc: all@example.org", body="Grüße\n") == 1

    deliveries.send_all_due()

    [(recipient, message)] = post_office.mails
    assert (recipient, message["To"], message["From"]) == ("a@example.org", "a@example.org", "us@example.org")
    assert (message["Subject"], message["Bcc"]) == ("A Bcc: all@example.org", None)
    assert message.get_content().splitlines() == ["Grüße"]
    assert message["Date"]
    assert message["Message-ID"]
    assert (waiting(), post_office.logins) == ([], [])


def test_each_recipient_gets_one_mail(configured, post_office):
    assert send("b@example.org", "a@example.org", "b@example.org") == 2

    deliveries.send_all_due()

    assert [recipient for recipient, _ in post_office.mails] == ["a@example.org", "b@example.org"]


def test_many_mails_share_connections(configured, post_office):
    for number in range(60):
        send(f"a{number}@example.org")

    deliveries.send_all_due()

    assert len(post_office.mails) == 60
    assert post_office.connections == 2


def test_a_mail_is_rolled_back_with_its_transaction(configured):
    def fail():
        with unit_of_work():
            mail.queue(["a@example.org"], "Hello", "Well")
            raise LookupError

    with pytest.raises(LookupError):
        fail()

    assert waiting() == []


def test_texts_of_mails_are_encrypted_at_rest(configured):
    send("a@example.org", body="secret-link")

    [stored] = db.session.scalars(text("SELECT content FROM deliveries"))
    assert "secret-link" not in stored


def test_writers_do_not_wait_for_the_mail_server(app, configured, monkeypatch, post_office):
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
    deliveries.send_all_due()

    assert len(post_office.mails) == 2


def test_a_permanently_refused_mail_is_set_aside(configured, post_office):
    post_office.responses["a@example.org"] = "550 nobody"
    send("a@example.org", "b@example.org")

    deliveries.send_all_due()

    assert [recipient for recipient, _ in post_office.mails] == ["b@example.org"]
    assert waiting() == []
    [(recipient, error)] = set_aside()
    assert (recipient, "550" in error) == ("a@example.org", True)


def test_a_mail_with_refused_content_is_set_aside(configured, post_office):
    post_office.responses["DATA"] = "554 no"
    send("a@example.org")

    deliveries.send_all_due()

    assert (waiting(), post_office.mails) == ([], [])
    assert set_aside() == [("a@example.org", "SMTPDataError: (554, b'no')")]


def test_a_mail_to_an_unsupported_address_is_set_aside(configured, post_office):
    send("ä@example.org", "b@example.org")

    deliveries.send_all_due()

    assert [recipient for recipient, _ in post_office.mails] == ["b@example.org"]
    assert (waiting(), [recipient for recipient, _ in set_aside()]) == ([], ["ä@example.org"])


BAD_ADDRESSES = [
    "a,b@example.org",
    "=?utf-8?q?a?=@example.org",
    "a:b@example.org",
    '"a"@example.org',
    "(a)@example.org",
]


def test_a_mail_to_an_ambiguous_address_is_set_aside(configured, post_office):
    send(*BAD_ADDRESSES, "b@example.org", "b@[127.0.0.1]")

    deliveries.send_all_due()

    assert sorted(recipient for recipient, _ in set_aside()) == sorted(BAD_ADDRESSES)
    assert sorted(recipient for recipient, _ in post_office.mails) == ["b@[127.0.0.1]", "b@example.org"]


def test_a_subject_with_malformed_encoded_words_is_sent(configured, post_office):
    send("a@example.org", subject="déjà =?utf-8?q?=ff?=")
    send("b@example.org")

    deliveries.send_all_due()

    assert [recipient for recipient, _ in post_office.mails] == ["a@example.org", "b@example.org"]
    assert (post_office.mails[0][1]["Subject"], waiting(), set_aside()) == ("déjà =?utf-8?q?=ff?=", [], [])


def test_a_mail_that_cannot_be_built_is_set_aside(configured, monkeypatch, post_office):
    real = mail.build

    def build(mail_from, letter):
        if letter.subject == "bad":
            raise UnicodeEncodeError("ascii", "ä", 0, 1, "because")
        return real(mail_from, letter)

    monkeypatch.setattr(mail, "build", build)
    for number in range(mail.BATCH_SIZE + 1):
        send(f"a{number}@example.org", subject="bad")
    send("b@example.org")

    deliveries.send_all_due()

    assert [recipient for recipient, _ in post_office.mails] == ["b@example.org"]
    assert (waiting(), len(set_aside())) == ([], mail.BATCH_SIZE + 1)


def test_a_mail_is_retried_when_the_server_closes_the_connection(configured, post_office):
    post_office.responses["a@example.org"] = "421 too busy"
    send("a@example.org", "b@example.org")

    deliveries.send_all_due()

    assert ([recipient for recipient, _ in post_office.mails], waiting()) == (["b@example.org"], ["a@example.org"])


@pytest.mark.parametrize("step", ["a@example.org", "DATA"])
def test_a_deferred_mail_is_retried_later(step, configured, later, post_office):
    post_office.responses[step] = "451 come back"
    send("a@example.org")

    deliveries.send_all_due()
    assert (waiting(), post_office.mails) == (["a@example.org"], [])

    del post_office.responses[step]
    deliveries.send_all_due()
    assert post_office.mails == []

    later(mail.FIRST_RETRY_DELAY)
    deliveries.send_all_due()
    assert ([recipient for recipient, _ in post_office.mails], waiting()) == (["a@example.org"], [])


def test_a_mail_that_is_never_accepted_is_set_aside(configured, later, post_office):
    post_office.responses["a@example.org"] = "451 come back"
    send("a@example.org")

    for _ in range(mail.MAX_ATTEMPTS):
        assert set_aside() == []
        deliveries.send_all_due()
        later(mail.FIRST_RETRY_DELAY * 2**mail.MAX_ATTEMPTS)

    assert [recipient for recipient, _ in set_aside()] == ["a@example.org"]


def test_deferred_mails_do_not_block_others(configured, post_office):
    for number in range(mail.BATCH_SIZE + 1):
        post_office.responses[f"a{number}@example.org"] = "451 come back"
        send(f"a{number}@example.org")
    deliveries.send_all_due()

    send("b@example.org")
    deliveries.send_all_due()

    assert [recipient for recipient, _ in post_office.mails] == ["b@example.org"]
    assert len(waiting()) == mail.BATCH_SIZE + 1


def test_mails_set_aside_are_removed_later(configured, later, post_office):
    post_office.responses["DATA"] = "554 no"
    send("a@example.org")
    deliveries.send_all_due()
    later(deliveries.FAILED_RETENTION + mail.FIRST_RETRY_DELAY)

    with unit_of_work():
        prune_deliveries()

    assert set_aside() == []


def test_mails_for_later_do_not_block_others(configured, post_office):
    post_office.responses["a@example.org"] = "451 come back"
    send("a@example.org", "b@example.org")

    deliveries.send_all_due()

    assert ([recipient for recipient, _ in post_office.mails], waiting()) == (["b@example.org"], ["a@example.org"])


def test_an_unreachable_mail_server_loses_no_mail(configure):
    with socketserver.TCPServer(("127.0.0.1", 0), Postman) as nobody:
        port = nobody.server_address[1]
    configure(smtp_host="127.0.0.1", smtp_port=port)
    send("a@example.org")

    deliveries.send_all_due()

    assert waiting() == ["a@example.org"]
    assert list(db.session.scalars(select(Delivery.attempts))) == [0]


def test_the_mail_client_authenticates(configure, configured, post_office):
    configure(smtp_host=configured.smtp_host, smtp_port=configured.smtp_port, smtp_username="us", smtp_password="pw")
    send("a@example.org")

    deliveries.send_all_due()

    assert ([words[:2] for words in post_office.logins], len(post_office.mails)) == ([["AUTH", "PLAIN"]], 1)


class Fake:
    """What is asked of a connection."""

    def __init__(self, host, port, timeout, context=None):
        self.host, self.port, self.contexts = host, port, [context] if context else []

    def starttls(self, *, context):
        self.contexts.append(context)


@pytest.mark.parametrize(("security", "count"), [("none", 0), ("starttls", 1), ("tls", 1)])
def test_a_tls_connection_verifies_the_certificate(security, count, configure, monkeypatch):
    for name in ("SMTP", "SMTP_SSL"):
        monkeypatch.setattr(smtplib, name, type(name, (Fake,), {}))

    server = mail.connect(configure(smtp_host="mail.example", smtp_port=587, smtp_security=security))

    assert type(server).__name__ == ("SMTP_SSL" if security == "tls" else "SMTP")
    assert [(one.verify_mode, one.check_hostname) for one in server.contexts] == [(ssl.CERT_REQUIRED, True)] * count


INJECTION = (
    "=?utf-8?q?Disk_full=0D=0AReply-To:_evil@evil.example=0D=0AContent-Type:_text/html=0D=0A=0D=0A<h1>Hello</h1>?="
)
HEADERS = [
    *("From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type", "Content-Transfer-Encoding"),
]


def test_encoded_words_cannot_add_headers(configured, post_office):
    send("a@example.org", subject=INJECTION, body=f"{INJECTION}\n")

    deliveries.send_all_due()

    [(_, message)] = post_office.mails
    assert message.keys() == HEADERS
    assert (message["Subject"], message.get_content_type()) == (INJECTION, "text/plain")
    assert message.get_content().splitlines() == [INJECTION]


encoded_bytes = st.sampled_from(["=0D=0A", "=0A", "=00", "=ff", "_", "=C3=A4", "Reply-To:_x", "=3D=3Futf-8", "a"])
encoded_words = st.one_of(
    st.lists(encoded_bytes, max_size=12).map(lambda parts: f"=?utf-8?q?{''.join(parts)}?="),
    st.binary(max_size=30).map(lambda data: f"=?utf-8?b?{base64.b64encode(data).decode()}?="),
    st.sampled_from(["=?", "?=", "=?utf-8?q?", "=?x?q?a?=", "=?iso-8859-1*de?Q?a?=", "\r\n", "\r", "\n", " ", ": "]),
)
texts = st.lists(encoded_words | st.text(st.characters(codec="utf-8"), max_size=20), max_size=8).map("".join)


@given(name=texts, subject=texts, body=texts)
def test_any_text_is_mailed_unchanged(name, subject, body):
    name = " ".join(re.sub(r'[<>"\\(),:;@\x00-\x1f\x7f]', "", name).split())

    built = mail.build(f'"{name}" <us@example.org>', OutgoingMail("a@example.org", subject, body))

    message = message_from_bytes(built)  # the plain policy: what stands in the mail, with nothing decoded
    decoded = {field: str(make_header(decode_header(value))) for field, value in message.items()}
    assert message.keys() == HEADERS
    assert all(value.isascii() and "\0" not in value for value in message.values())
    assert decoded["Subject"] == " ".join(subject.split())
    assert decoded["From"] == (f"{name} <us@example.org>" if name else "us@example.org")
    assert (decoded["To"], message.get_content_type()) == ("a@example.org", "text/plain")
    lines = re.split(r"\r\n|\r|\n", body.removesuffix("\n"))
    assert message.get_payload(decode=True).decode() == "\r\n".join([*lines, ""])
    assert max(map(len, built.split(b"\r\n"))) <= 78
    modern = message_from_bytes(built, policy=policy.default)
    assert (modern.keys(), modern["To"]) == (HEADERS, "a@example.org")
