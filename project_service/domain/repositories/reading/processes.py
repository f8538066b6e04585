"""Run git for one reading: with a deadline, limited memory and output, and a limited number of processes at once."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from project_service.domain.repositories.git import CONFIG
from project_service.kit.http.errors import Unavailable

READ_SECONDS = 5.0
MAX_OUTPUT_BYTES = 16 << 20
MAX_MEMORY_KIBIBYTES = 1 << 20  # private memory of one process
MAX_READERS = 8  # processes at once that answer a page or a call
MAX_DOWNLOADS = 8  # processes at once that write to a client, who may be slow
MAX_ANONYMOUS_DOWNLOADS = 4  # beside those
MAX_WAITING = 1  # threads that wait for a process to end: each of them could answer others
WAIT_SECONDS = 5.0
CHUNK_BYTES = 64 << 10
# the shell limits memory and processor time and is replaced by git; a reader whose web process was killed ends by these
SCRIPT = """
ulimit -d "$0" 2>/dev/null
ulimit -t "$1" 2>/dev/null
shift
command -v nice >/dev/null && exec nice -n 5 "$@"
exec "$@"
"""
ENVIRONMENT = {
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "LC_ALL": "C",
    "TZ": "UTC",
}


class Slots:
    """A number of processes at once. Few threads wait for one; further ones are refused immediately."""

    def __init__(self, count: int) -> None:
        self._free = threading.BoundedSemaphore(count)
        self._waiting = threading.BoundedSemaphore(MAX_WAITING)

    def acquire(self) -> None:
        """Take a slot.

        Raises:
            Unavailable: none became free in time.

        """
        if self._free.acquire(blocking=False):
            return
        if not self._waiting.acquire(blocking=False):
            raise Unavailable
        try:
            if not self._free.acquire(timeout=WAIT_SECONDS):
                raise Unavailable
        finally:
            self._waiting.release()

    def release(self) -> None:
        """Give a slot back."""
        self._free.release()


readers, downloads, anonymous_downloads = Slots(MAX_READERS), Slots(MAX_DOWNLOADS), Slots(MAX_ANONYMOUS_DOWNLOADS)


class ReadingFailed(Exception):
    """Git did not answer: the revision or path is missing, or an object cannot be read."""


class ReadingTooLarge(ReadingFailed):
    """Git was killed at its deadline, or because its output is larger than allowed."""


@contextmanager
def output_of(
    folder: Path,
    *arguments: str | bytes,
    seconds: float = READ_SECONDS,
    slots: Slots = readers,
) -> Iterator[BufferedReader]:
    """Run git in a repository and provide its standard output, which ends early at the deadline.

    Git is killed when the block ends. Callers put ``--end-of-options`` or ``--`` before revisions and paths of users.

    Raises:
        ReadingTooLarge: git was killed at the deadline; raised at the end of the block.
        ReadingFailed: git ended with an error; raised at the end of a block that read everything.
        Unavailable: too many readings are in progress.

    """
    slots.acquire()
    try:
        with _started(folder, arguments, seconds) as (process, expired, output):
            yield output
            if expired.is_set():
                raise ReadingTooLarge(arguments[0])
            if not output.read(1) and process.wait() not in (0, -signal.SIGKILL):
                raise ReadingFailed(arguments[0])
            if expired.is_set():
                raise ReadingTooLarge(arguments[0])
    finally:
        slots.release()


def read(
    folder: Path, *arguments: str | bytes, seconds: float = READ_SECONDS, max_bytes: int = MAX_OUTPUT_BYTES
) -> bytes:
    """Run git in a repository and return its output, see ``output_of``; at most ``max_bytes`` of it."""
    with output_of(folder, *arguments, seconds=seconds) as output:
        found = output.read(max_bytes + 1)
        if len(found) > max_bytes:
            raise ReadingTooLarge(arguments[0])
    return found


@contextmanager
def _started(
    folder: Path, arguments: tuple[str | bytes, ...], seconds: float
) -> Iterator[tuple[subprocess.Popen[bytes], threading.Event, BufferedReader]]:
    config = [part for setting in CONFIG for part in ("-c", setting)]
    limits = ["/bin/sh", "-c", SCRIPT, str(MAX_MEMORY_KIBIBYTES), str(int(seconds) + 1)]
    command = [*limits, _program(), *config, "--git-dir", str(folder), *arguments]
    environment = ENVIRONMENT | {"PATH": os.environ.get("PATH", os.defpath)}
    null = subprocess.DEVNULL
    process = subprocess.Popen(
        command, env=environment, stdin=null, stdout=subprocess.PIPE, stderr=null, process_group=0
    )
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        _kill(process)

    timer = threading.Timer(seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        if not isinstance(process.stdout, BufferedReader):
            raise ReadingFailed(arguments[0])
        yield process, expired, process.stdout
    finally:
        timer.cancel()
        _kill(process)
        if process.stdout is not None:
            process.stdout.close()
        process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _program() -> str:
    found = shutil.which("git")
    if found is None:
        raise FileNotFoundError("git is needed for repositories, and is not on the path")
    return found
