"""Two versions beside each other: this tree and an earlier one that is checked out and installed in another folder.

``python -m benchmarks.beside ../before [--database sqlite|postgresql]`` starts both services with the same content and
sends the same requests to each in turn. While one is measured, another client commits to it 20 times a second, so that
no cache of responses answers. A share is the rate of this tree divided by that of the other one; of durations and
memory it is this tree's divided by the other's.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import requests

from benchmarks import alerts, lists
from benchmarks.cache import new_database
from benchmarks.figures import Effort, Figure, Target, conclude, effort_of, parser
from benchmarks.load import Speed, memory_of, speed
from benchmarks.transfers import archive_of
from tests.contract.alerting import Maintainer
from tests.contract.service import TOKEN, Service, tree_of

STARTS = 3
ISSUES = 10_000
TRANSFER_SECONDS = 600
READ_TARGET, ALERT_TARGET = Target(0.6, 0.75), Target(0.6, 0.75)
TRANSFER_TARGET = Target(1.6, 1.2, "times", at_most=True)
MEMORY_TARGET = Target(1.15, 1.0, "times", at_most=True)
START_TARGET = Target(0.5, 0.0, "s more", at_most=True)
HEADERS = {"PRIVATE-TOKEN": TOKEN}

Measured = Callable[[], Speed]


@dataclass(frozen=True)
class Version:
    """A running version with a project of the lists and two alert integrations."""

    place: lists.Place
    cases: dict[str, Measured]

    @property
    def service(self) -> Service:
        """The service that runs."""
        return self.place.service

    def measure(self, case: str) -> Speed:
        """How fast one case is answered while another client commits."""
        with lists.commits(self.service):
            return self.cases[case]()


def main() -> int:
    """Measure as the command line says."""
    arguments = parser(__doc__)
    arguments.add_argument("tree", type=Path, help="folder of the other version, with its own .venv")
    options = arguments.parse_args()
    return conclude(measure(options.tree.resolve(), options.database, effort_of(options)))


def measure(tree: Path, database: str, effort: Effort) -> list[Figure]:
    """Start both versions and let them take turns."""
    with ExitStack() as stack:
        before = stack.enter_context(running(tree, "before", database, effort))
        now = stack.enter_context(running(None, "now", database, effort))
        for version, case in ((version, case) for case in now.cases for version in (before, now)):
            version.measure(case)  # warm up
        found: dict[str, list[Speed]] = {}
        for _ in range(effort.rounds):
            for case in now.cases:
                earlier = before.measure(case)
                found.setdefault(case, []).append(now.measure(case).over(earlier))
        memory = now.place.memory() / before.place.memory()
        starts = statistics.median(now.place.started_in) - statistics.median(before.place.started_in)
        return [
            *(figure(database, case, speeds) for case, speeds in found.items()),
            Figure("memory of a web worker", database, (memory,), MEMORY_TARGET),
            Figure("cold start to first answer", database, (starts,), START_TARGET),
            *transfers(before.service, now.service, database, effort),
        ]


def figure(database: str, case: str, speeds: list[Speed]) -> Figure:
    """The share of the other version that one case reaches."""
    target = ALERT_TARGET if case.startswith("alert") else READ_TARGET
    by_work = f"by work {statistics.median(one.by_work for one in speeds):.2f}"
    return Figure(case, database, tuple(one.by_clock for one in speeds), target, by_work)


@contextmanager
def running(tree: Path | None, name: str, database: str, effort: Effort) -> Iterator[Version]:
    """A version, started several times on the same data; the starts are timed."""
    with tempfile.TemporaryDirectory(prefix="beside-bench-") as directory:
        environment = {"PROJECT_SERVICE_LOG_LEVEL": "INFO"}
        if database == "postgresql":
            environment["PROJECT_SERVICE_DATABASE_URL"] = new_database(f"beside_{name}")
        service = Service(Path(directory) / "service", tree=tree, **environment)
        service.start()
        try:
            started_in = tuple(lists.start_anew(service) for _ in range(1 if effort.quick else STARTS))
            place = lists.fill_lists(service, started_in)
            yield Version(place, dict(cases_of(place, effort.seconds)))
        finally:
            service.stop()


def cases_of(place: lists.Place, seconds: int) -> Iterator[tuple[str, Measured]]:
    """Names of what is measured, and how."""
    web = place.service.child("web")
    for kind, name, address, headers in place.cases():
        if kind != lists.KNOWN:
            yield f"{kind}: {name}", partial(speed, web, address, seconds, lists.SCRIPT, headers)
    maintainer = Maintainer(place.service)
    receiver = maintainer.add_integration("acme/shop", type="http", name="beside")
    maintainer.close()
    for kind in (alerts.REPEATED, alerts.NEW):
        send = partial(speed, web, receiver.url, seconds, alerts.SCRIPT, KIND=kind, KEY=receiver.key)
        yield f"alert POST, {kind}", send


def transfers(before: Service, now: Service, database: str, effort: Effort) -> Iterator[Figure]:
    """Time of an import and an export, and the most memory of a worker process."""
    issues = ISSUES // 10 if effort.quick else ISSUES
    archive = archive_of(issues)
    rounds = [(imported_and_exported(before, archive), imported_and_exported(now, archive)) for _ in range(2)]
    for number, name in enumerate(("import", "export")):
        shares = tuple(after[number] / earlier[number] for earlier, after in rounds)
        yield Figure(f"{name} of {issues:,} issues", database, shares, TRANSFER_TARGET)
    share = (most_memory(now) / most_memory(before),)
    yield Figure("most memory of a worker process", database, share, TRANSFER_TARGET)


def imported_and_exported(service: Service, archive: Path) -> tuple[float, float]:
    """Import an archive into a new project and export that; the seconds of each."""
    api, name = f"{service.url}/api/v4/projects", f"imported-{time.time_ns()}"
    began = time.monotonic()
    with archive.open("rb") as file:
        answer = requests.post(f"{api}/import", {"path": name}, files={"file": file}, headers=HEADERS, timeout=300)
    answer.raise_for_status()
    project = answer.json()["id"]
    imported_in = until(f"{api}/{project}/import", "import_status", began)
    began = time.monotonic()
    requests.post(f"{api}/{project}/export", headers=HEADERS, timeout=30).raise_for_status()
    return imported_in, until(f"{api}/{project}/export", "export_status", began)


def until(address: str, key: str, began: float) -> float:
    """Wait until a job says that it is finished; the seconds since it began."""
    while time.monotonic() - began < TRANSFER_SECONDS:
        status = requests.get(address, headers=HEADERS, timeout=30).json()[key]
        if status == "failed":
            break
        if status == "finished":
            return time.monotonic() - began
        time.sleep(0.05)
    sys.exit(f"{address} does not finish")


def most_memory(service: Service) -> int:
    """The most memory that any process of the workers has had, in bytes."""
    children = service.children()
    workers = [children[role] for role in children.keys() - {"web", "redis"}]
    return max(memory_of(pid, "VmHWM") for worker in workers for pid in (worker, *tree_of(worker)))


if __name__ == "__main__":
    sys.exit(main())
