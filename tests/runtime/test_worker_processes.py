"""Worker and scheduler processes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from project_service.kit.http.responses import Application
from project_service.kit.security.key_ring import SecretKeyMissing
from project_service.runtime import supervisor, worker_processes
from project_service.transfers.jobs import MAX_REMOTE_TRANSFERS_PER_USER

MAX_PROCESS_NAME_BYTES = 15  # that Linux keeps


class RecordingApplication(Application):
    """An application that records the call of ``after_fork``."""

    def __init__(self) -> None:
        super().__init__("project_service")
        self.steps: list[str] = []

    def after_fork(self) -> None:
        self.steps.append("connections of its own")


def test_a_fork_opens_its_own_connections() -> None:
    app = RecordingApplication()

    worker_processes._run_in_fork(app, lambda app: app.steps.append("work"))

    assert app.steps == ["connections of its own", "work"]


@pytest.mark.parametrize(
    ("error", "event"),
    [(SecretKeyMissing("another key"), "process cannot start"), (LookupError("x"), "process failed")],
)
def test_an_error_that_ends_a_fork_is_logged_and_not_printed(
    error: Exception, event: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(_app: Application) -> None:
        raise error

    with capture_logs() as logged, pytest.raises(SystemExit) as ended:
        worker_processes._run_in_fork(RecordingApplication(), fail)

    [entry] = logged
    assert (ended.value.code, entry["event"], entry["log_level"]) == (1, event, "error")
    assert entry.get("error") == str(error) or entry["exc_info"]
    assert capfd.readouterr() == ("", "")


def test_every_queue_is_served_and_workers_stop_before_their_supervisors_kill_them() -> None:
    served: Callable[..., set[str]] = set().union

    assert served(*worker_processes.WORKERS.values()) == set(worker_processes.jobs.QUEUES)
    assert worker_processes.rq_worker.STOP_GRACE_SECONDS < worker_processes.STOP_SECONDS < supervisor.STOP_SECONDS


def test_remote_transfers_of_one_user_leave_a_worker_for_others() -> None:
    remote = [
        name for name, queues in worker_processes.WORKERS.items() if worker_processes.jobs.REMOTE_TRANSFERS in queues
    ]

    assert len(remote) == MAX_REMOTE_TRANSFERS_PER_USER + 1
    assert max(map(len, worker_processes.WORKERS)) <= MAX_PROCESS_NAME_BYTES
