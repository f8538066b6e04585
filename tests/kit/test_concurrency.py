"""Shares of threads (``project_service/kit/concurrency.py``)."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from project_service.kit.concurrency import ConcurrencyLimiter, ShareLimits
from project_service.kit.http.clients.admission import RequestSender

ONE_AFTER_ANOTHER = ShareLimits(2, 2, 2, 2, 2)
MANY = ShareLimits(1000, 1000, 1000, 1000, 1000)


async def order_of(senders: list[RequestSender]) -> list[RequestSender]:
    """The order in which requests get their slots that arrive in this order."""
    limiter, served = ConcurrencyLimiter(ONE_AFTER_ANOTHER, MANY, 10), []

    async def serve(sender: RequestSender) -> None:
        async with limiter.slot(sender):
            served.append(sender)
            await asyncio.sleep(0.001)

    await asyncio.gather(*map(serve, senders))
    return served


def served_by(senders):
    """The order, from a loop in a thread of its own: browsers of other tests leave one in the main thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(order_of(senders))).result()


@pytest.mark.parametrize(
    ("many", "one"),
    [
        (RequestSender(None, "192.0.2.1"), RequestSender(None, "192.0.2.2")),
        (RequestSender("a", "192.0.2.1"), RequestSender("b", "192.0.2.1")),
        (RequestSender("a", None), RequestSender("b", None)),
    ],
    ids=["addresses", "credentials", "loopback"],
)
def test_a_client_that_sends_two_hundred_requests_does_not_delay_another(many, one):
    served = served_by([many] * 200 + [one])

    assert served.index(one) <= 3


def test_invented_credentials_do_not_delay_another_address():
    invented = [RequestSender(f"invented {number}", "192.0.2.1") for number in range(200)]
    one = RequestSender(None, "192.0.2.2")

    assert served_by([*invented, one]).index(one) <= 3
