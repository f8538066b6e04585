"""How fast alerts are taken in, as a share of what a bare Flask application answers on the same web server.

``python -m benchmarks.alerts [--database sqlite|postgresql] [--stored 100000]`` really starts the service, twice: with
an empty database and with one that holds so many alerts. Each round sends every kind of request to each in turn, with
``wrk`` on 8 connections, and the base beside them; printed are the medians of the rounds' ratios. "By work" is the same
ratio by the processor time that the web workers took, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import requests
from sqlalchemy import create_engine, text

from tests.contract.alerting import Credentials, Maintainer
from tests.contract.service import REPOSITORY, TOKEN, Service, children_of
from tests.databases import create_database

SCRIPT = Path(__file__).with_suffix(".lua")
WORKERS = 2
CONNECTIONS = 8
ROUNDS, SECONDS = 5, 2
# kind → alerts in a request; goals as shares of the base
KINDS = {"repeated": 1, "new": 1, "batch": 64, "new batch": 64}
GOALS = {
    "sqlite": {"repeated": 0.20, "new": 0.20, "batch": 5.0, "new batch": 5.0},
    "postgresql": {"repeated": 0.14, "new": 0.14, "batch": 4.0, "new batch": 4.0},
}
STORED_GOAL = 0.80
RATE = re.compile(r"Requests/sec:\s+([\d.]+)")
COUNT = re.compile(r"(\d+) requests in")
REFUSED = re.compile(r"Non-2xx or 3xx responses: (\d+)|Socket errors: (.*)")
FILL = """
INSERT INTO alerts (project_id, iid, title, severity, status, hosts, started_at, events, fingerprint, payload,
    created_at, updated_at)
SELECT 1, 10000000 + i, 'Alert ' || i, i % 6, CASE WHEN i % 4 = 0 THEN 0 ELSE 2 END, '[]', {moment}, 1,
    'stored ' || i, '{{}}', {moment}, {moment}
FROM ({series}) AS numbers
"""
SERIES = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {rows}) SELECT i FROM n",
    "postgresql": "SELECT i FROM generate_series(1, {rows}) AS n(i)",
}
MOMENT = {
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f000', 'now', '-' || (i % 2000000) || ' seconds')",
    "postgresql": "now() - (i % 2000000) * interval '1 second'",
}

runs = itertools.count()


@dataclass(frozen=True)
class Speed:
    """Things done in a second of the clock, and in a second of processor time."""

    by_clock: float
    by_work: float

    def times(self, count: int) -> Speed:
        return Speed(self.by_clock * count, self.by_work * count)

    def over(self, base: Speed) -> Speed:
        return Speed(self.by_clock / base.by_clock, self.by_work / base.by_work)


@dataclass(frozen=True)
class Place:
    """A running service with two integrations."""

    name: str
    web: int
    http: Credentials
    prometheus: Credentials

    def measure(self, kind: str, seconds: int) -> Speed:
        """How fast alerts of a kind are taken in."""
        receiver = self.prometheus if "batch" in kind else self.http
        return speed(self.web, receiver.url, seconds, script=SCRIPT, KIND=kind, KEY=receiver.key).times(KINDS[kind])


def main() -> None:
    """Start, measure, print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--database", choices=list(GOALS), default="sqlite")
    arguments.add_argument("--stored", type=int, default=100_000)
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    arguments.add_argument("--seconds", type=int, default=SECONDS)
    arguments.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS))
    options = arguments.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is needed to measure with (Debian has it in the package of this name)")
    with ExitStack() as stack:
        base = stack.enter_context(hello())
        sizes = [0, options.stored] if options.stored else [0]
        places = [stack.enter_context(place(options.database, size)) for size in sizes]
        for one in places:
            for kind in options.kinds:
                one.measure(kind, 1)
        found: dict[tuple[str, str], list[Speed]] = {}
        hellos = []
        for _ in range(options.rounds):
            hellos.append(speed(*base, options.seconds))
            for one, kind in itertools.product(places, options.kinds):
                found.setdefault((kind, one.name), []).append(one.measure(kind, options.seconds).over(hellos[-1]))
        report(options.database, statistics.median(one.by_clock for one in hellos), found)


def report(database: str, hello_rate: float, found: dict[tuple[str, str], list[Speed]]) -> None:
    """The table of ratios."""
    print(f"{database}, hello {hello_rate:,.0f} requests/s")
    print(f"{'kind':12}{'stored':>10}{'alerts per hello':>18}{'lowest':>8}{'highest':>9}{'by work':>9}", end="")
    print(f"{'goal':>7}{'of empty':>10}")
    medians = {key: statistics.median(one.by_clock for one in speeds) for key, speeds in found.items()}
    for (kind, name), speeds in found.items():
        by_clock, by_work = [one.by_clock for one in speeds], statistics.median(one.by_work for one in speeds)
        median, goal = medians[kind, name], GOALS[database][kind]
        share = median / medians[kind, "0"]
        print(f"{kind:12}{name:>10}{median:18.3f}{min(by_clock):8.2f}{max(by_clock):9.2f}{by_work:9.2f}", end="")
        print(f"{goal:7.2f}{share:10.2f}{'' if median >= goal and share >= STORED_GOAL else '   below the goal'}")


def speed(
    web: int,
    address: str,
    seconds: int,
    script: Path | None = None,
    headers: Mapping[str, str] | None = None,
    **environment: str,
) -> Speed:
    """How many requests ``wrk`` gets answered; anything but success, or a known answer, ends the measurement."""
    sent = [f"-H{name}: {text}" for name, text in (headers or {}).items()]
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", *([f"-s{script}"] if script else []), *sent, address]
    env = os.environ | environment | {"RUN": f"{os.getpid()}-{next(runs)}"}
    before = work_of(web)
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout
    work = work_of(web) - before
    if refused := REFUSED.search(told):
        sys.exit(f"{address}: {refused[0]}")
    rate, count = RATE.search(told), COUNT.search(told)
    if rate is None or count is None:
        sys.exit(told)
    return Speed(float(rate[1]), int(count[1]) / work)


def work_of(pid: int) -> float:
    """The processor time that the children of a process have taken, in seconds."""
    ticks = 0
    for child in children_of(pid):
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def hello() -> Iterator[tuple[int, str]]:
    """Process and address of the base, served as we serve ourselves."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    address = f"http://127.0.0.1:{port}/hello"
    command = [sys.executable, "-m", "gunicorn", "--config=python:project_service.kit.webserver"]
    command += [f"--bind=127.0.0.1:{port}", f"--workers={WORKERS}", "benchmarks.hello:app"]
    process = subprocess.Popen(command, cwd=REPOSITORY)
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with suppress(OSError), urllib.request.urlopen(address, timeout=2):
                break
            time.sleep(0.1)
        yield process.pid, address
    finally:
        process.terminate()
        process.wait()


@contextmanager
def place(database: str, stored: int) -> Iterator[Place]:
    """A service of our own with so many alerts."""
    with tempfile.TemporaryDirectory(prefix="alerts-bench-") as directory:
        environment = {"PROJECT_SERVICE_LOG_LEVEL": os.environ.get("LOG_LEVEL", "INFO")}
        address = f"sqlite:///{directory}/service/data/project-service.db"
        if database == "postgresql":
            address = create_database(f"alerts_bench_{stored}", durable=True)
            environment["PROJECT_SERVICE_DATABASE_URL"] = address
        service = Service(Path(directory) / "service", **environment)
        service.start()
        try:
            project = requests.post(
                f"{service.url}/api/v4/projects", {"name": "shop"}, headers={"PRIVATE-TOKEN": TOKEN}, timeout=30
            ).json()
            maintainer = Maintainer(service)
            path = project["path_with_namespace"]
            receivers = [maintainer.add_integration(path, type=kind, name=kind) for kind in ("http", "prometheus")]
            maintainer.close()
            if stored:
                fill(database, address, stored)
            yield Place(f"{stored:,}", service.child("web"), *receivers)
        finally:
            service.stop()


def fill(database: str, address: str, rows: int) -> None:
    """Store alerts, a quarter of them open, behind the back of the service."""
    engine = create_engine(address)
    with engine.begin() as connection:
        statement = FILL.format(series=SERIES[database].format(rows=rows), moment=MOMENT[database])
        connection.execute(text(statement.replace(":%", "\\:%")))
        if database == "postgresql":
            connection.execute(text("ANALYZE alerts"))
    engine.dispose()


if __name__ == "__main__":
    main()
