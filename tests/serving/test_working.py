"""What runs beside the web server, in forks of one process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from project_service.kit.http.responses import Application
from project_service.kit.security.key_ring import SecretKeyMissing
from project_service.runtime import supervisor, worker_processes
from project_service.transfers.jobs import MOST_ELSEWHERE

LONGEST_NAME_OF_A_PROCESS = 15  # that Linux keeps


class Opened(Application):
    """An application that notes what a fork has to do first."""

    def __init__(self) -> None:
        super().__init__("project_service")
        self.steps: list[str] = []

    def after_fork(self) -> None:
        self.steps.append("connections of its own")


def test_a_fork_opens_connections_of_its_own_before_it_works() -> None:
    app = Opened()

    worker_processes._in_fork(app, lambda app: app.steps.append("work"))

    assert app.steps == ["connections of its own", "work"]


@pytest.mark.parametrize(
    ("error", "told"),
    [(SecretKeyMissing("another key"), "this process cannot work"), (LookupError("x"), "this process cannot go on")],
)
def test_what_ends_a_fork_is_told_in_the_log_and_nowhere_else(
    error: Exception, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(_app: Application) -> None:
        raise error

    with capture_logs() as logged, pytest.raises(SystemExit) as ended:
        worker_processes._in_fork(Opened(), fail)

    [entry] = logged
    assert (ended.value.code, entry["event"], entry["log_level"]) == (1, told, "error")
    assert entry.get("error") == str(error) or entry["exc_info"]
    assert capfd.readouterr() == ("", "")


def test_every_queue_is_answered_and_the_workers_have_less_time_to_stop_than_those_who_stop_them() -> None:
    answered: Callable[..., set[str]] = set().union

    assert answered(*worker_processes.WORKERS.values()) == set(worker_processes.jobs.QUEUES)
    assert worker_processes.rq_worker.STOP_GRACE_SECONDS < worker_processes.STOP_SECONDS < supervisor.STOP_SECONDS


def test_who_has_as_much_under_way_with_servers_elsewhere_as_one_may_leaves_a_worker_to_others() -> None:
    remote = [
        name for name, queues in worker_processes.WORKERS.items() if worker_processes.jobs.REMOTE_TRANSFERS in queues
    ]

    assert len(remote) == MOST_ELSEWHERE + 1
    assert max(map(len, worker_processes.WORKERS)) <= LONGEST_NAME_OF_A_PROCESS
