"""Many concurrent writers: none is refused because of the others, and no accepted row is lost."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.sample_data import MAX

WRITERS = 50


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(3, id="3s"),
        pytest.param(60, id="60s", marks=pytest.mark.nightly),
        pytest.param(1800, id="30min", marks=pytest.mark.soak),
    ],
)
def test_fifty_concurrent_writers_are_all_served(seconds, project, as_, people, capsys):
    numbers, lock, client = itertools.count(), threading.Lock(), as_(MAX)
    path, until = f"/projects/{project.id}/variables", time.monotonic() + seconds

    def write() -> list[tuple[int, float]]:
        responses = []
        while time.monotonic() < until:
            with lock:
                key = f"KEY_{next(numbers)}"
            began = time.perf_counter()
            response = client.browser.post(f"/api/v4{path}", json={"key": key, "value": "x"}, headers=headers)
            responses.append((response.status_code, time.perf_counter() - began))
        return responses

    headers = {"PRIVATE-TOKEN": client.token}
    with ThreadPoolExecutor(WRITERS) as pool:
        responses = [response for each in [pool.submit(write) for _ in range(WRITERS)] for response in each.result()]

    statuses, waited = [status for status, _ in responses], sorted(seconds for _, seconds in responses)
    with capsys.disabled():
        half, most = waited[len(waited) // 2], waited[len(waited) * 99 // 100]
        figures = f"p50 {half * 1000:.0f} ms, p99 {most * 1000:.0f} ms"
        print(f"\n{WRITERS} writers, {seconds} s: {len(waited)} writes, {figures}")
    assert set(statuses) == {201}
    assert len(statuses) == int(client.get(f"{path}?per_page=1").headers.get("X-Total", len(statuses)))
