"""The worker: takes the bells that ``kit.jobs`` rings from Redis and answers each in a process of its own.

Losing one is no harm, since the database knows what is to be done. So a worker that must stop kills what it runs after
a moment, and one whose Redis is away simply waits for it.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from types import FrameType
from typing import Any

import redis
import rq
from rq.job import Job

from project_service.kit.processes import die_with
from project_service.settings import Settings

HEARTBEAT_KEY = "project-service:worker:"
HEARTBEAT_EVERY = 5.0
HEARTBEAT_LASTS = 15
HAND_BACK_AFTER = 6.0
FIRST_DELAY = 0.2
LONGEST_DELAY = 5.0

log = logging.getLogger(__name__)


def work(
    settings: Settings,
    queues: Sequence[str],
    run_in_context: Callable[[], AbstractContextManager[Any]],
    after_fork: Callable[[], None],
) -> None:
    """Answer jobs of ``queues``, the first ones first, until SIGTERM or SIGINT.

    A job runs in a forked process, after ``after_fork()`` (which lets go of the database connections that the parent
    had) and inside ``run_in_context()``. On a signal it has ``HAND_BACK_AFTER`` seconds to finish; then it is killed
    and its lease in the database runs out. Needs the main thread.
    """
    identity = f"{socket.gethostname()}-{os.getpid()}"
    stopped = threading.Event()
    heart = threading.Thread(target=_beat, args=(settings, identity, stopped), name="heartbeat", daemon=True)
    heart.start()
    delay = FIRST_DELAY
    try:
        while True:
            started = time.monotonic()
            try:
                worker = ForkingWorker(
                    list(queues), connection=redis.Redis.from_url(settings.redis_url), log_job_description=False
                )
                worker.run_in_context = run_in_context
                worker.after_fork = after_fork
                worker.work(logging_level=None)
                if worker.asked_to_stop:
                    return
            except redis.RedisError as error:
                log.warning("Redis cannot be reached: %s", error)
            if time.monotonic() - started > LONGEST_DELAY:
                delay = FIRST_DELAY
            time.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY)
    except rq.exceptions.StopRequested:
        return
    finally:
        stopped.set()
        heart.join(timeout=1)


def seen_recently(connection: redis.Redis) -> bool:
    """Whether any worker has given a sign of life within ``HEARTBEAT_LASTS`` seconds."""
    return next(iter(connection.scan_iter(match=HEARTBEAT_KEY + "*", count=1000)), None) is not None


class ForkingWorker(rq.Worker):
    """RQ's worker without what we have no use for, and with a sure end."""

    log_result_lifespan = False
    max_connection_wait_time = LONGEST_DELAY
    run_in_context: Callable[[], AbstractContextManager[Any]]
    after_fork: Callable[[], None]
    asked_to_stop = False

    def subscribe(self) -> None:
        """Nobody sends RQ's commands to our workers; their thread would outlive a worker that lost its Redis."""

    def perform_job(self, job: Job, queue: rq.Queue) -> bool:
        # In the forked process, which ends after this whatever happens.
        die_with(self.pid or 0)
        try:
            self.after_fork()
            with self.run_in_context():
                return super().perform_job(job, queue)
        except BaseException:
            log.exception("a job could not be run")
            raise

    def request_stop(self, signum: int, frame: FrameType | None) -> None:
        self.asked_to_stop = True
        impatience = threading.Timer(HAND_BACK_AFTER, self.hand_back)
        impatience.daemon = True
        impatience.start()
        super().request_stop(signum, frame)  # type: ignore[no-untyped-call]  # RQ leaves it untyped

    def hand_back(self) -> None:
        """Kill the running job; another worker takes it up when its lease has run out."""
        if self.horse_pid:
            log.warning("the running job is handed back")
            self.kill_horse(signal.SIGKILL)


def _beat(settings: Settings, identity: str, stopped: threading.Event) -> None:
    # A client of its own: a fork of the worker must never find this thread amid a lock of the worker's.
    with redis.Redis.from_url(settings.redis_url, socket_timeout=2, retry=None) as client:
        while True:
            with suppress(redis.RedisError):
                client.set(HEARTBEAT_KEY + identity, "1", ex=HEARTBEAT_LASTS)
            if stopped.wait(HEARTBEAT_EVERY):
                break
        with suppress(redis.RedisError):
            client.delete(HEARTBEAT_KEY + identity)
