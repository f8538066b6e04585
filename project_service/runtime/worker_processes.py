"""Worker and scheduler processes, supervised and forked from one loaded process."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial

import structlog
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import configure_mappers

from project_service.kit import jobs
from project_service.kit.db.session import db
from project_service.kit.http.responses import Application
from project_service.kit.jobs import rq_worker
from project_service.kit.security import encryption
from project_service.kit.security.key_ring import SecretKeyMissing
from project_service.runtime.supervisor import Child, Supervisor
from project_service.transfers.jobs import remove_stale_workdirs

STOP_SECONDS = 7.0  # less than supervisor.STOP_SECONDS and more than rq_worker.STOP_GRACE_SECONDS
# Per machine. Quick jobs do not wait for transfers, local transfers do not wait for slow remote servers, and one user's
# remote transfers leave a worker for others (transfers/jobs.py). Two local transfers at once are enough.
WORKERS = {
    "worker": (*jobs.QUICK_QUEUES, jobs.TRANSFERS),
    "remote worker": (jobs.REMOTE_TRANSFERS, jobs.TRANSFERS),
    "remote worker 2": (jobs.REMOTE_TRANSFERS,),
    "remote worker 3": (jobs.REMOTE_TRANSFERS,),
    "quick worker": jobs.QUICK_QUEUES,
    "delivery worker": (jobs.DELIVERIES,),
}

log = structlog.get_logger(__name__)


def work(app: Application, queues: Sequence[str] = jobs.FINITE_QUEUES) -> None:
    """Run jobs of ``queues``, in this order of priority, until SIGTERM or SIGINT."""
    share_memory()
    with app.app_context():
        _check_key()
    rq_worker.work(app.config["SETTINGS"], queues, app.app_context, app.after_fork)


def work_and_schedule(app: Application) -> int:
    """Run all workers and the scheduler of a machine until SIGTERM, SIGINT or SIGHUP; return the exit status.

    They are forks of this process and share the memory of the loaded application.
    """
    with app.app_context():
        _check_key()
    share_memory()
    return Supervisor(children(app), stop_seconds=STOP_SECONDS).run()


def children(app: Application, close_fds: tuple[int, ...] = ()) -> list[Child]:
    """All workers and the scheduler of a machine, as forks for a supervisor."""
    functions = {name: partial(work, queues=queues) for name, queues in WORKERS.items()} | {"scheduler": schedule}
    return [
        Child(name, call=partial(_run_in_fork, app, function), close_fds=close_fds)
        for name, function in functions.items()
    ]


def share_memory() -> None:
    """Prepare for forks: map the models once, and exempt all objects from collection, which writes to their memory.

    Garbage is not collected before: the forks would write into the holes, and so copy what surrounds them.
    """
    configure_mappers()
    gc.freeze()


def _run_in_fork(app: Application, function: Callable[[Application], None]) -> None:
    try:
        app.after_fork()
        function(app)
    except SecretKeyMissing as error:
        log.error("process cannot start", error=str(error))
        sys.exit(1)
    except Exception:
        log.exception("process failed")
        sys.exit(1)


def schedule(app: Application) -> None:
    """Start periodic jobs, sweep waiting tasks and remove files of killed workers, until SIGTERM or SIGINT.

    Several schedulers may run at the same time.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    while not stop.is_set():
        with app.app_context():
            try:
                jobs.start_periodic()
                jobs.sweep()
                remove_stale_workdirs()  # every machine removes its own
            except OperationalError as error:
                log.warning("database unavailable", error=str(error.orig))
        stop.wait(jobs.SWEEP_INTERVAL.total_seconds())


def _check_key() -> None:
    """Raise ``SecretKeyMissing`` before a job writes values encrypted with the wrong key."""
    try:
        encryption.prove_key()
    except OperationalError as error:
        log.warning("database unavailable", error=str(error.orig))
    finally:
        db.engine.dispose()
