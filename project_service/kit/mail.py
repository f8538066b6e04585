"""Outgoing mail: an outbox in the database, written with whatever it tells of, and a job that drains it in batches.

One bell is rung for many mails: while a drain is due and not at work yet, another needs no bell. Without a configured
SMTP server nothing is queued.
"""

from __future__ import annotations

import datetime as dt
import smtplib
from collections.abc import Iterable
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

import structlog
from flask import current_app
from sqlalchemy import Index, select
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit import clock, jobs
from project_service.kit.database import Model, db
from project_service.kit.jobs import Task
from project_service.settings import Settings

BATCH = 50
TIMEOUT_SECONDS = 20
ATTEMPTS = 8

log = structlog.get_logger(__name__)


class Mail(Model):
    """A mail that has not been sent yet."""

    __tablename__ = "mails"
    __table_args__ = (Index("ix_mails_created_at", "created_at", "id"),)

    recipient: Mapped[str]
    subject: Mapped[str]
    body: Mapped[str]
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)


def queue(recipients: Iterable[str], subject: str, body: str) -> int:
    """Put a mail to each recipient into the outbox, in the current transaction; how many."""
    settings: Settings = current_app.config["SETTINGS"]
    wanted = sorted(set(recipients))
    if not settings.smtp_host or not wanted:
        return 0
    subject = " ".join(subject.split())
    db.session.add_all([Mail(recipient=recipient, subject=subject, body=body) for recipient in wanted])
    due = select(Task.id).where(Task.name == drain.name, Task.leased_until.is_(None), Task.failed_at.is_(None))
    if db.session.scalar(due.limit(1)) is None:
        drain.defer()
    return len(wanted)


@jobs.job(queue="mail", attempts=ATTEMPTS)
def drain() -> None:
    """Send what is in the outbox. A mail leaves it when the server has taken it: at worst it is sent twice."""
    settings: Settings = current_app.config["SETTINGS"]
    while True:
        with jobs.step():
            found = list(db.session.scalars(select(Mail).order_by(Mail.created_at, Mail.id).limit(BATCH)))
            if not found:
                return
            with connect(settings) as server:
                for mail in found:
                    _send(server, settings, mail)
                    db.session.delete(mail)


def connect(settings: Settings) -> smtplib.SMTP:
    """A connection to the configured server, as secure as configured."""
    host, port = settings.smtp_host or "", settings.smtp_port
    if settings.smtp_security == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=TIMEOUT_SECONDS)
    else:
        server = smtplib.SMTP(host, port, timeout=TIMEOUT_SECONDS)
    if settings.smtp_security == "starttls":
        server.starttls()
    if settings.smtp_username:
        server.login(settings.smtp_username, settings.smtp_password or "")
    return server


def _send(server: smtplib.SMTP, settings: Settings, mail: Mail) -> None:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = settings.smtp_from, mail.recipient, mail.subject
    message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain="project-service.invalid")
    message.set_content(mail.body)
    try:
        server.send_message(message)
    except smtplib.SMTPRecipientsRefused as error:
        # nobody will ever take it: keeping it would hold up all the others
        log.warning("a mail was refused for its recipient", error=str(error))
