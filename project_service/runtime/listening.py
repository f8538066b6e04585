"""Accept connections so that all web processes have about as many: a process leaves new ones to those with fewer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.sharedctypes import RawArray

MAX_PROCESSES = 1024
UNUSED = -1
MAX_DIFFERENCE = 8  # of open connections: up to it processes take turns, since closed connections are noticed late
CONNECTIONS_PER_SPARE_TURN = 10  # with many connections the order matters less than the speed
SPARE_SLOTS = 32  # for processes that were started after this one
RETRY_SECONDS = 0.001
MAX_PAUSE_SECONDS = 0.02  # between two looks at a connection that is left to others
MAX_DEFER_SECONDS = 0.1  # a process that does not take its connections within this time is busy or hangs
OUT_OF_FILES_SECONDS = 1.0


class ConnectionCounts:
    """Open and accepted connections of each process, in memory that all share. Each writes its own numbers only."""

    def __init__(self) -> None:
        self._open = RawArray("i", [UNUSED] * MAX_PROCESSES)
        self._accepted = RawArray("q", MAX_PROCESSES)
        self._in_use: set[int] = set()

    def reserve(self) -> int:
        """Return the slot of a new process, which takes part once it has called ``start``; called in the master."""
        slot = next(slot for slot in range(MAX_PROCESSES) if slot not in self._in_use)
        self._in_use.add(slot)
        return slot

    def free(self, slot: int) -> None:
        """Forget a process that has ended; called in the master."""
        self.stop(slot)
        self._in_use.discard(slot)

    def start(self, slot: int) -> None:
        """Take part in accepting connections, with as many turns taken as the others."""
        self._accepted[slot] = max((self._accepted[other] for other in self._others(slot)), default=0)
        self._open[slot] = 0

    def stop(self, slot: int) -> None:
        """Accept no more connections."""
        self._open[slot] = UNUSED

    def set_open(self, slot: int, count: int) -> None:
        """Set the number of open connections of a process that takes part."""
        if self._open[slot] != UNUSED:
            self._open[slot] = count

    def note_accepted(self, slot: int) -> None:
        """Count a connection that a process has accepted in its turn."""
        self._accepted[slot] += 1

    def before(self, slot: int) -> tuple[tuple[int, int], ...]:
        """Return the numbers of the processes that should accept the next connection rather than this one."""
        mine = self._open[slot]
        turns = self._accepted[slot] - mine // CONNECTIONS_PER_SPARE_TURN
        preferred = []
        for other in self._others(slot):
            difference = self._open[other] - mine
            is_behind = self._accepted[other] < turns
            if difference < -MAX_DIFFERENCE or (is_behind and difference <= MAX_DIFFERENCE):
                preferred.append((self._open[other], self._accepted[other]))
        return tuple(preferred)

    def _others(self, slot: int) -> list[int]:
        end = max(len(self._in_use), slot + 1) + SPARE_SLOTS
        return [other for other in range(end) if other != slot and self._open[other] != UNUSED]


class BalancedServer:
    """Accepts the connections of a listening socket that several processes share.

    It has the methods of ``asyncio.Server`` that gunicorn calls.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener: socket.socket,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        counts: ConnectionCounts,
        slot: int,
    ) -> None:
        self._loop = loop
        self._listener = listener
        self._protocol_factory = protocol_factory
        self._counts = counts
        self._slot = slot
        self._serving = False
        self._deferred_since = self._deferred_last = 0.0
        self._unresponsive: tuple[tuple[int, int], ...] = ()
        self._tasks: set[asyncio.Task[object]] = set()

    async def start_serving(self) -> None:
        """Begin to accept connections."""
        self._listener.setblocking(False)
        self._serving = True
        self._listen()

    def close(self) -> None:
        """Accept no more connections."""
        if self._serving:
            self._serving = False
            self._loop.remove_reader(self._listener)

    async def wait_closed(self) -> None:
        """Return at once: connections are counted by the worker."""

    def _listen(self) -> None:
        if self._serving:
            self._loop.add_reader(self._listener, self._accept)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._loop.call_later(seconds, self._listen)

    def _accept(self) -> None:
        """Accept one connection, unless it is the turn of another process."""
        others = self._counts.before(self._slot)
        if others and self._leaves_to(others):
            self._pause(RETRY_SECONDS)
            return
        try:
            connection, _address = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            context = {"message": "no connection can be accepted", "exception": error}
            self._loop.call_exception_handler(context)
            self._pause(OUT_OF_FILES_SECONDS)
            return
        if not others:  # else it was accepted instead of a process that does not respond
            self._counts.note_accepted(self._slot)
        connection.setblocking(False)
        task = self._loop.create_task(self._connect(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, connection: socket.socket) -> None:
        with suppress(OSError):  # the client has disconnected
            await self._loop.connect_accepted_socket(self._protocol_factory, connection)

    def _leaves_to(self, others: tuple[tuple[int, int], ...]) -> bool:
        """Whether to wait for other processes, which is not for long if they do not respond."""
        now = self._loop.time()
        if others == self._unresponsive:
            return False
        if now - self._deferred_last > MAX_PAUSE_SECONDS:
            self._deferred_since = now
        self._deferred_last = now
        if now - self._deferred_since < MAX_DEFER_SECONDS:
            return True
        self._unresponsive = others
        return False
