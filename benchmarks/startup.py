"""Memory of an instance at rest, by kind of process, and the cost of a cold start up to the first page.

``python -m benchmarks.startup``. Memory is the proportional set size, in which a page that several processes share
counts once. The processor time of the start says more than its duration where other work runs beside it.
"""

from __future__ import annotations

import collections
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.figures import Effort, Figure, Target, conclude
from tests.contract.service import Service, name_of, tree_of, wait_for

SECONDS_TO_REST = 15
ROUNDS = 3
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
MEMORY = Target(must=415, goal=350, unit="MiB", at_most=True)
START = Target(must=2.5, goal=1.7, unit="s", at_most=True)
PROPORTIONAL_SIZE = re.compile(r"^Pss: +(\d+) kB$", re.MULTILINE)
FIRST_PAGE = "/users/sign_in"


def measure(database: str, effort: Effort) -> list[Figure]:
    """Start the service on an empty directory in each round; the database is always SQLite."""
    starts, sizes = zip(*(start_once() for _ in range(min(effort.rounds, ROUNDS))), strict=True)
    seconds, processor_seconds = zip(*starts, strict=True)
    names = list(dict.fromkeys(name for found in sizes for name in found))
    return [
        Figure("memory", "whole instance at rest", tuple(sum(found.values()) for found in sizes), MEMORY),
        *(Figure("memory", name, tuple(found[name] for found in sizes), unit="MiB") for name in names),
        Figure("cold start to the first page", "duration", seconds, START),
        Figure("cold start to the first page", "processor time", processor_seconds, unit="s"),
    ]


def start_once() -> tuple[tuple[float, float], Mapping[str, float]]:
    """Return the duration and processor time of a start, and the memory by name of process some time later."""
    with tempfile.TemporaryDirectory() as directory:
        service = Service(Path(directory) / "instance")
        try:
            began = time.monotonic()
            service.start()
            if service.get(FIRST_PAGE) != 200:
                raise RuntimeError(f"no page:\n{service.log.read_text()[-2000:]}")
            seconds = time.monotonic() - began
            used = sum(map(processor_seconds_of, processes_of(service)))
            wait_for(lambda: "scheduler" in map(name_of, processes_of(service)), SECONDS_TO_REST)  # the last to start
            time.sleep(SECONDS_TO_REST)
            sizes: dict[str, float] = collections.defaultdict(float)
            for pid in processes_of(service):
                sizes[name_of(pid)] += mebibytes_of(pid)
        finally:
            service.stop()
    return (seconds, used), sizes


def processes_of(service: Service) -> list[int]:
    """The supervisor and all its descendants."""
    return [service.pid, *tree_of(service.pid)]


def mebibytes_of(pid: int) -> float:
    """The proportional set size of a process."""
    found = PROPORTIONAL_SIZE.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
    return int(found[1]) / 1024 if found else 0.0


def processor_seconds_of(pid: int) -> float:
    """The processor time of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS_PER_SECOND


if __name__ == "__main__":
    sys.exit(conclude(measure("sqlite", Effort(rounds=int(sys.argv[1]) if sys.argv[1:] else ROUNDS))))
