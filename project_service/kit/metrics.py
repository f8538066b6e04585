"""What is counted of requests and jobs, in the text format of Prometheus.

Several processes serve one instance; ``prometheus_client`` adds their numbers up through the directory that
``PROMETHEUS_MULTIPROC_DIR`` names, which ``serve`` sets.
"""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess

REQUESTS = Counter("project_service_requests_total", "Requests answered.", ["method", "route", "status"])
SECONDS = Histogram(
    "project_service_request_seconds",
    "Seconds from the first byte to the answer.",
    ["route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
JOBS = Counter("project_service_jobs_total", "Jobs ended.", ["job", "outcome"])


def note_request(method: str, route: str, status: int, seconds: float) -> None:
    """Count an answer. Routes are patterns, so that there are no more of them than views."""
    REQUESTS.labels(method, route, str(status)).inc()
    SECONDS.labels(route).observe(seconds)


def note_job(name: str, outcome: str) -> None:
    """Count a job: ``done``, ``failed`` or ``lost``."""
    JOBS.labels(name, outcome).inc()


def text(queues: dict[str, tuple[int, float]]) -> bytes:
    """Everything, with the state of the queues at this moment."""
    moment = CollectorRegistry()
    depth = Gauge("project_service_queue_depth", "Tasks that wait or run.", ["queue"], registry=moment)
    age = Gauge("project_service_queue_age_seconds", "Seconds the oldest task is due.", ["queue"], registry=moment)
    for queue, (number, seconds) in queues.items():
        depth.labels(queue).set(number)
        age.labels(queue).set(seconds)
    counted = CollectorRegistry()
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        multiprocess.MultiProcessCollector(counted)  # type: ignore[no-untyped-call]  # the library has no types here
    else:
        for metric in (REQUESTS, SECONDS, JOBS):
            counted.register(metric)
    return generate_latest(counted) + generate_latest(moment)
