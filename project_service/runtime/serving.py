"""The whole service in one process tree: the embedded Redis, web server, workers and scheduler under one supervisor."""

from __future__ import annotations

import errno
import gc
import http.client
import os
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from project_service.kit import file_locks
from project_service.runtime import embedded_redis
from project_service.runtime.startup import Preparation
from project_service.runtime.supervisor import Child, Supervisor
from project_service.settings import PREFIX, Settings

if TYPE_CHECKING:
    from project_service.kit.http.responses import Application

EVERYWHERE = ("0.0.0.0", "::", "")  # hosts that mean all addresses
MAX_WAIT_SECONDS = 2.0  # for the lock, and for the port


class ServeError(Exception):
    """The service cannot be started here; the text says why."""


def serve(settings: Settings, host: str, port: int, workers: int, prepare: Callable[[Application], None]) -> int:
    """Run everything until SIGTERM, SIGINT or SIGHUP and return the exit status. Port 0 takes any free one.

    Once the data directory is locked, this process loads the application; all others but Redis are forks of it and
    share its memory. The first one calls ``prepare``, which upgrades the database; the web server starts at the same
    time and waits for its end. Prints the address as soon as the web server answers. Raises ``ServeError``,
    ``EmbeddedRedisError`` or ``SupervisorError``.
    """
    with only_one(settings.data_dir) as lock, _listen(host, port) as listener:
        bound_port = listener.getsockname()[1]
        embedded_redis.prepare_runtime_dir(settings.runtime_dir)
        settings = _adjust_environment(settings, host, bound_port)
        Preparation(settings.runtime_dir).begin()

        def announce() -> None:
            print(f"Project Service listens on {url_of(host or 'localhost', bound_port)}", flush=True)

        try:
            status = Supervisor(_children(settings, lock, listener, workers, prepare)).run(announce)
        finally:
            Preparation(settings.runtime_dir).end()
        for directory in filter(None, (settings.runtime_dir, settings.metrics_dir)):
            shutil.rmtree(directory, ignore_errors=True)
        return status


def _adjust_environment(settings: Settings, host: str, port: int) -> Settings:
    """Set what the application and its children read from the environment; return the settings read again."""
    os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
    if settings.metrics_dir is not None:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(_fresh(settings.metrics_dir))
    else:
        print("no room in /dev/shm: each web process counts its requests alone", file=sys.stderr, flush=True)
    os.environ[PREFIX + "DATA_DIR"] = str(settings.data_dir)
    os.environ[PREFIX + "EXTERNAL_URL"] = settings.external_url or url_of(
        "localhost" if host in EVERYWHERE else host, port
    )
    return Settings.from_environment()


def _children(
    settings: Settings, lock: int, listener: socket.socket, workers: int, prepare: Callable[[Application], None]
) -> list[Child]:
    gc.disable()  # collections while the application is loaded find nothing and take a sixth of the time
    try:
        from project_service.factory import create_app  # noqa: PLC0415  # reads the environment, and takes a second
        from project_service.runtime import worker_processes  # noqa: PLC0415  # likewise

        app = create_app(settings)
        worker_processes.share_memory()
    finally:
        gc.enable()
    # The supervisor owns the socket: while the web server is restarted, clients wait instead of failing.
    web = Child(
        "web",
        call=lambda: _serve_web(app, listener, workers),
        ready=lambda: _answers(listener),
        early=True,
        close_fds=(lock,),
    )
    without_files = (lock, listener.fileno())
    preparation = Child("preparation", call=lambda: prepare(app), once=True, close_fds=without_files)
    children = [preparation, web, *worker_processes.children(app, without_files)]
    if settings.embedded_redis:
        # Redis holds the lock, too: if this process is killed, the next start waits until Redis has ended.
        redis = Child(
            "redis",
            embedded_redis.redis_command(settings),
            os.environ,
            ready=lambda: embedded_redis.is_ready(settings),
            needed=True,
            early=True,
            pass_fds=(lock,),
            prepare=lambda: embedded_redis.prepare_directories(settings),
        )
        children.insert(1, redis)
    return children


def _serve_web(app: Application, listener: socket.socket, workers: int) -> None:
    from project_service.runtime import web_server, wsgi  # noqa: PLC0415  # have state of one running web server

    web_server.serve(lambda: wsgi.start_web(app), f"fd://{listener.fileno()}", workers)


def url_of(host: str, port: int) -> str:
    """The URL of the service."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def only_one(data_dir: Path) -> Iterator[int]:
    """Lock the data directory for this process tree; yield the descriptor of the lock file."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = data_dir / "serve.lock"
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while (lock := file_locks.try_lock(path)) is None:
        holder = path.read_bytes()[:32].decode(errors="replace").strip()
        if time.monotonic() > deadline:
            raise ServeError(f"{data_dir} is served already, by process {holder or 'unknown'}: stop that one first")
        time.sleep(0.05)
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        yield lock
    finally:
        os.close(lock)


def _fresh(directory: Path) -> Path:
    embedded_redis.prepare_runtime_dir(directory)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700)
    return directory


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
