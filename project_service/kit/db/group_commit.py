"""Group commit: what several requests want to write at the same moment, one of them writes, in one transaction.

A small write costs less than what is around it: the turn among all writers, and the commit's way to the disk. So
whoever comes while somebody writes waits, and the first of those who wait writes for all of them. Nobody is answered
before the commit, and nobody is harmed by what others brought: when a group fails, each of it is written alone.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, cast

from sqlalchemy.exc import DBAPIError

from project_service.kit.db.session import db, is_deadlock, reading, unit_of_work
from project_service.kit.http.waiting import aside

Item = TypeVar("Item")
Result = TypeVar("Result")
LARGEST = 64
ATTEMPTS = 4


def group_commit(
    key: Callable[[Item], Hashable], short: Callable[[list[Item]], list[Result] | None] | None = None
) -> Callable[[Callable[[list[Item]], list[Result]]], Group[Item, Result]]:
    """Make a function that writes many items, and gives a result for each, one that writes an item.

    Only items with the same ``key`` are written together: what locks some of them must not hold up the others. Where
    one statement does for all, ``short`` may send it to PostgreSQL, and it commits itself; where none does, ``short``
    gives nothing, and has changed nothing.
    """
    return lambda write: Group(write, key, short)


class Turn(Generic[Item, Result]):
    """An item that waits to be written, and what became of it."""

    __slots__ = ("error", "is_over", "item", "result", "woken")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.woken = threading.Event()
        self.is_over = False
        self.result: Result | None = None
        self.error: Exception | None = None

    def end(self, result: Result | None, error: Exception | None = None) -> None:
        """It was written, or could not be."""
        self.result, self.error, self.is_over = result, error, True

    def outcome(self) -> Result:
        """The result, or the error is raised."""
        if self.error is not None:
            raise self.error
        return cast("Result", self.result)


class Group(Generic[Item, Result]):
    """The turns of one process that wait to be written in the same way.

    Of those with the same key at most one leads, which is the first: it writes.
    """

    def __init__(
        self,
        write: Callable[[list[Item]], list[Result]],
        key: Callable[[Item], Hashable],
        short: Callable[[list[Item]], list[Result] | None] | None = None,
    ) -> None:
        self._write = write
        self._key = key
        self._short = short
        self._queues: dict[Hashable, deque[Turn[Item, Result]]] = {}
        self._lock = threading.Lock()
        functools.update_wrapper(self, write)

    def waiting(self) -> int:
        """How many wait."""
        with self._lock:
            return sum(map(len, self._queues.values()))

    def __call__(self, item: Item) -> Result:
        """Have an item written: when this returns, it is committed. To be called outside of any unit of work.

        What ``write`` or the database says about the item alone is raised.
        """
        turn: Turn[Item, Result] = Turn(item)
        key = self._key(item)
        with self._lock:
            leads = key not in self._queues
            queue = self._queues.setdefault(key, deque())
            queue.append(turn)
        if not leads:
            with aside():
                turn.woken.wait()
        if not turn.is_over:
            self._lead(key, queue)
        return turn.outcome()

    def _lead(self, key: Hashable, queue: deque[Turn[Item, Result]]) -> None:
        """Write for all who wait, wake them, and have the first of those who came meanwhile lead."""
        together: list[Turn[Item, Result]] = []
        try:
            self._write_for(together, queue)
        finally:
            with self._lock:
                following = queue[0] if queue else None
                if following is None:
                    del self._queues[key]
            for turn in together:
                if not turn.is_over:
                    turn.end(None, RuntimeError("whoever wrote was interrupted"))
                turn.woken.set()
            if following is not None:
                following.woken.set()

    def _write_for(self, together: list[Turn[Item, Result]], queue: deque[Turn[Item, Result]]) -> None:
        results: list[Result] | None = None
        is_uncertain = False
        try:
            if self._short is not None and db.engine.dialect.name == "postgresql":
                with reading():
                    self._take(together, queue)
                    is_uncertain = True
                    results = self._short([turn.item for turn in together])
                    is_uncertain = False
            if results is None:
                with unit_of_work():
                    self._take(together, queue)
                    results = self._written([turn.item for turn in together])
        except Exception as error:  # noqa: BLE001  # raised where it belongs
            if results is not None or not together or (is_uncertain and not is_refused(error)):
                # whether the commit took place is not known, or there is no way to write: nothing is tried again
                together += [] if together else self._taken(queue)
                for turn in together:
                    turn.end(None, error)
            else:
                for turn in together:
                    turn.end(*self._written_alone(turn.item, error if len(together) == 1 else None))
        else:
            for turn, result in zip(together, results, strict=True):
                turn.end(result)

    def _written(self, items: list[Item]) -> list[Result]:
        results = self._write(items)
        db.session.flush()
        return results

    def _take(self, together: list[Turn[Item, Result]], queue: deque[Turn[Item, Result]]) -> None:
        """Wait for the other writers, then take who has come until now, unless that has been done."""
        db.session.connection()
        if not together:
            together += self._taken(queue)

    def _taken(self, queue: deque[Turn[Item, Result]]) -> list[Turn[Item, Result]]:
        with self._lock:
            return [queue.popleft() for _ in range(min(LARGEST, len(queue)))]

    def _written_alone(self, item: Item, error: Exception | None) -> tuple[Result | None, Exception | None]:
        """Write what could not be written with others, again where the database had this transaction give way."""
        is_written = False
        for _ in range(ATTEMPTS):
            if is_written or (error is not None and not is_deadlock(error)):
                break
            try:
                with unit_of_work():
                    [result] = self._write([item])
                    db.session.flush()
                    is_written = True
            except Exception as raised:  # noqa: BLE001  # as above
                error = raised
            else:
                return result, None
        return None, error


def is_refused(error: Exception) -> bool:
    """Whether PostgreSQL has said itself that it did not carry a statement out; without that, nobody knows."""
    if not isinstance(error, DBAPIError) or error.connection_invalidated:
        return False
    return getattr(error.orig, "sqlstate", None) is not None
