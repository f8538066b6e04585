"""RQ worker: runs each queued job in a forked process, with heartbeat, graceful stop and reconnection to Redis.

A job that is killed is not lost: its task is in the database and is claimed again when the lease has expired.
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

from project_service.kit.jobs import stopping
from project_service.kit.processes import die_with
from project_service.settings import Settings

HEARTBEAT_KEY = "project-service:worker:"
HEARTBEAT_SECONDS = 5.0
HEARTBEAT_TTL_SECONDS = 15
STOP_GRACE_SECONDS = 6.0
MIN_RECONNECT_SECONDS = 0.2
MAX_RECONNECT_SECONDS = 5.0

log = logging.getLogger(__name__)


def work(
    settings: Settings,
    queues: Sequence[str],
    run_in_context: Callable[[], AbstractContextManager[Any]],
    after_fork: Callable[[], None],
) -> None:
    """Run jobs of ``queues``, in this order of priority, until SIGTERM or SIGINT. Needs the main thread.

    A job runs in a forked process, after ``after_fork()`` (which releases the database connections of the parent) and
    inside ``run_in_context()``. After a signal it is asked to end (``stopping``) and has ``STOP_GRACE_SECONDS`` to
    finish; then it is killed and its lease expires.
    """
    stopping.handle_signal()
    identity = f"{socket.gethostname()}-{os.getpid()}"
    stopped = threading.Event()
    heartbeat = threading.Thread(
        target=_send_heartbeats, args=(settings, identity, stopped), name="heartbeat", daemon=True
    )
    heartbeat.start()
    delay = MIN_RECONNECT_SECONDS
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
                log.warning("Redis is unavailable: %s", error)
            if time.monotonic() - started > MAX_RECONNECT_SECONDS:
                delay = MIN_RECONNECT_SECONDS
            time.sleep(delay)
            delay = min(delay * 2, MAX_RECONNECT_SECONDS)
    except rq.exceptions.StopRequested:
        return
    finally:
        stopped.set()
        heartbeat.join(timeout=1)


def has_live_worker(connection: redis.Redis) -> bool:
    """Whether any worker has sent a heartbeat within ``HEARTBEAT_TTL_SECONDS``."""
    return next(iter(connection.scan_iter(match=HEARTBEAT_KEY + "*", count=1000)), None) is not None


class ForkingWorker(rq.Worker):
    """RQ worker without remote commands, which kills the running job some seconds after a stop signal."""

    log_result_lifespan = False
    max_connection_wait_time = MAX_RECONNECT_SECONDS
    run_in_context: Callable[[], AbstractContextManager[Any]]
    after_fork: Callable[[], None]
    asked_to_stop = False

    def subscribe(self) -> None:
        """Do not listen for RQ's remote commands, which are unused: the thread would outlive a lost connection."""

    def perform_job(self, job: Job, queue: rq.Queue) -> bool:
        # Runs in the forked process, which ends afterwards in any case.
        die_with(self.pid or 0)
        try:
            self.after_fork()
            with self.run_in_context():
                return super().perform_job(job, queue)
        except BaseException:
            log.exception("job could not be started")
            raise

    def request_stop(self, signum: int, frame: FrameType | None) -> None:
        self.asked_to_stop = True
        if self.horse_pid:
            with suppress(ProcessLookupError):
                os.kill(self.horse_pid, stopping.SIGNAL)
        timer = threading.Timer(STOP_GRACE_SECONDS, self.kill_running_job)
        timer.daemon = True
        timer.start()
        super().request_stop(signum, frame)  # type: ignore[no-untyped-call]  # RQ leaves it untyped

    def kill_running_job(self) -> None:
        """Kill the running job; another worker claims its task when the lease has expired."""
        if self.horse_pid:
            log.warning("killing the running job: it did not finish in time")
            self.kill_horse(signal.SIGKILL)


def _send_heartbeats(settings: Settings, identity: str, stopped: threading.Event) -> None:
    # a client of its own: at a fork this thread must not hold a lock of the worker's client
    with redis.Redis.from_url(settings.redis_url, socket_timeout=2, retry=None) as client:
        while True:
            with suppress(redis.RedisError):
                client.set(HEARTBEAT_KEY + identity, "1", ex=HEARTBEAT_TTL_SECONDS)
            if stopped.wait(HEARTBEAT_SECONDS):
                break
        with suppress(redis.RedisError):
            client.delete(HEARTBEAT_KEY + identity)
