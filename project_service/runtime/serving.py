"""The whole service in one process tree: the embedded Redis, web server, workers and scheduler under one supervisor."""

from __future__ import annotations

import errno
import fcntl
import http.client
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from project_service.runtime import embedded_redis
from project_service.runtime.startup import Preparation
from project_service.runtime.supervisor import Child, Supervisor
from project_service.settings import PREFIX, Settings

EVERYWHERE = ("0.0.0.0", "::", "")  # hosts that mean all addresses
MAX_WAIT_SECONDS = 2.0  # for the lock, and for the port


class ServeError(Exception):
    """The service cannot be started here; the text says why."""


def serve(settings: Settings, host: str, port: int, workers: int) -> int:
    """Run everything until SIGTERM, SIGINT or SIGHUP and return the exit status. Port 0 takes any free one.

    Once the data directory is locked, a child process prepares the database, and reports its errors. The web server is
    started at the same time, since its start takes as long, and waits for the end of the preparation. Prints the
    address as soon as the web server answers. Raises ``ServeError``, ``EmbeddedRedisError`` or ``SupervisorError``.
    """
    with only_one(settings.data_dir) as lock, _listen(host, port) as listener:
        bound_port = listener.getsockname()[1]
        env = dict(os.environ)
        env[PREFIX + "DATA_DIR"] = str(settings.data_dir)
        embedded_redis.prepare_runtime_dir(settings.runtime_dir)
        env.pop("PROMETHEUS_MULTIPROC_DIR", None)
        metrics_dir = settings.metrics_dir
        if metrics_dir is not None:
            env["PROMETHEUS_MULTIPROC_DIR"] = str(_fresh(metrics_dir))
        else:
            print("no room in /dev/shm: each web process counts its requests alone", file=sys.stderr, flush=True)
        env[PREFIX + "EXTERNAL_URL"] = settings.external_url or url_of(
            "localhost" if host in EVERYWHERE else host, bound_port
        )
        Preparation(settings.runtime_dir).begin()
        children = [Child("preparation", _command("prepare"), env, once=True)]
        if settings.embedded_redis:
            # Redis holds the lock, too: if this process is killed, the next start waits until Redis has ended.
            children.append(
                Child(
                    "redis",
                    embedded_redis.redis_command(settings),
                    env,
                    ready=lambda: embedded_redis.is_ready(settings),
                    needed=True,
                    early=True,
                    pass_fds=(lock,),
                    prepare=lambda: embedded_redis.prepare_directories(settings),
                )
            )
        children += [
            Child(
                "web",
                _web_command(listener, workers),
                env,
                ready=lambda: _answers(listener),
                early=True,
                pass_fds=(listener.fileno(),),
            ),
            Child("workers", _command("worker", "--all"), env),
        ]

        def announce() -> None:
            print(f"Project Service listens on {url_of(host or 'localhost', bound_port)}", flush=True)

        status = Supervisor(children).run(announce)
        for directory in filter(None, (settings.runtime_dir, metrics_dir)):
            shutil.rmtree(directory, ignore_errors=True)
        return status


def url_of(host: str, port: int) -> str:
    """The URL of the service."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def only_one(data_dir: Path) -> Iterator[int]:
    """Lock the data directory for this process tree; yield the descriptor of the lock file."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(data_dir / "serve.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        while not _locked(lock):
            holder = os.pread(lock, 32, 0).decode(errors="replace").strip()
            if time.monotonic() > deadline:
                raise ServeError(f"{data_dir} is served already, by process {holder or 'unknown'}: stop that one first")
            time.sleep(0.05)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        yield lock
    finally:
        os.close(lock)


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "project_service", *words]


def _web_command(listener: socket.socket, workers: int) -> list[str]:
    # The supervisor owns the socket: while the web server is restarted, clients wait instead of failing.
    return [
        sys.executable,
        "-m",
        "gunicorn",
        "--config=python:project_service.runtime.web_server",
        f"--bind=fd://{listener.fileno()}",
        f"--workers={workers}",
        "project_service.runtime.wsgi:create()",
    ]


def _fresh(directory: Path) -> Path:
    embedded_redis.prepare_runtime_dir(directory)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700)
    return directory


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket; a port that is busy may belong to web workers of a killed service, which end in a moment."""
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while True:
        try:
            family, _type, _protocol, _name, address = socket.getaddrinfo(
                host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            return socket.create_server(address[:2], family=family, backlog=2048)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                raise ServeError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
            time.sleep(0.1)


def _answers(listener: socket.socket) -> bool:
    """Whether the web server answers requests."""
    host, port = listener.getsockname()[:2]
    if host in EVERYWHERE:
        host = "::1" if listener.family == socket.AF_INET6 else "127.0.0.1"
    connection = http.client.HTTPConnection(host, port, timeout=2)
    try:
        connection.request("GET", "/-/liveness")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
