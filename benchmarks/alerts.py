"""How fast alerts are taken in, as a share of what a bare Flask application answers on the same web server.

``python -m benchmarks.alerts [--database sqlite|postgresql]`` really starts the service, twice: with an empty database
and with one that holds 100,000 alerts. Each round sends every kind of request to each in turn, with ``wrk`` on 8
connections, and the base beside them.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import requests
from sqlalchemy import create_engine, text

from benchmarks.cache import home, indexes_last, kept_database, key_of, new_database, once, schema, settle
from benchmarks.figures import Effort, Figure, Target, run
from benchmarks.load import Speed, hello, speed
from project_service.areas.alerts.models import Alert
from tests.contract.alerting import Maintainer
from tests.contract.service import TOKEN, Service

SCRIPT = Path(__file__).with_suffix(".lua")
STORED = 100_000
REPEATED, NEW, BATCH = "repeated", "new", "batch"
IN_A_BATCH = 64
TARGETS = {
    "sqlite": {REPEATED: Target(0.20, 0.33), NEW: Target(0.20, 0.33), BATCH: Target(5, 9)},
    "postgresql": {REPEATED: Target(0.14, 0.22), NEW: Target(0.14, 0.22), BATCH: Target(4, 7)},
}
NAMES = {
    REPEATED: "alert POST, repeated",
    NEW: "alert POST, new",
    BATCH: f"{IN_A_BATCH} alerts in one POST, alerts per hello",
}
STORED_TARGET = Target(0.80, 0.95)
RECEIVERS = ("http", "prometheus")
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


@dataclass(frozen=True)
class Receiver:
    """The address of an integration and its key."""

    url: str
    key: str


@dataclass(frozen=True)
class Place:
    """A running service with two integrations."""

    web: int
    http: Receiver
    prometheus: Receiver

    def measure(self, kind: str, seconds: int) -> Speed:
        """How fast alerts of a kind are taken in."""
        receiver = self.prometheus if kind == BATCH else self.http
        found = speed(self.web, receiver.url, seconds, SCRIPT, KIND=kind, KEY=receiver.key)
        return found.times(IN_A_BATCH if kind == BATCH else 1)


def measure(database: str, effort: Effort) -> list[Figure]:
    """All kinds on an empty database, single alerts beside many others too."""
    with ExitStack() as stack:
        base = stack.enter_context(hello())
        empty, full = (stack.enter_context(place(database, stored)) for stored in (0, STORED))
        cases = [(empty, REPEATED), (full, REPEATED), (empty, NEW), (full, NEW), (empty, BATCH)]
        for one, kind in cases:
            one.measure(kind, 1)
        settle(database)
        hellos, found = [], []
        for _ in range(effort.rounds):
            hellos.append(speed(*base, max(1, effort.seconds // 2)))
            rates = {(one is full, kind): one.measure(kind, effort.seconds) for one, kind in cases}
            found.append({key: rate.over(hellos[-1]) for key, rate in rates.items()})
    base_rate = Figure("hello beside alerts", database, tuple(one.by_clock for one in hellos), unit="requests/s")
    return [base_rate, *figures(database, found)]


def figures(database: str, found: list[dict[tuple[bool, str], Speed]]) -> Iterator[Figure]:
    """The shares of the base, and those of the full database of what the empty one reaches."""
    for kind, target in TARGETS[database].items():
        speeds = [rates[False, kind] for rates in found]
        by_work = f"by work {statistics.median(one.by_work for one in speeds):.2f}"
        yield Figure(NAMES[kind], database, tuple(one.by_clock for one in speeds), target, by_work)
    for kind in (REPEATED, NEW):
        shares = tuple(rates[True, kind].by_clock / rates[False, kind].by_clock for rates in found)
        yield Figure(f"{NAMES[kind]}, {STORED:,} stored vs. empty", database, shares, STORED_TARGET)


@contextmanager
def place(database: str, stored: int) -> Iterator[Place]:
    """A service on a copy of the data that is kept."""
    kept = make_data(database, stored)
    with tempfile.TemporaryDirectory(prefix="alerts-bench-") as directory:
        own = Path(directory) / "service"
        shutil.copytree(kept, own)
        environment = {"PROJECT_SERVICE_LOG_LEVEL": os.environ.get("LOG_LEVEL", "INFO")}
        if database == "postgresql":
            environment["PROJECT_SERVICE_DATABASE_URL"] = new_database(f"alerts_run_{stored}", f"alerts_{stored}")
        service = Service(own, **environment)
        service.start()
        try:
            told = json.loads((own / "receivers.json").read_text())
            receivers = [Receiver(service.url + path, key) for path, key in told]
            yield Place(service.child("web"), *receivers)
        finally:
            service.stop()


def make_data(database: str, stored: int) -> Path:
    """The directory of a service that has a project with two integrations and so many alerts, made if it is missing.

    On PostgreSQL the rows are in a database called ``alerts_`` and their number.
    """
    kept = home(database) / f"alerts-{stored}"
    once(
        kept,
        key_of(schema(), FILL, str(SERIES), str(MOMENT), fill_lists, fill),
        lambda: fill_lists(database, stored, kept),
    )
    return kept


def fill_lists(database: str, stored: int, directory: Path) -> None:
    """Have the service make its tables, people and integrations, then store alerts behind its back."""
    shutil.rmtree(directory, ignore_errors=True)
    address = f"sqlite:///{directory}/data/project-service.db"
    environment = {}
    if database == "postgresql":
        new_database(f"alerts_{stored}")
        address = environment["PROJECT_SERVICE_DATABASE_URL"] = kept_database(f"alerts_{stored}")
    service = Service(directory, **environment)
    service.start()
    try:
        project = requests.post(
            f"{service.url}/api/v4/projects", {"name": "shop"}, headers={"PRIVATE-TOKEN": TOKEN}, timeout=30
        ).json()
        maintainer = Maintainer(service)
        path = project["path_with_namespace"]
        made = [maintainer.add_integration(path, type=kind, name=kind) for kind in RECEIVERS]
        maintainer.close()
    finally:
        service.stop()
    receivers = [(urlsplit(one.url).path, one.key) for one in made]
    (directory / "receivers.json").write_text(json.dumps(receivers))
    if stored:
        fill(database, address, stored)


def fill(database: str, address: str, rows: int) -> None:
    """Store alerts, a quarter of them open, behind the back of the service."""
    engine = create_engine(address)
    with engine.begin() as connection, indexes_last(connection, Alert):
        statement = FILL.format(series=SERIES[database].format(rows=rows), moment=MOMENT[database])
        connection.execute(text(statement.replace(":%", "\\:%")))
    if database == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM (ANALYZE) alerts"))
    engine.dispose()


if __name__ == "__main__":
    sys.exit(run(measure, __doc__))
