"""What runs beside the web server: workers, which do the jobs, and the scheduler, which starts them in time."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial

import structlog
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import configure_mappers

from project_service.kit import collecting, jobs
from project_service.kit.db.session import db
from project_service.kit.http.responses import Application
from project_service.kit.jobs import rq_worker
from project_service.kit.security import encryption
from project_service.kit.security.key_ring import SecretKeyMissing
from project_service.runtime.supervisor import Child, Supervisor
from project_service.transfers.exporting import exporter
from project_service.transfers.importing import importer
from project_service.transfers.jobs import sweep_workplaces

STOP_SECONDS = 7.0  # a little less than whoever stops us waits for, and more than a worker gives its job
# of one machine: what is quick waits for no transfer, transfers here wait for no server elsewhere that is slow, and who
# has some that are with slow servers does not hold up others (transfers/jobs.py); two transfers at once are enough here
WORKERS = {
    "worker": (*jobs.QUICK_QUEUES, jobs.TRANSFERS),
    "remote worker": (jobs.REMOTE_TRANSFERS, jobs.TRANSFERS),
    "remote worker 2": (jobs.REMOTE_TRANSFERS,),
    "remote worker 3": (jobs.REMOTE_TRANSFERS,),
    "quick worker": jobs.QUICK_QUEUES,
}

LOADED = (exporter, importer)  # which their jobs would load, each process for itself

log = structlog.get_logger(__name__)


def work(app: Application, queues: Sequence[str] = jobs.QUEUES) -> None:
    """Answer the bells that jobs ring, until SIGTERM or SIGINT; those of ``queues`` in this order."""
    configure_mappers()  # once, before the forks
    with app.app_context():
        _prove_key()

    rq_worker.work(app.config["SETTINGS"], queues, app.app_context, app.after_fork)


def work_and_schedule(app: Application) -> int:
    """Keep all running that a machine needs beside its web server, until SIGTERM, SIGINT or SIGHUP; the exit status.

    They are forks of this process, and share the memory of what it has loaded.
    """
    with collecting.spared():
        configure_mappers()
    with app.app_context():
        _prove_key()
    running = {name: partial(work, queues=queues) for name, queues in WORKERS.items()} | {"scheduler": schedule}
    children = [Child(name, call=partial(_in_fork, app, call)) for name, call in running.items()]
    return Supervisor(children, stop_seconds=STOP_SECONDS).run()


def _in_fork(app: Application, call: Callable[[Application], None]) -> None:
    try:
        app.after_fork()
        call(app)
    except SecretKeyMissing as error:
        log.error("this process cannot work", error=str(error))
        sys.exit(1)
    except Exception:
        log.exception("this process cannot go on")
        sys.exit(1)


def schedule(app: Application) -> None:
    """Start periodic jobs, ring again for forgotten tasks and remove what killed workers left in the data directory.

    Until SIGTERM or SIGINT; several may run side by side.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    while not stop.is_set():
        with app.app_context():
            try:
                jobs.start_periodic()
                jobs.sweep()
                sweep_workplaces()  # each machine has folders of its own
            except OperationalError as error:
                log.warning("the database cannot be reached", error=str(error.orig))
        stop.wait(jobs.SWEEP_INTERVAL.total_seconds())


def _prove_key() -> None:
    """Raise ``SecretKeyMissing`` before a job could write what nobody else reads."""
    try:
        encryption.prove_key()
    except OperationalError as error:
        log.warning("the database cannot be reached", error=str(error.orig))
    finally:
        db.engine.dispose()
