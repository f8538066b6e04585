"""What Prometheus reads."""

from __future__ import annotations

import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from project_service.kit import metrics

NONE = {"default": (0, 0.0)}


def samples(text):
    """The numbers of a text by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_requests_are_counted_by_route_and_status():
    labels = (("method", "GET"), ("route", "/counted"), ("status", "200"))
    before = samples(metrics.text(NONE, {})).get(("project_service_requests_total", labels), 0)

    metrics.note_request("GET", "/counted", 200, 0.02)
    metrics.note_request("GET", "/counted", 404, 0.2)

    after = samples(metrics.text(NONE, {}))
    assert after["project_service_requests_total", labels] == before + 1
    assert after["project_service_request_seconds_bucket", (("le", "0.025"), ("route", "/counted"))] >= 1
    assert after["project_service_request_seconds_count", (("route", "/counted"),)] >= 2


def test_queues_and_jobs_have_their_current_values():
    metrics.text({"default": (9, 9.0)}, {("a.job", "done"): 9})

    now = samples(metrics.text({"default": (3, 1.5), "mail": (0, 0.0)}, {("a.job", "done"): 5, ("a.job", "failed"): 1}))

    assert now["project_service_queue_depth", (("queue", "default"),)] == 3
    assert now["project_service_queue_age_seconds", (("queue", "default"),)] == 1.5
    assert now["project_service_queue_depth", (("queue", "mail"),)] == 0
    assert now["project_service_jobs_total", (("job", "a.job"), ("outcome", "done"))] == 5
    assert now["project_service_jobs_total", (("job", "a.job"), ("outcome", "failed"))] == 1


PROCESS = """
from project_service.kit import metrics
metrics.note_request("GET", "/counted", 200, 0.02)
metrics.note_request("GET", "/counted", 200, 0.02)
print(metrics.text({"default": (3, 1.5)}, {("a.job", "done"): 5}).decode())
"""


@pytest.mark.parametrize(("shared", "total"), [(True, 6), (False, 2)])
def test_metrics_of_several_processes_are_summed(shared, total, tmp_path):
    environment = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)} if shared else {}
    responses = [
        subprocess.run([sys.executable, "-c", PROCESS], env=environment, capture_output=True, check=True).stdout
        for _ in range(3)
    ]

    last = samples(responses[-1])
    labels = (("method", "GET"), ("route", "/counted"), ("status", "200"))
    assert last["project_service_requests_total", labels] == total
    assert last["project_service_request_seconds_count", (("route", "/counted"),)] == total
    assert last["project_service_queue_depth", (("queue", "default"),)] == 3
    assert last["project_service_jobs_total", (("job", "a.job"), ("outcome", "done"))] == 5
