"""Prometheus metrics of requests, queues and jobs.

The counters of the web processes of a machine are added up by ``prometheus_client`` in the directory
``PROMETHEUS_MULTIPROC_DIR``, which must exist and be empty when the first process starts. The metrics of queues and
jobs are those of the whole instance, the same on every machine.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator

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
KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})
OTHER_METHOD = "OTHER"
GAUGES: dict[str, tuple[str, Callable[[], float]]] = {}


def note_request(method: str, route: str, status: int, seconds: float) -> None:
    """Count a response.

    The number of label values is bounded: ``route`` is a URL rule, and clients cannot add to the methods.
    """
    requests, durations = _counters(method if method in KNOWN_METHODS else OTHER_METHOD, route, status)
    requests.inc()
    durations.observe(seconds)


@functools.lru_cache(maxsize=4096)
def _counters(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    return REQUESTS.labels(method, route, str(status)), SECONDS.labels(route)


def add_gauge(name: str, documentation: str, read: Callable[[], float]) -> None:
    """Register a metric of the whole instance; it is read in a transaction that only reads."""
    GAUGES[name] = (documentation, read)


def gauges() -> dict[str, tuple[str, float]]:
    """Return the documentation and the current value of each registered gauge."""
    return {name: (documentation, read()) for name, (documentation, read) in GAUGES.items()}


def text(
    queues: dict[str, tuple[int, float]],
    outcomes: dict[tuple[str, str], int],
    values: dict[str, tuple[str, float]] | None = None,
) -> bytes:
    """Return all metrics, with the given state of the queues, counts of ended jobs and values of gauges."""
    of_instance = CollectorRegistry()
    of_instance.register(_JobCollector(queues, outcomes, values or {}))
    of_machine = CollectorRegistry()
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        multiprocess.MultiProcessCollector(of_machine)
    else:
        for metric in (REQUESTS, SECONDS):
            of_machine.register(metric)
    return generate_latest(of_machine) + generate_latest(of_instance)


class _JobCollector(Collector):
    """Metrics of the queues, from the database, and of ended jobs, from Redis."""

    def __init__(
        self,
        queues: dict[str, tuple[int, float]],
        outcomes: dict[tuple[str, str], int],
        values: dict[str, tuple[str, float]],
    ) -> None:
        self.queues = queues
        self.outcomes = outcomes
        self.values = values

    def collect(self) -> Iterator[Metric]:
        """Return the metrics."""
        depth = GaugeMetricFamily("project_service_queue_depth", "Tasks that are due or run.", labels=["queue"])
        age = GaugeMetricFamily("project_service_queue_age_seconds", "Seconds the oldest is due.", labels=["queue"])
        for queue, (number, seconds) in self.queues.items():
            depth.add_metric([queue], number)
            age.add_metric([queue], seconds)
        ended = CounterMetricFamily("project_service_jobs", "Jobs ended.", labels=["job", "outcome"])
        for (name, outcome), number in self.outcomes.items():
            ended.add_metric([name, outcome], number)
        yield from (depth, age, ended)
        for name, (documentation, value) in self.values.items():
            yield GaugeMetricFamily(f"project_service_{name}", documentation, value=value)
