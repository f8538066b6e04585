"""The RQ worker with an embedded Redis: forking, heartbeat, reconnection, stop."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
import rq

from project_service.kit.jobs import rq_worker
from project_service.runtime import embedded_redis
from project_service.settings import Settings
from tests.runtime.test_supervisor import PATIENCE, lives, soon
from tests.support.redis_servers import wait_until_ready

REPOSITORY = Path(__file__).parents[2]

WORKER = """
import contextlib
from project_service.kit.jobs import rq_worker
from project_service.settings import Settings
from tests.runtime import test_rq_worker as this

rq_worker.STOP_GRACE_SECONDS = 0.5
rq_worker.work(Settings.from_environment(), ["first", "second"], this.context, lambda: this.note("forked"))
"""


def note(text: str) -> None:
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(f"{text}\n")


def context() -> Context:
    return Context()


class Context:
    """Records when it is entered and left."""

    def __enter__(self) -> None:
        note("entered")

    def __exit__(self, *_: object) -> None:
        note("left")


def job(seconds: float) -> None:
    note(f"job {os.getpid()}")
    time.sleep(seconds)


@dataclass
class World:
    """A Redis, a worker, and the notes of its jobs."""

    settings: Settings
    notes_file: Path
    redis_server: subprocess.Popen[bytes]
    worker: subprocess.Popen[bytes]

    def notes(self) -> list[str]:
        return self.notes_file.read_text().splitlines() if self.notes_file.exists() else []

    def jobs(self) -> list[int]:
        return [int(line.split()[1]) for line in self.notes() if line.startswith("job ")]

    def enqueue(self, seconds: float = 0) -> None:
        with redis.Redis.from_url(self.settings.redis_url) as connection:
            rq.Queue("second", connection=connection).enqueue(
                "tests.runtime.test_rq_worker.job", seconds, result_ttl=0, failure_ttl=3600
            )

    def restart_redis(self) -> None:
        self.redis_server.kill()
        self.redis_server.wait()
        self.redis_server = start_redis(self.settings)


def start_redis(settings: Settings) -> subprocess.Popen[bytes]:
    server = subprocess.Popen(embedded_redis.redis_command(settings))
    wait_until_ready(settings)
    return server


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    data_dir = {"PROJECT_SERVICE_DATA_DIR": str(tmp_path)}
    settings = Settings.from_environment(data_dir)
    redis_server = start_redis(settings)
    environment = {**os.environ, **data_dir, "NOTES": str(tmp_path / "notes")}
    worker = subprocess.Popen([sys.executable, "-c", WORKER], cwd=REPOSITORY, env=environment)
    world = World(settings, tmp_path / "notes", redis_server, worker)
    try:
        yield world
    finally:
        for process in (world.worker, world.redis_server):
            process.kill()
            process.wait()
        shutil.rmtree(settings.runtime_dir)


def test_a_job_runs_after_the_fork_and_in_its_context(world: World) -> None:
    world.enqueue()

    assert soon(lambda: len(world.notes()) == 4)
    assert world.notes() == ["forked", "entered", f"job {world.jobs()[0]}", "left"]
    assert world.jobs()[0] != world.worker.pid


def test_a_worker_sends_heartbeats_until_it_stops(world: World) -> None:
    with redis.Redis.from_url(world.settings.redis_url) as connection:
        assert soon(lambda: rq_worker.has_live_worker(connection))

        world.enqueue()
        assert soon(lambda: bool(world.jobs()))
        world.worker.terminate()

        assert world.worker.wait(PATIENCE) == 0
        assert not rq_worker.has_live_worker(connection)


def test_a_worker_reconnects_after_a_restart_of_redis(world: World) -> None:
    world.enqueue()
    assert soon(lambda: len(world.jobs()) == 1)

    world.restart_redis()
    world.enqueue()

    assert soon(lambda: len(world.jobs()) == 2)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of their parent's death")
def test_the_running_job_is_killed_with_its_worker(world: World) -> None:
    world.enqueue(60)
    assert soon(lambda: bool(world.jobs()))

    world.worker.kill()

    assert soon(lambda: not lives(world.jobs()[0]))


def test_a_stop_kills_a_job_that_does_not_finish_in_time(world: World) -> None:
    world.enqueue(60)
    assert soon(lambda: bool(world.jobs()))

    world.worker.send_signal(signal.SIGTERM)

    assert world.worker.wait(PATIENCE) == 0
    assert soon(lambda: not lives(world.jobs()[0]))
