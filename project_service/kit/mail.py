"""Outgoing mail: an outbox in the database, written with whatever it tells of, and a job that drains it in batches.

One bell is rung for many mails: while a drain is due and not at work yet, another needs no bell. Without a configured
SMTP server nothing is queued.
"""

from __future__ import annotations

import datetime as dt
import smtplib
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

import structlog
from flask import current_app
from sqlalchemy import Index, delete, select
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit import clock, jobs
from project_service.kit.db.base import Model
from project_service.kit.db.session import db
from project_service.kit.jobs import Task
from project_service.settings import Settings

BATCH = 50
TIMEOUT_SECONDS = 20
ATTEMPTS = 8
PERMANENT = 500

log = structlog.get_logger(__name__)


class Mail(Model):
    """A mail that has not been sent yet."""

    __tablename__ = "mails"
    __table_args__ = (Index("ix_mails_created_at", "created_at", "id"),)

    recipient: Mapped[str]
    subject: Mapped[str]
    body: Mapped[str]
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail, apart from the database."""

    id: int
    recipient: str
    subject: str
    body: str


class Deferred(Exception):
    """The server did not take every mail yet."""


def is_on() -> bool:
    """Whether there is a server to send mails with."""
    settings: Settings = current_app.config["SETTINGS"]
    return bool(settings.smtp_host)


def queue(recipients: Iterable[str], subject: str, body: str) -> int:
    """Put a mail to each recipient into the outbox, in the current transaction; how many."""
    wanted = sorted(set(recipients))
    if not is_on() or not wanted:
        return 0
    subject = " ".join(subject.split())
    db.session.add_all([Mail(recipient=recipient, subject=subject, body=body) for recipient in wanted])
    due = select(Task.id).where(Task.name == drain.name, Task.leased_until.is_(None), Task.failed_at.is_(None))
    # held until these mails can be seen: otherwise a worker could end that drain just before, and they would stay
    if db.session.scalar(due.limit(1).with_for_update(read=True)) is None:
        drain.defer()
    return len(wanted)


@jobs.job("kit.mail.drain", queue=jobs.MAIL, attempts=ATTEMPTS)
def drain() -> None:
    """Send what is in the outbox. A mail leaves it when the server has taken it: at worst it is sent twice."""
    settings: Settings = current_app.config["SETTINGS"]
    while True:
        with jobs.step():
            rows = db.session.scalars(select(Mail).order_by(Mail.created_at, Mail.id).limit(BATCH))
            found = [Letter(mail.id, mail.recipient, mail.subject, mail.body) for mail in rows]
        if not found:
            return
        # the server is talked to between the steps: nobody else's writing waits for it
        settled: list[int] = []
        try:
            with connect(settings) as server:
                settled += (letter.id for letter in found if _send(server, settings, letter))
        finally:
            with jobs.step():
                db.session.execute(delete(Mail).where(Mail.id.in_(settled)))
        if len(settled) < len(found):
            raise Deferred(f"the server asked to try {len(found) - len(settled)} mails again later")


def connect(settings: Settings) -> smtplib.SMTP:
    """A connection to the configured server, as secure as configured."""
    host, port = settings.smtp_host or "", settings.smtp_port
    if settings.smtp_security == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(
            host, port, timeout=TIMEOUT_SECONDS, context=ssl.create_default_context()
        )
    else:
        server = smtplib.SMTP(host, port, timeout=TIMEOUT_SECONDS)
    if settings.smtp_security == "starttls":
        server.starttls(context=ssl.create_default_context())
    if settings.smtp_username:
        server.login(settings.smtp_username, settings.smtp_password or "")
    return server


def _send(server: smtplib.SMTP, settings: Settings, letter: Letter) -> bool:
    """Send a mail; false when the server wants it later. What it never takes is dropped: it would hold up others."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = settings.smtp_from, letter.recipient, letter.subject
    message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain="project-service.invalid")
    message.set_content(letter.body)
    try:
        server.send_message(message)
    except (smtplib.SMTPRecipientsRefused, smtplib.SMTPDataError, smtplib.SMTPNotSupportedError) as error:
        if any(code < PERMANENT for code in _codes(error)):
            return False
        log.warning("a mail was refused for good", mail=letter.id, error=str(error))
    return True


def _codes(error: smtplib.SMTPException) -> list[int]:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return [code for code, _ in error.recipients.values()]
    return [error.smtp_code] if isinstance(error, smtplib.SMTPDataError) else []
