"""Long mixed load on a running service: memory and open files stay flat, no request fails."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from tests.contract.alerting import Maintainer
from tests.contract.service import TOKEN, Service, children_of, tree_of, wait_for

SAMPLE_SECONDS = 2.0
THREADS = 4
# pools, caches and compiled statements fill in the first part
WARM_UP_SHARE = 0.4
# an hour costs a process less than a tenth of its memory; short runs are noisier
MAX_GROWTH_RATIO = 0.10
MAX_NEW_FILES = 16


def memory(pid: int) -> int:
    """Return the anonymous memory of a process in bytes, shared with its children or not; 0 once it has ended."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Anonymous:"):
                return int(line.split()[1]) * 1024
    return 0


def files(pid: int) -> int:
    with suppress(OSError):
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return 0


def lasting(service: Service) -> dict[str, int]:
    """Return the long-lived processes: the supervisor, its children, web processes and workers."""
    children = service.children()
    web = {f"web {number}": pid for number, pid in enumerate(sorted(children_of(children["web"])), 1)}
    return {"supervisor": service.pid, **children, **web}


class Load:
    """Reads and writes in several areas, exports and imports included."""

    def __init__(self, service: Service, project: dict, endpoint) -> None:
        self.service, self.project, self.endpoint = service, project, endpoint
        self.statuses: Counter = Counter()
        self.seconds: list[float] = []
        self.stop = threading.Event()
        self.archive = b""

    def run(self, number: int) -> None:
        session = requests.Session()
        session.headers["PRIVATE-TOKEN"] = TOKEN
        path = f"/api/v4/projects/{self.project['id']}"

        def send(method, address, **options):
            began = time.perf_counter()
            response = session.request(method, f"{self.service.url}{address}", timeout=120, **options)
            self.seconds.append(time.perf_counter() - began)
            self.statuses[response.status_code // 100] += 1
            return response

        for count in itertools.count():
            if self.stop.is_set():
                session.close()
                return
            name = f"K{number}_{count}"
            send("POST", f"{path}/variables", json={"key": name, "value": "v"})
            send("GET", f"{path}/variables?per_page=20")
            send("DELETE", f"{path}/variables/{name}")
            send("POST", f"{path}/issues", json={"title": name})
            send("GET", f"{path}/issues?per_page=20&page=2")
            send("GET", "/api/v4/projects?per_page=20&simple=true")
            key = {"Authorization": f"Bearer {self.endpoint.key}", "PRIVATE-TOKEN": None}
            address = "/" + self.endpoint.url.split("/", 3)[3]
            send("POST", address, json={"title": "Stuck", "fingerprint": f"f{count % 20}"}, headers=key)
            if number == 0 and count % 25 == 0:
                send("POST", f"{path}/export")
            if number == 1 and count % 25 == 0:
                self.export_and_import(send, path, name.lower())

    def export_and_import(self, send, path, name) -> None:
        found = send("GET", f"{path}/export/download")
        if found.status_code == 200:
            fields = {"path": name, "overwrite": "true"}
            made = send("POST", "/api/v4/projects/import", data=fields, files={"file": ("a.tar.gz", found.content)})
            if made.status_code == 201:
                send("DELETE", f"/api/v4/projects/{made.json()['id']}")


def slope(samples: list[float]) -> float:
    """Return the growth of a series after its warm-up, relative to its median."""
    warm = samples[int(len(samples) * WARM_UP_SHARE) :]
    gain = statistics.linear_regression(range(len(warm)), warm).slope * len(warm)
    return gain / statistics.median(warm)


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(120, marks=pytest.mark.nightly, id="2min"),
        pytest.param(1800, marks=pytest.mark.soak, id="30min"),
    ],
)
def test_memory_and_files_do_not_grow_under_load(seconds, tmp_path, capsys):
    service = Service(tmp_path)
    service.start()
    assert wait_for(lambda: len(lasting(service)) >= 10)  # workers start after the first response
    try:
        headers = {"PRIVATE-TOKEN": TOKEN}
        project = requests.post(f"{service.url}/api/v4/projects", {"name": "shop"}, headers=headers, timeout=30).json()
        maintainer = Maintainer(service)
        endpoint = maintainer.add_integration(project["path_with_namespace"], type="http", name="Soak")
        maintainer.close()
        load, watched = Load(service, project, endpoint), lasting(service)
        samples: dict[str, list[tuple[int, int]]] = {name: [] for name in watched}
        threads = [threading.Thread(target=load.run, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(SAMPLE_SECONDS)
            for name, pid in watched.items():
                samples[name].append((memory(pid), files(pid)))
        load.stop.set()
        for thread in threads:
            thread.join(130)
        assert lasting(service) == watched, "a process died"
        assert tree_of(service.pid)
    finally:
        service.stop()

    growth = {name: slope([each for each, _ in measured]) for name, measured in samples.items()}
    opened = {
        name: measured[-1][1] - measured[int(len(measured) * WARM_UP_SHARE)][1] for name, measured in samples.items()
    }
    ordered = sorted(load.seconds)
    with capsys.disabled():
        print(f"\n{len(ordered)} requests in {seconds} s, p50 {ordered[len(ordered) // 2] * 1000:.0f} ms, ", end="")
        print(f"p99 {ordered[len(ordered) * 99 // 100] * 1000:.0f} ms; statuses {dict(load.statuses)}")
        for name, measured in samples.items():
            print(
                f"{name}: {measured[-1][0] >> 20} MB, {growth[name]:+.1%}, files {measured[-1][1]} ({opened[name]:+d})"
            )
    assert load.statuses[5] == 0
    assert {name: gained for name, gained in growth.items() if gained > MAX_GROWTH_RATIO} == {}
    assert {name: count for name, count in opened.items() if count > MAX_NEW_FILES} == {}
