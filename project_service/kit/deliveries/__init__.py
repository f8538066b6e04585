"""Delivery engine: what is to be sent to remote receivers is written with the change, and sent by threads of one job.

``enqueue()`` writes rows of ``deliveries`` in the caller's transaction. The job ``send_deliveries`` runs all the time
in one worker, under the lease of its task, and sends them: at least once, to each receiver one batch at a time, to
many receivers at once. A receiver that hangs occupies one thread until its time-out, and those that were slow share
half of the threads. Whoever had no turn for longest is next. The engine keeps only what waits (and, if the sender wants
it, what was given up); a log of what was sent belongs to the sender.

A receiver is a text ``kind:id``, such as ``web_hook:12``. Everything about one kind is in its ``Sender``:

=====================  ===============================================================================================
``kind``               the part before the colon of the receiver; ``senders.register()`` makes the sender known
``keeps_order``        true: a delivery that has to be repeated is waited for (channels); false: others pass it (hooks)
``batch_size``         how many deliveries ``load`` and ``send`` get at once (mails share a connection); default 1
``keeps_failed``       true: what was given up stays for ``FAILED_RETENTION`` with its error; else it is deleted
``merge_after``        deliveries of a receiver that have waited longer are merged into one before they are sent, by
                       ``merge(late)``, which returns the content of the one; ``None``: never
``load(deliveries)``   in a transaction that only reads: returns ``Loaded(messages, share)``, one message per delivery,
                       ``None`` for one to be dropped (the receiver was deleted); or ``Hold(until)`` while the receiver
                       takes nothing (temporarily disabled, above its rate). It is asked again after ``RECHECK_SECONDS``
                       at the latest. ``Hold(until, merges=True)`` merges what waits at once.
                       ``share`` is whose part of the threads is used, such as ``project:42``
``send(messages)``     without a transaction, on the network: yields one ``DeliveryOutcome`` each, in order. It may end
                       early; the others are sent in the next batch. It raises ``ReceiverUnavailable`` if the failure
                       is no message's own: nothing is counted, the receiver is tried again with growing pauses
``settle(...)``        in the transaction that ends the attempt: delivery, outcome, and the time of the next attempt or
                       ``None``; writes logs, counts failures, disables. Rows of the delivery are the engine's
``retry_delay(...)``   after an outcome ``AGAIN``: the pause before the next attempt, ``None`` to give up
=====================  ===============================================================================================

Where deliveries are the result of work that must not be done in a request, a source (``add_source()``) does it in the
sending job, in a thread of its own.

Outcomes: ``DELIVERED``, ``AGAIN`` (repeat later), ``FINAL`` (do not repeat), ``DROPPED`` (no receiver any more).
"""

from __future__ import annotations

from project_service.kit.deliveries.dispatching import send_all_due, send_deliveries
from project_service.kit.deliveries.models import Delivery, DeliveryPayload
from project_service.kit.deliveries.outbox import (
    FAILED_RETENTION,
    add_payload,
    add_payloads,
    enqueue,
    enqueue_all,
    number_failed,
    waiting_since,
)
from project_service.kit.deliveries.senders import (
    DeliveryOutcome,
    DeliveryResult,
    Hold,
    Loaded,
    ReceiverUnavailable,
    Sender,
    add_source,
    backoff,
    register,
)

__all__ = [
    "FAILED_RETENTION",
    "Delivery",
    "DeliveryOutcome",
    "DeliveryPayload",
    "DeliveryResult",
    "Hold",
    "Loaded",
    "ReceiverUnavailable",
    "Sender",
    "add_payload",
    "add_payloads",
    "add_source",
    "backoff",
    "enqueue",
    "enqueue_all",
    "number_failed",
    "register",
    "send_all_due",
    "send_deliveries",
    "waiting_since",
]
