"""What runs beside the web server: workers, which do the jobs, and the scheduler, which starts them in time."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence

import structlog
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import configure_mappers

from project_service.kit import encryption, jobs, rqworker
from project_service.kit.answers import Application
from project_service.kit.database import db

log = structlog.get_logger(__name__)


def work(app: Application, queues: Sequence[str] = jobs.QUEUES) -> None:
    """Answer the bells that jobs ring, until SIGTERM or SIGINT; those of ``queues`` in this order."""
    configure_mappers()  # once, before the forks
    with app.app_context():
        _prove_key()

    rqworker.work(app.config["SETTINGS"], queues, app.app_context, app.after_fork)


def schedule(app: Application) -> None:
    """Start periodic jobs and ring again for forgotten tasks, until SIGTERM or SIGINT; several may run side by side."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    while not stop.is_set():
        with app.app_context():
            try:
                jobs.start_periodic()
                jobs.sweep()
            except OperationalError as error:
                log.warning("the database cannot be reached", error=str(error.orig))
        stop.wait(jobs.SWEEP_EVERY.total_seconds())


def _prove_key() -> None:
    """Raise ``SecretKeyMissing`` before a job could write what nobody else reads."""
    try:
        encryption.prove_key()
    except OperationalError as error:
        log.warning("the database cannot be reached", error=str(error.orig))
    finally:
        db.engine.dispose()
