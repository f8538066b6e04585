"""How fast lists are answered, as a share of what a bare Flask application answers on the same web server.

``python -m benchmarks.lists [--database sqlite|postgresql]`` really starts the service, with a maintainer whose role is
inherited from a group and whose project has 40 of everything. Each round asks for 20 of each kind, for the same with
the ETag of the answer, for the project itself and for a page that lists 20; all requests are different, and another
client commits 20 times a second. Beside them stands the base. Starting is timed, memory is read, and on PostgreSQL 200
lists are asked for in each second.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import requests

from benchmarks.cache import new_database
from benchmarks.figures import Effort, Figure, Target, run
from benchmarks.findings import document
from benchmarks.load import Speed, hello, memory_of, speed
from benchmarks.rate import RATE, percentiles
from tests.contract.alerting import CSRF
from tests.contract.service import TOKEN, Service, children_of, wait_for

ROWS = 40
PASSWORD = "a password of the benchmarks"
LISTS = ("variables", "issues", "protected_tags", "vulnerability_findings", "events")
LIST, KNOWN, PROJECT, PAGE = "list of 20", "304", "one project", "page with a list of 20"
COMMITS_PER_SECOND = 20
SCRIPT = Path(__file__).with_suffix(".lua")
# shares of the base: what must be reached, and the goal; ``other`` is for lists with rows from several tables
TARGETS = {
    "sqlite": {
        "variables": Target(0.12, 0.17),
        "protected_tags": Target(0.12, 0.17),
        "other": Target(0.07, 0.12),
        PAGE: Target(0.07, 0.12),
    },
    "postgresql": {
        "variables": Target(0.08, 0.10),
        "protected_tags": Target(0.08, 0.10),
        "other": Target(0.05, 0.07),
        PAGE: Target(0.05, 0.08),
    },
}
START_TARGET = Target(3, 1.5, "s", at_most=True)
MEMORY_TARGET = Target(120, 90, "MiB", at_most=True)
RATE_TARGETS = {90: Target(20, 12, "ms", at_most=True), 99: Target(30, 16, "ms", at_most=True)}
STARTS = 2
MIB = 1 << 20


@dataclass(frozen=True)
class Place:
    """A running service with a project, and who asks for what is in it."""

    service: Service
    started_in: tuple[float, ...]
    project: str
    page: str
    token: str
    cookie: str

    def cases(self) -> Iterator[tuple[str, str, str, Mapping[str, str]]]:
        """Kind and name of what is asked for, its address and the headers sent."""
        for name in LISTS:
            address, headers = f"{self.project}/{name}", {"PRIVATE-TOKEN": self.token}
            answer = requests.get(address, headers=headers, timeout=30)
            if len(answer.json()) != 20 or "X-Total" not in answer.headers:
                sys.exit(f"{address} is no list of 20: {answer.text[:200]}")
            yield LIST, name, address, headers
            if name == LISTS[0]:
                yield KNOWN, name, address, headers | {"If-None-Match": answer.headers["ETag"]}
        yield PROJECT, "GET", self.project, {"PRIVATE-TOKEN": self.token}
        yield PAGE, "issues", self.page, {"Cookie": self.cookie}

    def memory(self) -> float:
        """What the larger of the web workers has resident, in MiB."""
        return max(memory_of(pid) for pid in children_of(self.service.child("web"))) / MIB


def main() -> None:
    """Measure as the command line says."""
    sys.exit(run(measure, __doc__))


def measure(database: str, effort: Effort) -> list[Figure]:
    """Start the service, ask for everything in each round."""
    with ExitStack() as stack:
        base = stack.enter_context(hello())
        place = stack.enter_context(running(database, 1 if effort.quick else STARTS))
        web = place.service.child("web")
        cases = list(place.cases())
        seconds = max(1, effort.seconds // 2)  # there are many cases
        for _, _, address, headers in cases:  # warm up
            speed(web, address, 1, SCRIPT, headers)
        found: dict[tuple[str, str], list[Speed]] = {}
        hellos = []
        for _ in range(effort.rounds):
            hellos.append(speed(*base, seconds))
            for kind, name, address, headers in cases:
                with commits(place.service):
                    each = speed(web, address, seconds, SCRIPT, headers)
                found.setdefault((kind, name), []).append(each.over(hellos[-1]))
        rate = Figure("hello beside lists", database, tuple(one.by_clock for one in hellos), unit="requests/s")
        memory = (place.memory(),)
        return [
            rate,
            *(figure(database, kind, name, speeds) for (kind, name), speeds in found.items()),
            Figure("cold start to first answer", database, place.started_in, START_TARGET),
            Figure("memory of a web worker", database, memory, MEMORY_TARGET),
            *(at_a_steady_rate(database, place, effort) if database == "postgresql" else ()),
        ]


def figure(database: str, kind: str, name: str, speeds: list[Speed]) -> Figure:
    """The share of the base that one case reaches."""
    by_work = f"by work {statistics.median(one.by_work for one in speeds):.2f}"
    clock = tuple(one.by_clock for one in speeds)
    targets = TARGETS[database]
    target = targets[PAGE] if kind == PAGE else None if kind == KNOWN else targets.get(name, targets["other"])
    return Figure(f"{kind}: {name}", database, clock, target, by_work)


@contextmanager
def commits(service: Service) -> Iterator[None]:
    """Another client, which changes a label of a project of its own many times a second."""
    ended = threading.Event()

    def change() -> None:
        with requests.Session() as client:
            client.headers["PRIVATE-TOKEN"] = TOKEN
            api = f"{service.url}/api/v4"
            project = client.post(f"{api}/projects", json={"name": f"written-{time.time_ns()}"}, timeout=30).json()[
                "id"
            ]
            while not ended.wait(1 / COMMITS_PER_SECOND):
                address = f"{api}/projects/{project}/variables"
                client.post(address, json={"key": "WRITTEN", "value": "x"}, timeout=30).raise_for_status()
                client.delete(f"{address}/WRITTEN", timeout=30).raise_for_status()

    writer = threading.Thread(target=change)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


def at_a_steady_rate(database: str, place: Place, effort: Effort) -> Iterator[Figure]:
    """How long lists take when so many are asked for in a second, whatever became of those before."""
    addresses = [f"{place.project}/{name}" for name in LISTS]
    ask = partial(percentiles, addresses, {"PRIVATE-TOKEN": place.token}, tuple(RATE_TARGETS))
    ask(effort.seconds)
    rounds = [ask(effort.seconds) for _ in range(effort.rounds)]
    for percent, target in RATE_TARGETS.items():
        yield Figure(f"{RATE} lists/s: p{percent}", database, tuple(one[percent] for one in rounds), target)


@contextmanager
def running(database: str, starts: int) -> Iterator[Place]:
    """A service of our own, started again, and timed, on what the first start made."""
    with tempfile.TemporaryDirectory(prefix="lists-bench-") as directory:
        environment = {"PROJECT_SERVICE_LOG_LEVEL": os.environ.get("LOG_LEVEL", "INFO")}
        if database == "postgresql":
            environment["PROJECT_SERVICE_DATABASE_URL"] = new_database("lists_run")
        service = Service(Path(directory) / "service", **environment)
        service.start()
        try:
            started_in = tuple(start_anew(service) for _ in range(starts))
            yield fill_lists(service, started_in)
        finally:
            service.stop()


def start_anew(service: Service) -> float:
    """End a service and start it; the seconds until it answers."""
    service.stop()
    began = time.monotonic()
    service.start()
    if not wait_for(lambda: service.get("/api/v4/version") == 200):
        sys.exit("the service does not answer")
    return time.monotonic() - began


def fill_lists(service: Service, started_in: tuple[float, ...]) -> Place:
    """Fill a project through the API."""
    api = f"{service.url}/api/v4"

    def send(token: str, path: str, /, **fields: Any) -> dict[str, Any]:
        answer = requests.post(f"{api}{path}", json=fields, headers={"PRIVATE-TOKEN": token}, timeout=30)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    user = send(TOKEN, "/users", username="mia", name="Mia", email="mia@example.org", password=PASSWORD)
    token = str(send(TOKEN, f"/users/{user['id']}/personal_access_tokens", name="t", scopes=["api"])["token"])
    group = send(TOKEN, "/groups", name="acme", path="acme")
    send(TOKEN, f"/groups/{group['id']}/members", user_id=user["id"], access_level=40)
    project = send(TOKEN, "/projects", name="shop", namespace_id=group["id"])
    path = f"/projects/{project['id']}"
    milestone = send(token, f"{path}/milestones", title="First")
    for number in range(ROWS):
        send(token, f"{path}/variables", key=f"KEY_{number}", value=f"value {number}", description="What it is for")
        send(token, f"{path}/protected_tags", name=f"v{number}.*")
        of_issue = {"labels": "bug,shop", "assignee_ids": [user["id"]], "milestone_id": milestone["id"]}
        send(token, f"{path}/issues", title=f"Issue {number}", description="The till is open. " * 12, **of_issue)
    requests.post(
        f"{api}{path}/security_reports",
        data={"report_type": "sast"},
        files={"file": ("report.json", document(range(ROWS)))},
        headers={"PRIVATE-TOKEN": token},
        timeout=30,
    ).raise_for_status()
    page = f"{service.url}/acme/shop/-/issues"
    return Place(service, started_in, f"{api}{path}", page, token, signed_in(service.url))


def signed_in(url: str) -> str:
    """The cookie of the maintainer's browser."""
    with requests.Session() as browser:
        form = CSRF.search(browser.get(f"{url}/users/sign_in", timeout=30).text)
        assert form is not None
        fields = {"login": "mia", "password": PASSWORD, "csrf_token": form[1]}
        browser.post(f"{url}/users/sign_in", data=fields, timeout=30).raise_for_status()
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.cookies)


if __name__ == "__main__":
    main()
