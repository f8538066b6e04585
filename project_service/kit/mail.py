"""Outgoing mail: a kind of delivery (``kit.deliveries``), written in the caller's transaction and sent in batches.

Without a configured SMTP server nothing is queued. Texts are encrypted at rest: mails have links with secrets.

A mail that cannot be built or that the server refuses for good is set aside: its row stays for two weeks with the
error, ``project-service doctor`` reports it, and other mails are sent. A mail that the server defers is tried again
later, up to ``MAX_ATTEMPTS`` times, and then set aside, too.
"""

from __future__ import annotations

import binascii
import datetime as dt
import re
import smtplib
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.header import Header
from email.utils import formatdate, make_msgid, parseaddr

from flask import current_app

from project_service.kit import deliveries
from project_service.settings import Settings

RECEIVER = "mail:1"  # one SMTP server
BATCH_SIZE = 50
TIMEOUT_SECONDS = 20
MAX_ATTEMPTS = 12  # of a mail that the server defers: with doubling delays, a day and a half
FIRST_RETRY_DELAY = dt.timedelta(minutes=1)
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


@dataclass(frozen=True, slots=True)
class OutgoingMail:
    """The content of a mail, with headers beside those of every mail."""

    recipient: str
    subject: str
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)


def is_on() -> bool:
    """Whether an SMTP server is configured."""
    settings: Settings = current_app.config["SETTINGS"]
    return bool(settings.smtp_host)


def queue(recipients: Iterable[str], subject: str, body: str) -> int:
    """Queue a mail to each recipient, in the current transaction; return how many."""
    unique_recipients = sorted(set(recipients))
    if not is_on() or not unique_recipients:
        return 0
    deliveries.enqueue_all(
        (RECEIVER, {"recipient": recipient, "subject": subject, "body": body}) for recipient in unique_recipients
    )
    return len(unique_recipients)


def set_aside() -> int:
    """Return the number of mails that were given up."""
    return deliveries.number_failed(MailSender.kind)


def send_test(recipient: str) -> str | None:
    """Send a mail at once, outside any transaction, to try the configuration; return the error, if there is one."""
    settings: Settings = current_app.config["SETTINGS"]
    text = "This mail shows that the server can send mails: you asked for it on the page of the administration.\n"
    try:
        with connect(settings) as server:
            outcome = _send(server, settings, OutgoingMail(recipient, "Test mail", text))
    except (OSError, smtplib.SMTPException) as error:
        return f"{type(error).__name__}: {error}"
    return outcome.error


class MailSender(deliveries.Sender):
    """Sends mails in batches, each through one connection. A mail may be sent twice."""

    kind = "mail"
    batch_size = BATCH_SIZE
    keeps_failed = True

    def load(self, batch: Sequence[deliveries.Delivery]) -> deliveries.Loaded:
        """Return the mails."""
        return deliveries.Loaded([OutgoingMail(**delivery.content) for delivery in batch])

    def send(self, mails: Sequence[OutgoingMail]) -> Iterator[deliveries.DeliveryOutcome]:
        """Send mails until the server closes the connection: the next batch opens another."""
        settings: Settings = current_app.config["SETTINGS"]
        try:
            server = connect(settings)
        except (OSError, smtplib.SMTPException) as error:
            raise deliveries.ReceiverUnavailable(f"{type(error).__name__}: {error}") from error
        with server:
            for outgoing in mails:
                yield _send(server, settings, outgoing)
                if server.sock is None:
                    return

    def settle(
        self, delivery: deliveries.Delivery, outcome: deliveries.DeliveryOutcome, next_attempt_at: dt.datetime | None
    ) -> None:
        """Nothing is recorded beside the row itself."""

    def retry_delay(self, delivery: deliveries.Delivery, outcome: deliveries.DeliveryOutcome) -> dt.timedelta | None:
        """Return doubling pauses, for a day and a half."""
        return FIRST_RETRY_DELAY * 2 ** (delivery.attempts - 1) if delivery.attempts < MAX_ATTEMPTS else None


deliveries.register(MailSender())


def send_now(outgoing: OutgoingMail) -> deliveries.DeliveryOutcome:
    """Send one mail through a connection of its own, for a caller that records what becomes of it."""
    settings: Settings = current_app.config["SETTINGS"]
    if not settings.smtp_host:
        return deliveries.DeliveryOutcome(deliveries.DeliveryResult.FINAL, "no mail server is configured")
    try:
        with connect(settings) as server:
            return _send(server, settings, outgoing)
    except (OSError, smtplib.SMTPException) as error:
        return deliveries.DeliveryOutcome(deliveries.DeliveryResult.AGAIN, f"{type(error).__name__}: {error}")


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
    } | {name: _header(name, value) for name, value in outgoing.headers.items()}
    head = "".join(f"{field}: {value}\r\n" for field, value in headers.items())
    body = LINE_END.sub("\r\n", outgoing.body.removesuffix("\n")) + "\r\n"
    return head.encode() + b"\r\n" + binascii.b2a_qp(body.encode(), istext=True)


def _header(name: str, value: str) -> str:
    """Return the value of a further header; ids of messages must not be encoded."""
    value = " ".join(value.split())
    if name in ("Message-ID", "References", "List-Unsubscribe"):
        if not value.isascii() or not value.isprintable():
            raise ValueError(f"the header {name} has characters that cannot be sent")
        return value
    return _text(value, name)


def _text(text: str, field: str) -> str:
    """Return the value of an unstructured header: as it is, or as encoded words if it is not short plain text."""
    text = " ".join(text.split())
    is_plain = (
        text.isascii() and text.isprintable() and len(text) <= MAX_PLAIN_HEADER_LENGTH and ENCODED_WORD not in text
    )
    return text if is_plain else _encoded(text, field)


def _encoded(text: str, field: str) -> str:
    return Header(text, "utf-8", header_name=field).encode(linesep="\r\n")


def _send(server: smtplib.SMTP, settings: Settings, outgoing: OutgoingMail) -> deliveries.DeliveryOutcome:
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
        result = deliveries.DeliveryResult.AGAIN if _is_temporary(error) else deliveries.DeliveryResult.FINAL
        return deliveries.DeliveryOutcome(result, f"{type(error).__name__}: {error}")
    return deliveries.DeliveryOutcome(deliveries.DeliveryResult.DELIVERED)


def _is_temporary(error: Exception) -> bool:
    """Whether a mail may be accepted later: everything but a refusal of this mail, and a mail that cannot be built."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return any(code < MIN_PERMANENT_CODE for code, _ in error.recipients.values())
    if isinstance(error, smtplib.SMTPDataError):
        return error.smtp_code < MIN_PERMANENT_CODE
    return isinstance(error, OSError) and not isinstance(error, smtplib.SMTPNotSupportedError)
