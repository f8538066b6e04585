"""Run git in isolation: without the configuration of the machine, hooks or network, with limited memory and time."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pygit2

# a delta of a few bytes becomes an object of any size, which git holds in memory: its private memory is limited
# (RLIMIT_DATA, which counts neither mapped packs nor the program); where that is impossible git runs without a limit
MAX_MEMORY_BYTES = 1 << 30
MAX_SECONDS = 12 * 3600
# Exit bits of git fsck: refs or their targets are missing, unreadable or of a wrong type, or git died
FSCK_FAILURES = 0b1000_1110
# A second shell kills git and its children when the pipe on standard input is closed, because the process that started
# git was killed. The rows of the same transfer are deleted first.
SCRIPT = """
ulimit -d "$0" 2>/dev/null
command -v nice >/dev/null && set -- nice -n 10 "$@"
exec 3<&0 </dev/null
(read -r _; kill -KILL 0) <&3 >/dev/null 2>&1 &
exec 3<&-
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
    *arguments: str, folder: Path | None, reads: Path | None = None, max_seconds: float = MAX_SECONDS
) -> subprocess.CompletedProcess[bytes]:
    """Run git and return its exit status and all of its output and errors, which must fit into memory.

    Git is killed after ``max_seconds``, with a negative exit status. Callers put ``--end-of-options`` or ``--`` before
    revisions and paths of others.
    """
    config = [part for setting in CONFIG for part in ("-c", setting)]
    repository = ["--git-dir", str(folder)] if folder else []
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    max_kibibytes = (MAX_MEMORY_BYTES + _size_on_disk(reads or folder) // 4) >> 10
    command = ["/bin/sh", "-c", SCRIPT, str(max_kibibytes), _program(), *config, *repository, *arguments]
    pipe = subprocess.PIPE
    with (
        _lifeline() as line,
        subprocess.Popen(command, env=environment, stdin=line, stdout=pipe, stderr=pipe, process_group=0) as process,
    ):
        try:
            out, err = process.communicate(timeout=max_seconds)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the children of git do the work
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            out, err = process.communicate()
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


@contextmanager
def _lifeline() -> Iterator[int]:
    """The reading end of a pipe whose writing end closes with this block, also when this process is killed."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


def _size_on_disk(path: Path | None) -> int:
    """The bytes of a bundle, or of the packs of a repository."""
    if path is None or path.is_file():
        return path.stat().st_size if path else 0
    return sum(pack.stat().st_size for pack in path.glob("objects/pack/*"))


@functools.cache
def _program() -> str:
    found = shutil.which("git")
    if found is None:
        raise FileNotFoundError("git is needed for repositories, and is not on the path")
    return found
