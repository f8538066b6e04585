"""Requests at a steady rate, as a crowd of clients sends them: each at its moment, whatever became of those before.

What an answer takes is counted from the moment at which its request was due, so that waiting for others counts too.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

RATE = 200
CONNECTIONS = 32

numbers = itertools.count()

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Refused(Exception):
    """An answer that measures nothing."""


def percentiles(
    addresses: Sequence[str], headers: Mapping[str, str], wanted: Iterable[int], seconds: float
) -> dict[int, float]:
    """Ask for the addresses in turn, for so long, each request with a parameter of its own; milliseconds by percent."""
    try:
        took = asyncio.run(_send(addresses, headers, round(RATE * seconds)))
    except Refused as refused:
        sys.exit(f"{refused}")
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    return {percent: cuts[percent - 1] * 1000 for percent in wanted}


async def _send(addresses: Sequence[str], headers: Mapping[str, str], count: int) -> list[float]:
    """How long each of so many took, in seconds."""
    place = urlsplit(addresses[0])
    opened = [await asyncio.open_connection(place.hostname, place.port) for _ in range(CONNECTIONS)]
    free: asyncio.LifoQueue[Connection] = asyncio.LifoQueue()
    for connection in opened:
        free.put_nowait(connection)
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def one(due: float, request: bytes) -> float:
        connection = await free.get()
        await _answer(connection, request)
        free.put_nowait(connection)
        return loop.time() - due

    asked = []
    sent = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
    try:
        for number in range(count):
            path = urlsplit(addresses[number % len(addresses)]).path
            request = f"GET {path}?run={os.getpid()}-{next(numbers)} HTTP/1.1\r\nHost: {place.netloc}\r\n{sent}\r\n"
            due = began + number / RATE
            await asyncio.sleep(due - loop.time())
            asked.append(asyncio.create_task(one(due, request.encode())))
        return await asyncio.gather(*asked)
    finally:
        for _, writer in opened:
            writer.close()
            await writer.wait_closed()


async def _answer(connection: Connection, request: bytes) -> None:
    """Send a request and read its answer to the end; ``Refused`` if it is no success."""
    reader, writer = connection
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status, *lines = head.split("\r\n")
    if status.split()[1] != "200":
        raise Refused(f"{request!r}: {status}")
    fields = dict(line.lower().split(": ", 1) for line in lines if line)
    await reader.readexactly(int(fields["content-length"]))
