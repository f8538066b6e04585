"""What is counted of requests and jobs, in the text format of Prometheus.

Several web processes serve one machine; ``prometheus_client`` adds their numbers up through the directory that
``PROMETHEUS_MULTIPROC_DIR`` names, which has to be there, and empty, when the first of them starts. What is known of
queues and jobs belongs to the whole instance: every machine tells the same.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, multiprocess
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

REQUESTS = Counter("project_service_requests_total", "Requests answered.", ["method", "route", "status"])
SECONDS = Histogram(
    "project_service_request_seconds",
    "Seconds from the first byte to the answer.",
    ["route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)


def note_request(method: str, route: str, status: int, seconds: float) -> None:
    """Count an answer. Routes are patterns, so that there are no more of them than views."""
    requests, durations = _counters(method, route, status)
    requests.inc()
    durations.observe(seconds)


@functools.lru_cache(maxsize=4096)
def _counters(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    return REQUESTS.labels(method, route, str(status)), SECONDS.labels(route)


def text(queues: dict[str, tuple[int, float]], outcomes: dict[tuple[str, str], int]) -> bytes:
    """Everything, with the state of the queues at this moment and the jobs that ended so far."""
    moment = CollectorRegistry()
    moment.register(_Jobs(queues, outcomes))
    counted = CollectorRegistry()
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        multiprocess.MultiProcessCollector(counted)  # type: ignore[no-untyped-call]  # the library has no types here
    else:
        for metric in (REQUESTS, SECONDS):
            counted.register(metric)
    return generate_latest(counted) + generate_latest(moment)


class _Jobs(Collector):
    """What the database knows of the queues and Redis of the jobs that ended."""

    def __init__(self, queues: dict[str, tuple[int, float]], outcomes: dict[tuple[str, str], int]) -> None:
        self.queues = queues
        self.outcomes = outcomes

    def collect(self) -> Iterator[Metric]:
        """Make the numbers of this moment."""
        depth = GaugeMetricFamily("project_service_queue_depth", "Tasks that are due or run.", labels=["queue"])
        age = GaugeMetricFamily("project_service_queue_age_seconds", "Seconds the oldest is due.", labels=["queue"])
        for queue, (number, seconds) in self.queues.items():
            depth.add_metric([queue], number)
            age.add_metric([queue], seconds)
        ended = CounterMetricFamily("project_service_jobs", "Jobs ended.", labels=["job", "outcome"])
        for (name, outcome), number in self.outcomes.items():
            ended.add_metric([name, outcome], number)
        yield from (depth, age, ended)
