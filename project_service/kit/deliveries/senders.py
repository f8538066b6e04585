"""What a kind of receiver implements, and the registry of kinds. The contract is told in the package."""

from __future__ import annotations

import datetime as dt
import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from project_service.kit.deliveries.models import Delivery


class DeliveryResult(enum.Enum):
    """What became of an attempt."""

    DELIVERED = "delivered"
    AGAIN = "again"
    FINAL = "final"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """The result of an attempt, with its error; ``details`` are what the sender's ``settle`` needs."""

    result: DeliveryResult
    error: str | None = None
    retry_after_seconds: float | None = None  # as the receiver asked
    details: Any = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """Messages, one per delivery; ``None`` stands for a delivery to be dropped."""

    messages: Sequence[Any]
    share: str | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """The receiver takes nothing before this moment; with ``merges`` what waits for it is merged, however short."""

    until: dt.datetime
    merges: bool = False


class ReceiverUnavailable(Exception):
    """Nothing can be sent to this receiver now, and no delivery is to blame."""


class Sender(ABC):
    """Sends deliveries of one kind; stateless, used by several threads."""

    kind: ClassVar[str]
    keeps_order: ClassVar[bool] = False
    batch_size: ClassVar[int] = 1
    keeps_failed: ClassVar[bool] = False
    merge_after: ClassVar[dt.timedelta | None] = None

    @abstractmethod
    def load(self, deliveries: Sequence[Delivery]) -> Loaded | Hold:
        """Return what is to be sent, or how long the receiver takes nothing."""

    @abstractmethod
    def send(self, messages: Sequence[Any]) -> Iterator[DeliveryOutcome]:
        """Send messages over the network, without a transaction."""

    @abstractmethod
    def settle(self, delivery: Delivery, outcome: DeliveryOutcome, next_attempt_at: dt.datetime | None) -> None:
        """Record the end of an attempt, in its transaction."""

    @abstractmethod
    def retry_delay(self, delivery: Delivery, outcome: DeliveryOutcome) -> dt.timedelta | None:
        """Return the pause after attempt number ``delivery.attempts``, or ``None`` to give up."""

    def merge(self, late: Sequence[Delivery]) -> dict[str, Any]:
        """Return the content of the one delivery that replaces late ones, in a transaction that writes."""
        raise NotImplementedError


SENDERS: dict[str, Sender] = {}
SOURCES: list[Callable[[], bool]] = []


def register(sender: Sender) -> None:
    """Make the sender of a kind known; the name is stored with deliveries and must never change."""
    SENDERS[sender.kind] = sender


def add_source(source: Callable[[], bool]) -> None:
    """Register a function that the sending job calls all the time to write deliveries, in steps of its own.

    It returns whether there may be more to do at once.
    """
    if source not in SOURCES:
        SOURCES.append(source)


def backoff(
    delays: Sequence[dt.timedelta], delivery: Delivery, outcome: DeliveryOutcome, max_retry_after: dt.timedelta
) -> dt.timedelta | None:
    """Return the pause of a table of delays by attempt, or the longer one that the receiver asked for."""
    if delivery.attempts > len(delays):
        return None
    asked = min(dt.timedelta(seconds=outcome.retry_after_seconds or 0), max_retry_after)
    return max(delays[delivery.attempts - 1], asked)
