"""How fast lists are answered, as a share of what a bare Flask application answers on the same web server.

``python -m benchmarks.lists [--database sqlite|postgresql] [--rounds 5]`` really starts the service, with a maintainer
whose role is inherited from a group and whose project has 40 of everything. Each round asks for 20 of each kind in
requests that are all different, so that no answer has been kept; for the same again and again; for the same with the
validator of the answer; and for a page that lists 20; and the base beside them. Printed are the medians of the rounds'
ratios. "By work" is the same ratio by the processor time that the web workers took, which other
work on the machine disturbs less, but which leaves out that of PostgreSQL.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from benchmarks.alerts import Speed, hello, speed
from benchmarks.findings import document
from tests.contract.alerting import CSRF
from tests.contract.service import TOKEN, Service, children_of, wait_for
from tests.databases import create_database

ROWS = 40
ROUNDS, SECONDS = 5, 2
PASSWORD = "a password of the benchmarks"
LISTS = ("variables", "issues", "protected_tags", "vulnerability_findings", "events")
LIST, AGAIN, KNOWN, PAGE = "list of 20", "the same again", "304", "page"
SCRIPT = Path(__file__).with_suffix(".lua")
GOALS = {
    "sqlite": {LIST: 0.30, AGAIN: 0.30, KNOWN: 0.60, PAGE: 0.14},
    "postgresql": {LIST: 0.17, AGAIN: 0.17, KNOWN: 0.40, PAGE: 0.09},
}
START_GOAL, MEMORY_GOAL = 3.0, 120


@dataclass(frozen=True)
class Place:
    """A running service with a project, and who asks for what is in it."""

    service: Service
    started_in: float
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
            yield AGAIN, name, address, headers
            yield KNOWN, name, address, headers | {"If-None-Match": answer.headers["ETag"]}
        yield PAGE, "issues", self.page, {"Cookie": self.cookie}

    def memory(self) -> int:
        """What the larger of the web workers has resident, in MiB."""
        return max(resident(pid) for pid in children_of(self.service.child("web"))) // 1024


def main() -> None:
    """Start, measure, print; the exit status is 1 when a goal is missed."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--database", choices=list(GOALS), default="sqlite")
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    arguments.add_argument("--seconds", type=int, default=SECONDS)
    arguments.add_argument("--only", nargs="*", default=[*LISTS, PAGE])
    options = arguments.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is needed to measure with (Debian has it in the package of this name)")
    with ExitStack() as stack:
        base = stack.enter_context(hello())
        place = stack.enter_context(running(options.database))
        web = place.service.child("web")
        cases = [case for case in place.cases() if case[1 if case[0] != PAGE else 0] in options.only]
        for kind, _, address, headers in cases:
            speed(web, address, 1, SCRIPT if kind == LIST else None, headers)
        found: dict[tuple[str, str], list[Speed]] = {}
        for _ in range(options.rounds):
            rate = speed(*base, options.seconds)
            for kind, name, address, headers in cases:
                each = speed(web, address, options.seconds, SCRIPT if kind == LIST else None, headers)
                found.setdefault((kind, name), []).append(each.over(rate))
        sys.exit(report(options.database, found, place))


def report(database: str, found: Mapping[tuple[str, str], list[Speed]], place: Place) -> int:
    """The table of ratios."""
    missed = 0
    print(f"{database:<40}{'ratio':>8}{'lowest':>8}{'highest':>9}{'by work':>9}{'goal':>7}")
    for (kind, name), speeds in found.items():
        clock, work = [one.by_clock for one in speeds], statistics.median(one.by_work for one in speeds)
        median, goal = statistics.median(clock), GOALS[database][kind]
        missed += median < goal
        print(f"{f'{kind}, {name}':<40}{median:8.3f}{min(clock):8.3f}{max(clock):9.3f}{work:9.3f}{goal:7.2f}", end="")
        print("" if median >= goal else "   missed")
    for what, figure, goal in (
        ("cold start, s", place.started_in, START_GOAL),
        ("memory of a web worker, MiB", place.memory(), MEMORY_GOAL),
    ):
        missed += figure > goal
        print(f"{what:<40}{figure:8.1f}{'':25}{goal:8.1f}{'' if figure <= goal else '   missed'}")
    return int(missed > 0)


@contextmanager
def running(database: str) -> Iterator[Place]:
    """A service of our own, started a second time on what the first start made."""
    with tempfile.TemporaryDirectory(prefix="lists-bench-") as directory:
        environment = {"PROJECT_SERVICE_LOG_LEVEL": os.environ.get("LOG_LEVEL", "INFO")}
        if database == "postgresql":
            environment["PROJECT_SERVICE_DATABASE_URL"] = create_database("lists_bench", durable=True)
        service = Service(Path(directory) / "service", **environment)
        service.start()
        service.stop()
        started_in = service.start()
        wait_for(lambda: service.get("/api/v4/version") == 200)
        try:
            yield furnish(service, started_in)
        finally:
            service.stop()


def furnish(service: Service, started_in: float) -> Place:
    """Fill a project through the API."""
    api = f"{service.url}/api/v4"

    def send(token: str, path: str, /, **fields: object) -> dict[str, object]:
        answer = requests.post(f"{api}{path}", json=fields, headers={"PRIVATE-TOKEN": token}, timeout=30)
        answer.raise_for_status()
        found: dict[str, object] = answer.json()
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


def resident(pid: int) -> int:
    """The memory of a process that is in the machine, in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


if __name__ == "__main__":
    main()
