"""Outgoing mail: an outbox in the database, written in the caller's transaction, and a job that sends it in batches.

Many mails share one task: while a task to send is due and not claimed, no other is written. Without a configured
SMTP server nothing is queued.

A mail that cannot be built or that the server refuses for good is set aside: its row stays for ``FAILED_KEPT`` with the
error, ``project-service doctor`` reports it, and other mails are sent. A mail that the server defers is tried again
later, up to ``MAX_ATTEMPTS`` times, and then set aside, too.
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

BATCH = 50
TIMEOUT_SECONDS = 20
ATTEMPTS = 8  # of the task, when the server cannot be reached
MAX_ATTEMPTS = 12  # of a mail that the server defers: with the delays doubling, for a day and a half
FIRST_DELAY = dt.timedelta(minutes=1)
FAILED_KEPT = dt.timedelta(days=14)
PERMANENT = 500
MAX_PLAIN_HEADER = 60
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
    """A mail that has not been sent: not yet, or, with ``failed_at``, never."""

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
class Letter:
    """A mail, apart from the database."""

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
    """Whether there is a server to send mails with."""
    settings: Settings = current_app.config["SETTINGS"]
    return bool(settings.smtp_host)


def queue(recipients: Iterable[str], subject: str, body: str) -> int:
    """Put a mail to each recipient into the outbox, in the current transaction; return how many."""
    wanted = sorted(set(recipients))
    if not is_on() or not wanted:
        return 0
    db.session.add_all([Mail(recipient=recipient, subject=subject, body=body) for recipient in wanted])
    # a task put off until deferred mails are due does not count, one that could not reach the server does
    due = select(Task.id).where(
        Task.name == drain.name,
        Task.leased_until.is_(None),
        Task.failed_at.is_(None),
        or_(Task.run_at <= clock.now(), Task.error.is_not(None)),
    )
    # locked until these mails are committed: otherwise a worker could end that task just before, and they would stay
    if db.session.scalar(due.limit(1).with_for_update(read=True)) is None:
        drain.defer()
    return len(wanted)


def set_aside() -> int:
    """Return the number of mails that will never be sent."""
    return db.session.scalar(select(func.count()).select_from(Mail).where(Mail.failed_at.is_not(None))) or 0


@jobs.job("kit.mail.drain", queue=jobs.MAIL, max_attempts=ATTEMPTS)
def drain() -> None:
    """Send the mails that are due. Each leaves the outbox when the server has accepted it: at worst, twice."""
    settings: Settings = current_app.config["SETTINGS"]
    while letters := _due():
        # the server is talked to between the steps: no transaction is open meanwhile
        deliveries: list[Delivery] = []
        try:
            with connect(settings) as server:
                for letter in letters:
                    deliveries.append(_send(server, settings, letter))
                    if server.sock is None:  # the server has closed the connection: the next batch opens another
                        break
        finally:
            with jobs.step():
                for delivery in deliveries:
                    _settle(delivery)
    with jobs.step():
        db.session.execute(delete(Mail).where(Mail.failed_at < clock.now() - FAILED_KEPT))
        _put_off()


def _due() -> list[Letter]:
    is_due = or_(Mail.retry_at.is_(None), Mail.retry_at <= clock.now())
    wanted = select(Mail).where(Mail.failed_at.is_(None), is_due).order_by(Mail.created_at, Mail.id).limit(BATCH)
    with jobs.step():
        return [Letter(mail.id, mail.recipient, mail.subject, mail.body) for mail in db.session.scalars(wanted)]


def _settle(delivery: Delivery) -> None:
    """Remove a mail that was sent, put off one that was deferred, set aside one that never will be."""
    mail = db.session.get(Mail, delivery.mail_id)
    if mail is None:
        return
    if delivery.error is None:
        db.session.delete(mail)
        return
    mail.attempts += 1
    mail.error = delivery.error
    if delivery.deferred and mail.attempts < MAX_ATTEMPTS:
        mail.retry_at = clock.now() + FIRST_DELAY * 2 ** (mail.attempts - 1)
    else:
        mail.failed_at = clock.now()
        log.warning("a mail was set aside", mail=mail.id, error=mail.error)


def _put_off() -> None:
    """Write a task for when the first deferred mail is due, unless there is one."""
    moment = db.session.scalar(select(func.min(Mail.retry_at)).where(Mail.failed_at.is_(None)))
    if moment is None:
        return
    pending = select(Task.id).where(
        Task.name == drain.name, Task.leased_until.is_(None), Task.failed_at.is_(None), Task.run_at <= moment
    )
    if db.session.scalar(pending.limit(1)) is None:
        drain.defer_until(moment)


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


def build(mail_from: str, letter: Letter) -> bytes:
    """Return a mail as it is sent.

    The headers are written here and not by ``email.message``: that decodes encoded words in the values it is given
    (``=?utf-8?q?...?=``), on some versions of Python after it has looked for line breaks.

    Raises:
        ValueError: the recipient is no address that mail can be sent to, or a text is no Unicode.

    """
    name, sender = parseaddr(mail_from)
    if ADDRESS.fullmatch(letter.recipient) is None or ENCODED_WORD in letter.recipient:
        raise ValueError("the recipient is no address that mail can be sent to")
    headers = {
        "From": f"{_encoded(name, 'From')}\r\n <{sender}>" if name else sender,
        "To": letter.recipient,
        "Subject": _text(letter.subject, "Subject"),
        "Date": formatdate(),
        "Message-ID": make_msgid(domain="project-service.invalid"),
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Transfer-Encoding": "quoted-printable",
    }
    head = "".join(f"{field}: {value}\r\n" for field, value in headers.items())
    body = LINE_END.sub("\r\n", letter.body.removesuffix("\n")) + "\r\n"
    return head.encode() + b"\r\n" + binascii.b2a_qp(body.encode(), istext=True)


def _text(text: str, field: str) -> str:
    """Return the value of an unstructured header: as it is, or as encoded words if it is not short plain text."""
    text = " ".join(text.split())
    is_plain = text.isascii() and text.isprintable() and len(text) <= MAX_PLAIN_HEADER and ENCODED_WORD not in text
    return text if is_plain else _encoded(text, field)


def _encoded(text: str, field: str) -> str:
    return Header(text, "utf-8", header_name=field).encode(linesep="\r\n")


def _send(server: smtplib.SMTP, settings: Settings, letter: Letter) -> Delivery:
    try:
        message = build(settings.smtp_from, letter)
        _, sender = parseaddr(settings.smtp_from)
        options: tuple[str, ...] = ()
        if not (sender + letter.recipient).isascii():
            server.ehlo_or_helo_if_needed()
            if not server.has_extn("smtputf8"):
                raise smtplib.SMTPNotSupportedError("the server supports ASCII addresses only")
            options = SMTPUTF8
        server.sendmail(sender, [letter.recipient], message, options)
    except Exception as error:  # noqa: BLE001  # whatever one mail fails with, the others are sent
        return Delivery(letter.id, f"{type(error).__name__}: {error}", _is_temporary(error))
    return Delivery(letter.id)


def _is_temporary(error: Exception) -> bool:
    """Whether a mail may be accepted later: everything but a refusal of this mail, and a mail that cannot be built."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return any(code < PERMANENT for code, _ in error.recipients.values())
    if isinstance(error, smtplib.SMTPDataError):
        return error.smtp_code < PERMANENT
    return isinstance(error, OSError) and not isinstance(error, smtplib.SMTPNotSupportedError)
