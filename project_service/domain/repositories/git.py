"""Run git in isolation: without the configuration of the machine, hooks or network, with limited memory and time."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pygit2

# a delta of a few bytes becomes an object of any size, which git holds in memory: its private memory is limited
# (RLIMIT_DATA, which counts neither mapped packs nor the program); where that is impossible git runs without a limit
MAX_MEMORY_BYTES = 1 << 30
MAX_SECONDS = 12 * 3600
PIPE_BYTES = 1 << 20
# Exit bits of git fsck: refs or their targets are missing, unreadable or of a wrong type, or git died
FSCK_FAILURES = 0b1000_1110
# A second shell kills git and its children when the pipe with the number $2 is closed, because the process that started
# git was killed. The rows of the same transfer are deleted first.
SCRIPT = """
ulimit -d "$1" 2>/dev/null
(read -r _; kill -KILL 0) <"/dev/fd/$2" >/dev/null 2>&1 &
shift 2
command -v nice >/dev/null && set -- nice -n 10 "$@"
"$@"
status=$?
{ kill -KILL $!; wait $!; } >/dev/null 2>&1
exit $status
"""
# what a foreign repository could trigger, and memory that grows with it, is switched off
CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "safe.directory=*",
    "gc.auto=0",
    "pack.threads=1",
    "pack.windowMemory=64m",
    "core.bigFileThreshold=16m",
)


class BadBundle(Exception):
    """A file that is not a bundle, or a bundle whose objects are missing or unreadable."""


def git(*arguments: str, folder: Path | None = None, reads: Path | None = None) -> bytes:
    """Run git and return its output; ``BadBundle`` if it fails.

    ``folder`` is the repository; the memory limit grows with its size, or with that of the file ``reads``.
    """
    done = run(*arguments, folder=folder, reads=reads)
    if done.returncode:
        raise BadBundle("Invalid bundle file")
    return done.stdout


def check(folder: Path) -> None:
    """Raise ``BadBundle`` if objects of a repository are missing, or refs point to none.

    Contents were compared with their hashes when git cloned the bundle and are not read again. Irregular objects, which
    old programs created, are accepted.
    """
    done = run("fsck", "--connectivity-only", "--no-dangling", "--no-progress", folder=folder)
    if done.returncode & FSCK_FAILURES or done.returncode < 0:
        raise BadBundle("Invalid bundle file: objects are missing or cannot be read")


def opened(folder: Path) -> pygit2.Repository:
    """Open a repository with pygit2."""
    import pygit2  # noqa: PLC0415  # 9 MB of memory that only processes which open repositories need

    return pygit2.Repository(str(folder))


def run(
    *arguments: str,
    folder: Path | None,
    reads: Path | None = None,
    max_seconds: float | None = None,
    data: bytes | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run git and return its exit status and all of its output and errors, which must fit into memory.

    ``data`` is its standard input. Git is killed after ``max_seconds``, by default ``MAX_SECONDS``; its status is then
    negative. Callers put ``--end-of-options`` or ``--`` before revisions and paths of others.
    """
    with started(
        *arguments,
        folder=folder,
        size=size_on_disk(reads or folder),
        stdin=subprocess.DEVNULL if data is None else subprocess.PIPE,
        stderr=subprocess.PIPE,
        max_seconds=max_seconds,
    ) as process:
        out, err = process.communicate(data)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


@contextmanager
def started(
    *arguments: str,
    folder: Path | None,
    size: int = 0,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stderr: int | IO[bytes] = subprocess.DEVNULL,
    config: tuple[str, ...] = (),
    variables: Mapping[str, str] | None = None,
    max_seconds: float | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start git with a pipe for its output; it is killed with all its children when the block ends, if it still runs.

    ``size`` is the number of bytes that it works on, with which the memory limit grows.
    """
    settings = [part for setting in (*CONFIG, *config) for part in ("-c", setting)]
    repository = ["--git-dir", str(folder)] if folder else []
    max_kibibytes = str((MAX_MEMORY_BYTES + size // 4) >> 10)
    with _lifeline() as line:
        command = ["/bin/sh", "-c", SCRIPT, "git", max_kibibytes, str(line)]
        process = subprocess.Popen(
            [*command, _program(), *settings, *repository, *arguments],
            env=_environment() | dict(variables or {}),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            process_group=0,
            pass_fds=(line,),
            pipesize=PIPE_BYTES,
        )
        timer = threading.Timer(MAX_SECONDS if max_seconds is None else max_seconds, _kill, (process,))
        timer.daemon = True
        timer.start()
        try:
            yield process
            _close(process.stdin)
        finally:
            timer.cancel()
            _kill(process)
            _close(process.stdin, process.stdout, process.stderr)
            process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill git and its children, which do the work."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _close(*pipes: IO[Any] | None) -> None:
    for pipe in pipes:
        if pipe is not None:
            with suppress(BrokenPipeError):  # what was not yet written is of no use to a process that has ended
                pipe.close()


def _environment() -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "LC_ALL": "C",
    }


@contextmanager
def _lifeline() -> Iterator[int]:
    """The reading end of a pipe whose writing end closes with this block, also when this process is killed."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


def size_on_disk(path: Path | None, suffix: str = "pack") -> int:
    """The bytes of a bundle, or of the packs (or ``idx``) of a repository and of the one it borrows from."""
    if path is None or path.is_file():
        return path.stat().st_size if path else 0
    borrowed = path / "objects/info/alternates"
    folders = [path / "objects"]
    if borrowed.exists():
        folders += [Path(os.fsdecode(line)) for line in borrowed.read_bytes().splitlines()]
    return sum(pack.stat().st_size for folder in folders for pack in folder.glob(f"pack/*.{suffix}"))


@functools.cache
def _program() -> str:
    path = shutil.which("git")
    if path is None:
        raise FileNotFoundError("git is needed for repositories, and is not on the path")
    return path
