"""Tables of the delivery engine: deliveries, and payloads that several of them share."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.kit import clock, exact_json
from project_service.kit.db.base import Model, index_where_present
from project_service.kit.db.large_texts import LargeText
from project_service.kit.security.key_ring import Encrypted

IS_WAITING = text("failed_at IS NULL")


class DeliveryPayload(Model):
    """A body that is sent to several receivers, as the bytes of it are to be: written once per event."""

    __tablename__ = "delivery_payloads"
    __table_args__ = (Index("ix_delivery_payloads_created_at", "created_at"),)

    body: Mapped[LargeText]
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)


class Delivery(Model):
    """One thing to be sent to one receiver: waiting or, with ``failed_at``, given up. It is deleted when it ends."""

    __tablename__ = "deliveries"
    __table_args__ = (
        Index("ix_deliveries_waiting", "receiver", "id", sqlite_where=IS_WAITING, postgresql_where=IS_WAITING),
        index_where_present("ix_deliveries_payload_id", "payload_id"),
        index_where_present("ix_deliveries_failed_at", "failed_at"),
    )

    receiver: Mapped[str]
    encoded_content: Mapped[str] = mapped_column("content", Encrypted)
    payload_id: Mapped[int | None] = mapped_column(ForeignKey("delivery_payloads.id"))
    payload: Mapped[DeliveryPayload | None] = relationship()
    idempotency_key: Mapped[str]
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    attempts: Mapped[int] = mapped_column(default=0)
    due_at: Mapped[dt.datetime | None]  # of the next attempt; the first is due at once, whatever the clock says
    failed_at: Mapped[dt.datetime | None]
    error: Mapped[str | None]

    @property
    def kind(self) -> str:
        """The kind of receiver, which names the sender."""
        return self.receiver.partition(":")[0]

    @property
    def receiver_id(self) -> int:
        """The id of the receiver's row."""
        return int(self.receiver.partition(":")[2])

    @property
    def content(self) -> dict[str, Any]:
        """What the sender was given to send."""
        content: dict[str, Any] = exact_json.loads(self.encoded_content)
        return content
