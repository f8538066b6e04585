"""Outgoing mail: an outbox in the database, written in the caller's transaction, and a job that sends it in batches.

Many mails share one task: while a task to send is due and not claimed, no other is written. Without a configured
SMTP server nothing is queued.

A mail that cannot be built or that the server refuses for good is set aside: its row stays for ``FAILED_RETENTION``
with the error, ``project-service doctor`` reports it, and other mails are sent. A mail that the server defers is tried
again later, up to ``MAX_ATTEMPTS`` times, and then set aside, too.
"""

from __future__ import annotations

import binascii
import datetime as dt
import re
import smtplib
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from email.header import Header
from email.utils import formatdate, make_msgid, parseaddr

import structlog
from flask import current_app
from sqlalchemy import Index, delete, func, or_, select
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit import clock, jobs
from project_service.kit.db.base import Model
from project_service.kit.db.session import db
from project_service.kit.jobs import Task
from project_service.settings import Settings

BATCH_SIZE = 50
TIMEOUT_SECONDS = 20
MAX_TASK_ATTEMPTS = 8  # while the server is unavailable
MAX_ATTEMPTS = 12  # of a mail that the server defers: with doubling delays, a day and a half
FIRST_RETRY_DELAY = dt.timedelta(minutes=1)
FAILED_RETENTION = dt.timedelta(days=14)
MIN_PERMANENT_CODE = 500
MAX_PLAIN_HEADER_LENGTH = 60
SMTPUTF8 = ("SMTPUTF8", "BODY=8BITMIME")
# A dot-atom before the @: no quoted string, no list, no group, no comment.
ADDRESS = re.compile(
    r"""[^\s\x00-\x1f\x7f()<>@,;:\\".\[\]]+(?:\.[^\s\x00-\x1f\x7f()<>@,;:\\".\[\]]+)*"""
    r"""@(?:[^\s\x00-\x1f\x7f()<>@,;:\\"\[\]]+|\[[\w.:]+\])"""
)
ENCODED_WORD = "=?"
LINE_END = re.compile(r"\r\n|\r|\n")

log = structlog.get_logger(__name__)


class Mail(Model):
    """A mail in the outbox: waiting or, with ``failed_at``, given up."""

    __tablename__ = "mails"
    __table_args__ = (Index("ix_mails_created_at", "created_at", "id"),)

    recipient: Mapped[str]
    subject: Mapped[str]
    body: Mapped[str]
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    attempts: Mapped[int] = mapped_column(default=0, server_default="0")
    retry_at: Mapped[dt.datetime | None]
    failed_at: Mapped[dt.datetime | None]
    error: Mapped[str | None]


@dataclass(frozen=True, slots=True)
class OutgoingMail:
    """The content of a mail, without its database row."""

    id: int
    recipient: str
    subject: str
    body: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """The result of an attempt to send a mail: sent without an error, else deferred or refused for good."""

    mail_id: int
    error: str | None = None
    deferred: bool = False


def is_on() -> bool:
    """Whether an SMTP server is configured."""
    settings: Settings = current_app.config["SETTINGS"]
    return bool(settings.smtp_host)


def queue(recipients: Iterable[str], subject: str, body: str) -> int:
    """Put a mail to each recipient into the outbox, in the current transaction; return how many."""
    unique_recipients = sorted(set(recipients))
    if not is_on() or not unique_recipients:
        return 0
    db.session.add_all([Mail(recipient=recipient, subject=subject, body=body) for recipient in unique_recipients])
    # a task that waits for deferred mails does not count, one that retries to reach the server does
    due = select(Task.id).where(
        Task.name == drain.name,
        Task.leased_until.is_(None),
        Task.failed_at.is_(None),
        or_(Task.run_at <= clock.now(), Task.error.is_not(None)),
    )
    # locked until these mails are committed: otherwise a worker could end the task before, and they would not be sent
    if db.session.scalar(due.limit(1).with_for_update(read=True)) is None:
        drain.defer()
    return len(unique_recipients)


def set_aside() -> int:
    """Return the number of mails that were given up."""
    return db.session.scalar(select(func.count()).select_from(Mail).where(Mail.failed_at.is_not(None))) or 0


@jobs.job("kit.mail.drain", queue=jobs.MAIL, max_attempts=MAX_TASK_ATTEMPTS)
def drain() -> None:
    """Send the mails that are due. A mail is deleted after the server has accepted it, so it may be sent twice."""
    settings: Settings = current_app.config["SETTINGS"]
    while mails := _due():
        # no transaction is open while the server is talked to
        deliveries: list[Delivery] = []
        try:
            with connect(settings) as server:
                for outgoing in mails:
                    deliveries.append(_send(server, settings, outgoing))
                    if server.sock is None:  # the server has closed the connection: the next batch opens another
                        break
        finally:
            with jobs.step():
                for delivery in deliveries:
                    _settle(delivery)
    with jobs.step():
        db.session.execute(delete(Mail).where(Mail.failed_at < clock.now() - FAILED_RETENTION))
        _defer_retry()


def _due() -> list[OutgoingMail]:
    is_due = or_(Mail.retry_at.is_(None), Mail.retry_at <= clock.now())
    due = select(Mail).where(Mail.failed_at.is_(None), is_due).order_by(Mail.created_at, Mail.id).limit(BATCH_SIZE)
    with jobs.step():
        return [OutgoingMail(mail.id, mail.recipient, mail.subject, mail.body) for mail in db.session.scalars(due)]


def _settle(delivery: Delivery) -> None:
    """Delete a mail that was sent, postpone one that was deferred, set aside one that was refused."""
    mail = db.session.get(Mail, delivery.mail_id)
    if mail is None:
        return
    if delivery.error is None:
        db.session.delete(mail)
        return
    mail.attempts += 1
    mail.error = delivery.error
    if delivery.deferred and mail.attempts < MAX_ATTEMPTS:
        mail.retry_at = clock.now() + FIRST_RETRY_DELAY * 2 ** (mail.attempts - 1)
    else:
        mail.failed_at = clock.now()
        log.warning("mail set aside", mail=mail.id, error=mail.error)


def _defer_retry() -> None:
    """Defer a task until the first deferred mail is due, unless there is one."""
    moment = db.session.scalar(select(func.min(Mail.retry_at)).where(Mail.failed_at.is_(None)))
    if moment is None:
        return
    pending = select(Task.id).where(
        Task.name == drain.name, Task.leased_until.is_(None), Task.failed_at.is_(None), Task.run_at <= moment
    )
    if db.session.scalar(pending.limit(1)) is None:
        drain.defer_until(moment)


def connect(settings: Settings) -> smtplib.SMTP:
    """Connect to the configured SMTP server, with TLS and login as configured."""
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


def build(mail_from: str, outgoing: OutgoingMail) -> bytes:
    """Return a mail as bytes for SMTP.

    The headers are written here and not by ``email.message``: that decodes encoded words in the values it is given
    (``=?utf-8?q?...?=``), on some versions of Python after it has looked for line breaks.

    Raises:
        ValueError: the recipient is no address that mail can be sent to, or a text is no Unicode.

    """
    name, sender = parseaddr(mail_from)
    if ADDRESS.fullmatch(outgoing.recipient) is None or ENCODED_WORD in outgoing.recipient:
        raise ValueError("the recipient is no address that mail can be sent to")
    headers = {
        "From": f"{_encoded(name, 'From')}\r\n <{sender}>" if name else sender,
        "To": outgoing.recipient,
        "Subject": _text(outgoing.subject, "Subject"),
        "Date": formatdate(),
        "Message-ID": make_msgid(domain="project-service.invalid"),
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Transfer-Encoding": "quoted-printable",
    }
    head = "".join(f"{field}: {value}\r\n" for field, value in headers.items())
    body = LINE_END.sub("\r\n", outgoing.body.removesuffix("\n")) + "\r\n"
    return head.encode() + b"\r\n" + binascii.b2a_qp(body.encode(), istext=True)


def _text(text: str, field: str) -> str:
    """Return the value of an unstructured header: as it is, or as encoded words if it is not short plain text."""
    text = " ".join(text.split())
    is_plain = (
        text.isascii() and text.isprintable() and len(text) <= MAX_PLAIN_HEADER_LENGTH and ENCODED_WORD not in text
    )
    return text if is_plain else _encoded(text, field)


def _encoded(text: str, field: str) -> str:
    return Header(text, "utf-8", header_name=field).encode(linesep="\r\n")


def _send(server: smtplib.SMTP, settings: Settings, outgoing: OutgoingMail) -> Delivery:
    try:
        message = build(settings.smtp_from, outgoing)
        _, sender = parseaddr(settings.smtp_from)
        options: tuple[str, ...] = ()
        if not (sender + outgoing.recipient).isascii():
            server.ehlo_or_helo_if_needed()
            if not server.has_extn("smtputf8"):
                raise smtplib.SMTPNotSupportedError("the server supports ASCII addresses only")
            options = SMTPUTF8
        server.sendmail(sender, [outgoing.recipient], message, options)
    except Exception as error:  # noqa: BLE001  # an error of one mail must not stop the others
        return Delivery(outgoing.id, f"{type(error).__name__}: {error}", _is_temporary(error))
    return Delivery(outgoing.id)


def _is_temporary(error: Exception) -> bool:
    """Whether a mail may be accepted later: everything but a refusal of this mail, and a mail that cannot be built."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return any(code < MIN_PERMANENT_CODE for code, _ in error.recipients.values())
    if isinstance(error, smtplib.SMTPDataError):
        return error.smtp_code < MIN_PERMANENT_CODE
    return isinstance(error, OSError) and not isinstance(error, smtplib.SMTPNotSupportedError)
