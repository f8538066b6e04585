"""Background jobs: a transactional outbox with leases, woken through RQ.

Deferring a job writes a row of ``tasks`` in the caller's transaction (``registry``). After the commit a worker is woken
through Redis (``queues``); a sweep repeats the notification for tasks that no live worker runs (``scheduling``). The
worker claims the task with a lease, renews it while the job runs (``leases``), and deletes the task or schedules a
retry (``execution``).

A job takes ids, loads its rows itself and may run twice without harm.
"""

from __future__ import annotations

from project_service.kit.jobs.execution import for_each, run
from project_service.kit.jobs.leases import LEASE, Lease, LeaseLost, check_lease, claim, step
from project_service.kit.jobs.models import PeriodicRun, Task
from project_service.kit.jobs.monitoring import OUTCOMES_KEY, counts, in_progress, outcomes, states, tasks_in
from project_service.kit.jobs.queues import (
    DEFAULT,
    DELIVERIES,
    FINITE_QUEUES,
    MAIL,
    QUEUES,
    QUICK_QUEUES,
    REMOTE_TRANSFERS,
    TRANSFERS,
    connect,
    notify,
)
from project_service.kit.jobs.registry import JOBS, MAX_ATTEMPTS, Job, job
from project_service.kit.jobs.scheduling import PERIODIC_JOBS, SWEEP_INTERVAL, periodic, retry, start_periodic, sweep
from project_service.kit.jobs.stopping import is_requested as stop_is_requested

__all__ = [
    "DEFAULT",
    "DELIVERIES",
    "FINITE_QUEUES",
    "JOBS",
    "LEASE",
    "MAIL",
    "MAX_ATTEMPTS",
    "OUTCOMES_KEY",
    "PERIODIC_JOBS",
    "QUEUES",
    "QUICK_QUEUES",
    "REMOTE_TRANSFERS",
    "SWEEP_INTERVAL",
    "TRANSFERS",
    "Job",
    "Lease",
    "LeaseLost",
    "PeriodicRun",
    "Task",
    "check_lease",
    "claim",
    "connect",
    "counts",
    "for_each",
    "in_progress",
    "job",
    "notify",
    "outcomes",
    "periodic",
    "retry",
    "run",
    "start_periodic",
    "states",
    "step",
    "stop_is_requested",
    "sweep",
    "tasks_in",
]
