"""Making things in a process of its own, one ahead of whoever uses them.

Python computes in one thread at a time, so what makes rows and what stores them only take turns in one process. Here
a generator runs in a process that is forked for it: while one of its things is used, it makes the next, and no more
than that. Both processes share the memory that things travel in: a pipe takes them in small pieces, for each of which
both have to be awake.
"""

from __future__ import annotations

import contextvars
import itertools
import mmap
import multiprocessing
import os
import pickle
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import structlog
from flask import current_app

from project_service.kit import jobs
from project_service.kit.db.session import db
from project_service.kit.processes import die_with

Thing = TypeVar("Thing")
Way = tuple[Connection, mmap.mmap]
LAST_SECONDS = 1.0
PLACE = 16 << 20  # bytes, of which only those are taken that are written to
PLACES = 2  # for the thing that is used and the one that is ahead
IN_PIPE = b""  # said of a thing that has no room in a place, and comes behind
GONE = (EOFError, BrokenPipeError, ConnectionResetError)  # what is said of who is at the other end


class Ended(Exception):
    """The process that made the things has ended before the last of them, or could not send what it made."""


def pays() -> bool:
    """Whether there is a second processor, and a kernel that ends a process with its parent."""
    return os.cpu_count() != 1 and sys.platform == "linux"


@contextmanager
def ahead(things: Iterable[Thing], *, are_many: bool = True) -> Iterator[Iterator[Thing]]:
    """Have things made in a process of its own; what is yielded gives them in their order, and raises its errors.

    The generator must not have begun. It may read and write the database, on connections of its own; what it sees of
    what is done with the things is done with all but the last one it has made. No unit of work is open where this is
    called. Few things are not worth a process; these are made where they are used, and so are all where it does not
    ``pay``.
    """
    if not are_many or not pays():
        yield iter(things)
        return
    db.session.commit()
    here, there = multiprocessing.Pipe()
    shared = mmap.mmap(-1, PLACES * PLACE)
    told = (current_app._get_current_object(), things, (there, shared), here, os.getpid())  # type: ignore[attr-defined]  # the proxy is untyped
    process = multiprocessing.get_context("fork").Process(target=_make, args=told, name="ahead", daemon=True)
    with jobs.at_rest():
        process.start()
    there.close()
    try:
        yield _received(here, shared)
    finally:
        here.close()
        shared.close()
        process.join(LAST_SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()


def _received(connection: Connection, shared: mmap.mmap) -> Iterator[Any]:
    places = itertools.cycle(range(PLACES))
    while True:
        try:
            is_thing, made = _next(connection, shared, next(places))
        except GONE as error:
            raise Ended("the process that worked ahead has ended") from error
        if not is_thing:
            break
        yield made
        del made  # it may be large, and so may the next
        with suppress(*GONE):
            connection.send_bytes(b"used")
    if made is not None:
        raise made


def _next(connection: Connection, shared: mmap.mmap, place: int) -> Any:
    """What was sent, from its place in the memory or through the pipe."""
    size = connection.recv_bytes()
    if size == IN_PIPE:
        return pickle.loads(connection.recv_bytes())  # noqa: S301  # from a process that we have forked
    begin = place * PLACE
    with memoryview(shared) as memory, memory[begin : begin + int(size)] as message:
        return pickle.loads(message)  # noqa: S301  # the same


def _send(connection: Connection, shared: mmap.mmap, place: int, message: bytes) -> None:
    """Have a message where ``_next`` finds it."""
    if len(message) > PLACE:
        connection.send_bytes(IN_PIPE)
        connection.send_bytes(message)
        return
    begin = place * PLACE
    shared[begin : begin + len(message)] = message
    connection.send_bytes(b"%d" % len(message))


def _make(application: Any, things: Iterable[Any], way: Way, here: Connection, parent: int) -> None:
    die_with(parent)
    here.close()  # or this end would never notice that the other one is gone
    bound = structlog.contextvars.get_contextvars()
    # what belongs to the parent's unit of work stays the parent's
    contextvars.Context().run(_send_all, application, things, way, bound)


def _send_all(application: Any, things: Iterable[Any], way: Way, bound: dict[str, Any]) -> None:
    structlog.contextvars.bind_contextvars(**bound)
    there, shared = way
    with suppress(*GONE):  # nobody waits for more
        for number, message in enumerate(_messages(application, things)):
            _send(there, shared, number % PLACES, message)
            if number:
                there.recv_bytes()  # what was sent before has been used


def _messages(application: Any, things: Iterable[Any]) -> Iterator[bytes]:
    """Each thing, and at the end the error or nothing, as it travels."""
    try:
        application.after_fork()
        with application.app_context():
            for thing in things:
                yield pickle.dumps((True, thing), pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001  # raised where the things are used
        yield pickle.dumps((False, _portable(error)))
    else:
        yield pickle.dumps((False, None))


def _portable(error: Exception) -> Exception:
    """The error with where it came from, or what it says if it cannot be sent."""
    error.add_note(traceback.format_exc())
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301  # our own, made a moment ago
    except Exception:  # noqa: BLE001  # whatever the error makes of being copied
        return Ended("".join(traceback.format_exception(error)))
    return error
