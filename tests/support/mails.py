"""Mails that wait to be sent, as tests look at them."""

from __future__ import annotations

from sqlalchemy import select

from project_service.kit.db.session import db
from project_service.kit.deliveries import Delivery
from project_service.kit.mail import RECEIVER, OutgoingMail


def queued_mails() -> list[OutgoingMail]:
    """Return the mails that wait, oldest first."""
    waiting = select(Delivery).where(Delivery.failed_at.is_(None), Delivery.receiver == RECEIVER)
    return [OutgoingMail(**delivery.content) for delivery in db.session.scalars(waiting.order_by(Delivery.id))]
