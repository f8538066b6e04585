"""Shares of what is limited: how much one caller, one address and all together may use at the same time.

Everything here runs in an event loop: what waits for its share holds no thread.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol


class SharingClient(Protocol):
    """Who uses a share: a digest of what authenticates the client, and its address; each may be unknown."""

    @property
    def credential(self) -> str | None:
        """What the client authenticates with; ``None`` for an anonymous one."""

    @property
    def address(self) -> str | None:
        """The address that is counted; ``None`` if it says nothing."""


@dataclass(frozen=True, slots=True)
class ShareLimits:
    """How much may be used at the same time: in total, by clients with a credential, and by anonymous ones."""

    total: int
    per_credential: int
    per_address: int
    anonymous: int
    per_anonymous_address: int

    def shares_of(self, client: SharingClient) -> list[tuple[str, int]]:
        """Return the names and sizes of the shares that a client uses."""
        shares = [("", self.total)]
        if client.credential is None:
            shares.append(("anonymous", self.anonymous))
        else:
            shares.append((f"credential {client.credential}", self.per_credential))
        if client.address is not None:
            kind, size = ("anonymous ", self.per_anonymous_address)
            kind, size = (kind, size) if client.credential is None else ("", self.per_address)
            shares.append((f"{kind}address {client.address}", size))
        return shares


class Busy(Exception):
    """A share is used up."""


class Shares:
    """Counts what is in use."""

    def __init__(self, limits: ShareLimits) -> None:
        self._limits = limits
        self._used: Counter[str] = Counter()

    def fits(self, client: SharingClient, amount: int = 1) -> bool:
        """Whether a client may use an amount more."""
        return all(self._used[name] + amount <= size for name, size in self._limits.shares_of(client))

    def used_by(self, client: SharingClient) -> tuple[int, int]:
        """What the address of a client uses now, with a credential or without, and what its credential uses."""
        address = 0
        if client.address is not None:
            address = self._used[f"address {client.address}"] + self._used[f"anonymous address {client.address}"]
        return address, 0 if client.credential is None else self._used[f"credential {client.credential}"]

    def take(self, client: SharingClient, amount: int = 1) -> None:
        """Count an amount.

        Raises:
            Busy: it does not fit.

        """
        if not self.fits(client, amount):
            raise Busy
        for name, _ in self._limits.shares_of(client):
            self._used[name] += amount

    def give_back(self, client: SharingClient, amount: int = 1) -> None:
        """Count an amount no longer."""
        for name, _ in self._limits.shares_of(client):
            self._used[name] -= amount
            if not self._used[name]:
                del self._used[name]


class ConcurrencyLimiter:
    """Lets a number of things happen at once; a bounded number of others waits for ``max_wait_seconds``.

    The client that uses the least comes first, by its address, then by its credential; of one client, and of those that
    use as much, what has waited longest. So a client that sends hundreds delays only itself, and nobody waits for
    another whose own share is used up.
    """

    def __init__(self, limits: ShareLimits, waiting: ShareLimits, max_wait_seconds: float) -> None:
        self._running = Shares(limits)
        self._waiting = Shares(waiting)
        self._max_wait_seconds = max_wait_seconds
        self._queue: dict[asyncio.Future[None], SharingClient] = {}

    @asynccontextmanager
    async def slot(self, client: SharingClient) -> AsyncIterator[None]:
        """Wait for a slot and hold it during the block.

        Raises:
            Busy: too many wait, or none became free in time.

        """
        if self._running.fits(client):
            self._running.take(client)
        else:
            await self._wait(client)
        try:
            yield
        finally:
            self._running.give_back(client)
            self._wake()

    async def _wait(self, client: SharingClient) -> None:
        self._waiting.take(client)
        slot = asyncio.get_running_loop().create_future()
        self._queue[slot] = client
        try:
            async with asyncio.timeout(self._max_wait_seconds):
                await slot
        except BaseException as error:
            if slot.done() and not slot.cancelled():  # the slot was assigned in the same moment
                self._running.give_back(client)
                self._wake()
            if isinstance(error, TimeoutError):
                raise Busy from error
            raise
        finally:
            self._queue.pop(slot, None)
            self._waiting.give_back(client)

    def _wake(self) -> None:
        """Assign free slots to those that wait."""
        while True:
            waiting = {slot: client for slot, client in self._queue.items() if not slot.done()}
            fitting = [slot for slot, client in waiting.items() if self._running.fits(client)]
            if not fitting:
                return
            slot = min(fitting, key=lambda slot: self._running.used_by(waiting[slot]))  # the first of equal ones
            self._running.take(waiting[slot])
            slot.set_result(None)
