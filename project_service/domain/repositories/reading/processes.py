"""Run git for one reading: with a deadline, limited memory and output, and a limited number of processes at once."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO

from project_service.domain.repositories.git import CONFIG, size_on_disk
from project_service.domain.repositories.reading import budget
from project_service.domain.repositories.reading.budget import ReadingFailed, ReadingTooLarge
from project_service.kit.http.errors import Unavailable

READ_SECONDS = 5.0
MAX_OUTPUT_BYTES = 16 << 20
# address space of one process; the indexes of packs, which git maps completely, are added
MAX_MEMORY_BYTES = 256 << 20
MAX_ERROR_BYTES = 64 << 10
NICENESS = 5
MAX_READERS = 8  # processes at once that answer a page or a call
MAX_DOWNLOADS = 16  # processes at once that write to a client, who may be slow
MAX_ANONYMOUS_DOWNLOADS = 8  # beside those
MAX_DOWNLOADS_PER_USER = 4  # with any number of tokens and sessions
MAX_DOWNLOADS_PER_ADDRESS = 2  # of anonymous clients, whatever credentials they make up
MAX_WAITING = 1  # threads that wait for a process to end: each of them could answer others
WAIT_SECONDS = 5.0
CHUNK_BYTES = 64 << 10
# packs are mapped in small pieces, so that large ones fit into the address space too
READ_CONFIG = (
    *CONFIG,
    "core.packedGitWindowSize=16m",
    "core.packedGitLimit=64m",
    "core.deltaBaseCacheLimit=32m",
)
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
NO_MEMORY = re.compile(rb"out of memory|cannot allocate memory", re.IGNORECASE)


class Slots:
    """A number of processes at once, and for one caller. Few threads wait for one; others are refused immediately."""

    def __init__(self, count: int, per_caller: int | None = None) -> None:
        self._free = threading.BoundedSemaphore(count)
        self._waiting = threading.BoundedSemaphore(MAX_WAITING)
        self._per_caller = count if per_caller is None else per_caller
        self._used: Counter[int | str] = Counter()
        self._lock = threading.Lock()

    def acquire(self, caller: int | str | None = None) -> None:
        """Take a slot; ``None`` is a caller that is not limited alone.

        Raises:
            Unavailable: the caller has as many as it may, or none became free in time.

        """
        if caller is not None:
            with self._lock:
                if self._used[caller] >= self._per_caller:
                    raise Unavailable
                self._used[caller] += 1
        try:
            self._acquire_any()
        except BaseException:
            self._forget(caller)
            raise

    def release(self, caller: int | str | None = None) -> None:
        """Give a slot back."""
        self._free.release()
        self._forget(caller)

    def _forget(self, caller: int | str | None) -> None:
        if caller is not None:
            with self._lock:
                self._used[caller] -= 1
                if not self._used[caller]:
                    del self._used[caller]

    def _acquire_any(self) -> None:
        if self._free.acquire(blocking=False):
            return
        if not self._waiting.acquire(blocking=False):
            raise Unavailable
        try:
            if not self._free.acquire(timeout=WAIT_SECONDS):
                raise Unavailable
        finally:
            self._waiting.release()


@dataclass(frozen=True, slots=True)
class CallerSlots:
    """The slots that a caller may use: the id of a user, or an address."""

    slots: Slots
    caller: int | str | None

    def acquire(self) -> None:
        """Take one, see ``Slots.acquire``."""
        self.slots.acquire(self.caller)

    def release(self) -> None:
        """Give one back."""
        self.slots.release(self.caller)


readers = Slots(MAX_READERS)
downloads = Slots(MAX_DOWNLOADS, MAX_DOWNLOADS_PER_USER)
anonymous_downloads = Slots(MAX_ANONYMOUS_DOWNLOADS, MAX_DOWNLOADS_PER_ADDRESS)


class GitProcess:
    """A git process that reads: its standard output, and how it ended."""

    def __init__(self, process: subprocess.Popen[bytes], output: BufferedReader, errors: IO[bytes]) -> None:
        self._process = process
        self._errors = errors
        self._expired = threading.Event()
        self.output = output

    def expire(self) -> None:
        """Kill git because its time is over."""
        self._expired.set()
        self.kill()

    def kill(self) -> None:
        """Kill git unless it has ended."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def ask(self, line: bytes) -> None:
        """Write a line to its standard input."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # there will be no answer
                self._process.stdin.write(line + b"\n")
                self._process.stdin.flush()

    def check_deadline(self) -> None:
        """Raise ``ReadingTooLarge`` if git was killed at its deadline."""
        if self._expired.is_set():
            raise ReadingTooLarge("deadline")

    def check_end(self) -> None:
        """Wait for the end of git, whose output has ended.

        Raises:
            ReadingTooLarge: it needed more time or memory than allowed.
            ReadingFailed: it ended with another error.

        """
        status = self._process.wait()
        self.check_deadline()
        if status in (0, -signal.SIGKILL):
            return
        self._errors.seek(0)
        if status == -signal.SIGXCPU or NO_MEMORY.search(self._errors.read(MAX_ERROR_BYTES)):
            raise ReadingTooLarge("memory")
        raise ReadingFailed("git")


@contextmanager
def output_of(folder: Path, *arguments: str | bytes, seconds: float = READ_SECONDS) -> Iterator[BufferedReader]:
    """Run git in a repository and provide its standard output, which ends early at the deadline.

    The deadline is the nearer one of ``seconds`` and that of the request. Git is killed when the block ends. Callers
    put ``--end-of-options`` or ``--`` before revisions and paths of users.

    Raises:
        ReadingTooLarge: git was killed at the deadline, or had too little memory; raised at the end of the block.
        ReadingFailed: git ended with an error; raised at the end of a block that read everything.
        Unavailable: too many readings are in progress.

    """
    readers.acquire()
    try:
        with started(folder, arguments, budget.current().seconds(seconds)) as process:
            yield process.output
            process.check_deadline()
            if not process.output.read(1):
                process.check_end()
            process.check_deadline()
    finally:
        readers.release()


def read(
    folder: Path, *arguments: str | bytes, seconds: float = READ_SECONDS, max_bytes: int = MAX_OUTPUT_BYTES
) -> bytes:
    """Run git in a repository and return its output, see ``output_of``; at most ``max_bytes`` of it."""
    with output_of(folder, *arguments, seconds=seconds) as output:
        content = output.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise ReadingTooLarge("bytes")
    budget.current().spend(len(content))
    return content


def stream(folder: Path, *arguments: str | bytes, seconds: float, slots: CallerSlots) -> Iterator[bytes]:
    """Run git in a repository and generate its output, for a client who may be slow.

    The first piece must come before the deadline of a request, and the last one in ``seconds``. Errors are those of
    ``output_of``, raised in the middle, so that the client sees that the output is not complete.
    """
    slots.acquire()
    try:
        with started(folder, arguments, seconds) as process:
            wait_seconds = budget.current().seconds(budget.REQUEST_SECONDS)
            if not select.select([process.output], [], [], wait_seconds)[0]:
                raise ReadingTooLarge("deadline")
            while chunk := process.output.read(CHUNK_BYTES):
                yield chunk
            process.check_end()
    finally:
        slots.release()


@contextmanager
def started(
    folder: Path, arguments: tuple[str | bytes, ...], seconds: float, *, stdin: int = subprocess.DEVNULL
) -> Iterator[GitProcess]:
    """Start git with the limits of a reading; it is killed when the block ends."""
    config = [part for setting in READ_CONFIG for part in ("-c", setting)]
    environment = ENVIRONMENT | {"PATH": os.environ.get("PATH", os.defpath)}
    with tempfile.TemporaryFile(buffering=0) as errors:
        process = subprocess.Popen(
            [_program(), *config, "--git-dir", str(folder), *arguments],
            env=environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=errors,
            process_group=0,
        )
        if not isinstance(process.stdout, BufferedReader):
            raise ReadingFailed("git")
        git_process = GitProcess(process, process.stdout, errors)
        timer = threading.Timer(seconds, git_process.expire)
        timer.daemon = True
        timer.start()
        try:
            _limit(process.pid, MAX_MEMORY_BYTES + size_on_disk(folder, "idx"), int(seconds) + 1)
            yield git_process
        finally:
            timer.cancel()
            git_process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
            process.wait()


def _limit(process_id: int, max_bytes: int, max_seconds: int) -> None:
    """Limit the address space, the processor time and the errors of a process that has just begun.

    A reader whose web process was killed ends by these limits.
    """
    limits = {
        resource.RLIMIT_AS: max_bytes,
        resource.RLIMIT_CPU: max_seconds,
        resource.RLIMIT_FSIZE: MAX_ERROR_BYTES,
        resource.RLIMIT_CORE: 0,
    }
    with contextlib.suppress(ProcessLookupError):  # it has ended
        for limit, value in limits.items():
            resource.prlimit(process_id, limit, (value, value))
        os.setpriority(os.PRIO_PROCESS, process_id, os.getpriority(os.PRIO_PROCESS, 0) + NICENESS)


def _program() -> str:
    path = shutil.which("git")
    if path is None:
        raise FileNotFoundError("git is needed for repositories, and is not on the path")
    return path
