"""Receive request bodies in the event loop: completely, into memory or an unlinked file, before a thread is needed."""

from __future__ import annotations

import asyncio
import errno
import io
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import IO, Any
from wsgiref.types import WSGIEnvironment

from werkzeug.exceptions import (
    ClientDisconnected,
    HTTPException,
    RequestEntityTooLarge,
    RequestTimeout,
    TooManyRequests,
)

from project_service.kit.concurrency import Busy, ConcurrencyLimiter, ShareLimits, Shares
from project_service.kit.http.clients.admission import Admission, RequestSender, Work

GRACE_SECONDS = 10.0
MIN_BYTES_PER_SECOND = 1000
MAX_BODY_BYTES_IN_MEMORY = 64 << 10
WRITTEN_BYTES = 256 << 10
MIB = 1 << 20
# bytes of bodies whose senders were not authenticated, in one process
STORED = ShareLimits(
    total=1024 * MIB,
    per_credential=256 * MIB,
    per_address=128 * MIB,
    anonymous=256 * MIB,
    per_anonymous_address=64 * MIB,
)
# bodies that are larger than anyone may send, and whose senders were authenticated
LARGE = ShareLimits(total=32, per_credential=4, per_address=8, anonymous=0, per_anonymous_address=0)
CREDENTIAL_FACTOR = 4  # a public key has clients at many addresses
MIN_FREE_DISK = 0.05  # of the disk; a large body is refused rather than fill it
ADMISSION_THREADS, FILE_THREADS = 2, 2
MAX_DRAINED_BYTES = 256 << 20
DRAIN_SECONDS = 30.0
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class NoRoomForBody(HTTPException):
    """The disk has no room for the body of a request."""

    code = 507
    name = "Insufficient Storage: there is no room left on the disk of this server"


class IncomingBody:
    """The body of a request as it arrives. ``complete`` once its end was received."""

    def __init__(self, receive: Receive, environ: WSGIEnvironment) -> None:
        self._receive = receive
        self.length = int(environ.get("CONTENT_LENGTH") or 0)
        self.complete = not self.length and "HTTP_TRANSFER_ENCODING" not in environ

    async def take(self) -> bytes:
        """Return what came in ``GRACE_SECONDS`` at most: the rest, or as much as the minimum rate demands.

        Raises ``RequestTimeout`` for a client that is too slow and ``ClientDisconnected`` for one that is gone.
        """
        chunks: list[bytes] = []
        missing = GRACE_SECONDS * MIN_BYTES_PER_SECOND
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                while missing > 0 and not self.complete:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnected
                    chunks.append(message.get("body", b""))
                    missing -= len(chunks[-1])
                    self.complete = not message.get("more_body", False)
        except TimeoutError:
            raise RequestTimeout from None
        return b"".join(chunks)

    async def drain(self) -> None:
        """Discard the rest, so that a client that is still sending receives its response."""
        drained = 0
        with suppress(RequestTimeout, ClientDisconnected, TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while not self.complete and drained < MAX_DRAINED_BYTES:
                    drained += len(await self.take())


class TooLargeBody(io.RawIOBase):
    """``wsgi.input`` of a body that is not received, because it is too large: whoever reads it gets the error."""

    def readable(self) -> bool:
        return True

    def readinto(self, _buffer: Any) -> int:
        raise RequestEntityTooLarge


class BodyReceiver:
    """Receives the bodies of one process into ``spool_dir``.

    ``max_waiting`` is the number of bodies that one address may be sending at the same time; 0 is unlimited.
    """

    def __init__(self, admission: Admission, spool_dir: str | None, max_waiting: int) -> None:
        self._admission = admission
        self._spool_dir = spool_dir
        most = max_waiting or 1_000_000
        several = CREDENTIAL_FACTOR * most
        self._bodies = Shares(ShareLimits(1_000_000, several, most, several, most))
        self._stored = Shares(STORED)
        self._large = ConcurrencyLimiter(LARGE, ShareLimits(0, 0, 0, 0, 0), 0)
        self._admissions = ThreadPoolExecutor(ADMISSION_THREADS, "admission")
        self._files = ThreadPoolExecutor(FILE_THREADS, "file")

    @asynccontextmanager
    async def received(
        self, environ: WSGIEnvironment, body: IncomingBody, work: Work, sender: RequestSender
    ) -> AsyncIterator[IO[bytes]]:
        """Receive a body and provide it as a file, which is removed at the end of the block.

        A body that is too large is not received: reading the file raises ``RequestEntityTooLarge``, so that the
        application refuses it in its own way, or says that the sender may not send anything.

        Raises:
            TooManyRequests: the client is sending as many bodies as it may.
            Busy: its share of the disk, or of large bodies, is used up.
            NoRoomForBody: the disk is full.

        """
        async with AsyncExitStack() as stack:
            with tempfile.SpooledTemporaryFile(MAX_BODY_BYTES_IN_MEMORY, dir=self._spool_dir) as spool:
                try:
                    is_complete = body.complete or await self._receive(environ, body, work, sender, spool, stack)
                except OSError as error:
                    if error.errno not in FULL_DISK:
                        raise
                    raise NoRoomForBody from error
                spool.seek(0)
                yield spool if is_complete else io.BufferedReader(TooLargeBody())

    async def _receive(
        self,
        environ: WSGIEnvironment,
        body: IncomingBody,
        work: Work,
        sender: RequestSender,
        spool: IO[bytes],
        stack: AsyncExitStack,
    ) -> bool:
        """Receive a body; false if it is too large."""
        try:
            self._bodies.take(sender)
        except Busy:
            raise TooManyRequests from None
        try:
            if body.length <= work.max_body_bytes and await self._receive_small(body, work, sender, spool, stack):
                return True
            if not work.asks_for_more:
                return False
            await stack.enter_async_context(self._large.slot(sender))
            loop = asyncio.get_running_loop()
            most = await loop.run_in_executor(self._admissions, self._admission.max_body_bytes, environ)
            return body.length <= most and await self._receive_large(body, most, spool)
        finally:
            self._bodies.give_back(sender)

    async def _receive_small(
        self, body: IncomingBody, work: Work, sender: RequestSender, spool: IO[bytes], stack: AsyncExitStack
    ) -> bool:
        while not body.complete:
            data = await body.take()
            self._stored.take(sender, len(data))
            stack.callback(self._stored.give_back, sender, len(data))
            spool.write(data)
            if spool.tell() > work.max_body_bytes:
                return False
        return True

    async def _receive_large(self, body: IncomingBody, max_bytes: int, spool: IO[bytes]) -> bool:
        """Receive the rest of a body, and write it in a thread: a busy disk makes writers wait."""
        loop = asyncio.get_running_loop()
        while not body.complete:
            data = bytearray()
            while not body.complete and len(data) < WRITTEN_BYTES:
                data += await body.take()
            await loop.run_in_executor(self._files, self._write, spool, data)
            if spool.tell() > max_bytes:
                return False
        return True

    def _write(self, spool: IO[bytes], data: bytearray) -> None:
        usage = shutil.disk_usage(self._spool_dir or tempfile.gettempdir())
        if usage.free < MIN_FREE_DISK * usage.total:
            raise NoRoomForBody
        spool.write(data)
