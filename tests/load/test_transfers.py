"""Writes are answered while a large project is imported."""

from __future__ import annotations

import threading
import time

import pytest
import requests

from tests.contract.alerting import Maintainer
from tests.contract.service import TOKEN, Service
from tests.support.archives import make_archive, make_issue

HEADERS = {"PRIVATE-TOKEN": TOKEN}
PAUSE = 0.02


class Writer(threading.Thread):
    """Sends requests one after the other, and records durations and statuses."""

    def __init__(self, send):
        super().__init__()
        self.send, self.stop = send, threading.Event()
        self.seconds, self.statuses = [], set()

    def run(self):
        with requests.Session() as session:
            number = 0
            while not self.stop.is_set():
                began = time.perf_counter()
                self.statuses.add(self.send(session, number).status_code)
                self.seconds.append(time.perf_counter() - began)
                number += 1
                time.sleep(PAUSE)

    @property
    def slowest(self):
        """Return the 99th percentile in seconds."""
        return sorted(self.seconds)[len(self.seconds) * 99 // 100]


@pytest.mark.parametrize(
    ("issues", "most_seconds"),
    [
        pytest.param(300, 3.0, id="300"),  # with so few writes, a single slow one decides
        pytest.param(100_000, 0.5, marks=pytest.mark.nightly, id="100000"),
    ],
)
def test_alerts_and_variables_are_written_while_a_project_is_imported(issues, most_seconds, tmp_path, capsys):
    archive = make_archive(
        {"issues": [make_issue(number, notes=[{"note": "x"}] * 3) for number in range(1, issues + 1)]}
    )
    service = Service(tmp_path)
    service.start()
    try:
        api = f"{service.url}/api/v4"
        project = requests.post(f"{api}/projects", {"name": "shop"}, headers=HEADERS, timeout=30).json()
        maintainer = Maintainer(service)
        endpoint = maintainer.add_integration(project["path_with_namespace"], type="http", name="Monitor")
        maintainer.close()
        key = {"Authorization": f"Bearer {endpoint.key}"}
        writers = [
            Writer(
                lambda session, number: session.post(
                    endpoint.url, json={"title": "Stuck", "fingerprint": f"f{number % 50}"}, headers=key, timeout=60
                )
            ),
            Writer(
                lambda session, number: session.post(
                    f"{api}/projects/{project['id']}/variables",
                    json={"key": f"K{number}", "value": "x"},
                    headers=HEADERS,
                    timeout=60,
                )
            ),
        ]
        began = time.perf_counter()
        made = requests.post(
            f"{api}/projects/import",
            data={"path": "big"},
            files={"file": ("a.tar.gz", archive)},
            headers=HEADERS,
            timeout=60,
        ).json()
        for writer in writers:
            writer.start()
        status = wait_until_ended(f"{api}/projects/{made['id']}/import")
        took = time.perf_counter() - began
        for writer in writers:
            writer.stop.set()
            writer.join()
    finally:
        service.stop()

    with capsys.disabled():
        for name, writer in zip(("alerts", "variables"), writers, strict=True):
            print(
                f"\n{name} during an import: {len(writer.seconds)}, p99 {writer.slowest * 1000:.0f} ms of {took:.1f} s",
                end="",
            )
    assert (status, [writer.statuses for writer in writers]) == ("finished", [{200}, {201}])
    assert max(writer.slowest for writer in writers) < most_seconds


def wait_until_ended(address):
    """Wait for the end of an import; return its status."""
    for _ in range(3000):
        status = requests.get(address, headers=HEADERS, timeout=30).json()["import_status"]
        if status in ("finished", "failed"):
            return status
        time.sleep(0.2)
    raise AssertionError("the import does not end")
