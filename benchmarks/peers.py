"""How fast alerts are taken in beside Alerta, on the same web server and the same PostgreSQL: ``make bench-peers``.

Alerta comes from the package index into ``.cache/alerta``. Both store so many alerts by SQL, and the last 500 come and
come again: the same ones on both sides, with ``wrk`` on 8 connections, in rounds that take all in turn.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import psycopg
import requests

from benchmarks.alerts import REPEATED, place
from benchmarks.cache import home, kept_database, key_of, new_database, once, plain, settle
from benchmarks.figures import Effort, Figure, Target, conclude, effort_of, parser
from benchmarks.load import Speed, gunicorn, speed
from tests.contract.service import REPOSITORY

HOME = REPOSITORY / ".cache" / "alerta"
PYTHON = HOME / "bin" / "python"
REQUIREMENTS = Path(__file__).with_name("peers-requirements.txt")
SCRIPT = Path(__file__).with_suffix(".lua")
REPEATING = 500
TARGETS = {500: Target(6, 10), 100_000: Target(30, 50)}
DATABASE = "postgresql"
APPLICATION = "alerta.app:create_app()"
# as Alerta writes what it is sent, the first change of the history included; the first 500 are those that repeat
FILL = """
INSERT INTO alerts (id, resource, event, environment, severity, correlate, status, service, "group", value, text, tags,
    attributes, origin, type, create_time, timeout, raw_data, duplicate_count, repeat, previous_severity,
    trend_indication, receive_time, last_receive_id, last_receive_time, update_time, history)
SELECT id, CASE WHEN i <= 500 THEN 'disk ' ELSE 'stored ' END || i, 'Disk is almost full', 'Production', 'major', '{}',
    CASE WHEN i %% 4 = 0 THEN 'open' ELSE 'closed' END, '{database}', 'Misc', NULL, 'Only 2 %% are left on /var',
    '{storage}', '{"hosts": "db1.example.com, db2.example.com", "team": "storage", "rack": "17", "ip": "127.0.0.1"}',
    'Nagios', 'exceptionAlert', moment, 86400, NULL, 0, false, 'indeterminate', 'moreSevere', moment, id,
    moment, moment,
    ARRAY[(id, 'Disk is almost full', 'major', 'open', NULL, 'Only 2 %% are left on /var', 'new', moment, NULL, 86400)
        ::history]
FROM (SELECT i, gen_random_uuid()::text AS id, (now() - i * interval '1 second')::timestamp AS moment
    FROM generate_series(1, %s) AS n(i)) AS drawn
"""


@dataclass(frozen=True)
class Pair:
    """Us and them, with so many alerts each."""

    stored: int
    ours: tuple[int, str, str]
    theirs: tuple[int, str]

    def measure(self, seconds: int) -> tuple[Speed, Speed]:
        """How many repeated alerts each takes in."""
        web, url, key = self.ours
        ours = speed(web, url, seconds, Path(__file__).with_name("alerts.lua"), KIND=REPEATED, KEY=key)
        return ours, speed(*self.theirs, seconds, SCRIPT)


def main() -> None:
    """Install what is missing, measure, print."""
    options = parser(__doc__).parse_args()
    install()
    sys.exit(conclude(measure(DATABASE, effort_of(options))))


def install() -> None:
    """Alerta in an environment of its own, recreated when its versions have changed."""
    wanted = f"{REQUIREMENTS.read_text()}gunicorn=={version('gunicorn')}\n"

    def make() -> None:
        venv.create(HOME, clear=True, with_pip=True)
        packages = [line for line in wanted.splitlines() if not line.startswith("#")]
        command = [
            str(PYTHON),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--no-input",
            "--quiet",
            "install",
            *packages,
        ]
        subprocess.run(command, check=True)

    HOME.parent.mkdir(exist_ok=True)
    once(HOME, key_of(wanted), make)


def measure(database: str, effort: Effort) -> list[Figure]:
    """Both sides, with few alerts and with many."""
    with ExitStack() as stack:
        pairs = [stack.enter_context(pair(database, stored)) for stored in TARGETS]
        for one in pairs:
            one.measure(effort.seconds)
        settle(database)
        found: dict[int, list[tuple[Speed, Speed]]] = {}
        for _ in range(effort.rounds):
            for one in pairs:
                found.setdefault(one.stored, []).append(one.measure(effort.seconds))
        for one in pairs:
            check_stored(one)
    return [figure for stored, speeds in found.items() for figure in figures(database, stored, speeds)]


def figures(database: str, stored: int, speeds: list[tuple[Speed, Speed]]) -> Iterator[Figure]:
    """What both reach, and how many times as much we do."""
    ours, theirs = (tuple(one[side].by_clock for one in speeds) for side in (0, 1))
    what = f"{stored:,} alerts stored"
    yield Figure(f"alert POST, {what}: ours", database, ours, unit="requests/s")
    yield Figure(f"alert POST, {what}: Alerta's", database, theirs, unit="requests/s")
    ratios = tuple(one / other for one, other in zip(ours, theirs, strict=True))
    yield Figure(f"alert POST vs. Alerta, {what}", database, ratios, TARGETS[stored])


def check_stored(one: Pair) -> None:
    """End the measurement if what came to Alerta was not what it had stored: it should hold as many as before."""
    url = one.theirs[1].replace("/alert", "/alerts/count?")
    total = requests.get(url, timeout=60).json()["total"]
    if total != one.stored:
        sys.exit(f"Alerta holds {total} alerts, and not {one.stored}")


@contextmanager
def pair(database: str, stored: int) -> Iterator[Pair]:
    """Both; ours is without the alerts that repeat, which the first second brings."""
    with place(database, stored - REPEATING) as ours, alerta(stored) as theirs:
        yield Pair(stored, (ours.web, ours.http.url, ours.http.key), theirs)


@contextmanager
def alerta(stored: int) -> Iterator[tuple[int, str]]:
    """Process and address of a running Alerta, on a copy of the database that is kept."""
    name = f"alerta_{stored}"
    once(home(DATABASE) / name, key_of(FILL, REQUIREMENTS.read_text()), lambda: make_data(name, stored))
    with served(new_database(f"alerta_run_{stored}", name)) as (pid, address):
        yield pid, address.replace("/management/gtg", "/alert")


@contextmanager
def served(database: str) -> Iterator[tuple[int, str]]:
    """Alerta on a database, as we serve ourselves."""
    environment = {"DATABASE_URL": plain(database), "SECRET_KEY": "a key of the benchmarks", "LOG_LEVEL": "ERROR"}
    with gunicorn(APPLICATION, "/management/gtg", str(PYTHON), **environment) as found:
        yield found


def make_data(name: str, stored: int) -> None:
    """A database with Alerta's tables, which it makes when it starts, and so many alerts."""
    database = new_database(name)
    with served(database):
        pass
    with psycopg.connect(plain(kept_database(name)), autocommit=True) as connection:
        definition = connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE indexname = 'env_res_evt_cust_key'"
        ).fetchone()
        assert definition is not None
        connection.execute("DROP INDEX env_res_evt_cust_key")
        connection.execute(FILL, (stored,))
        connection.execute(definition[0])
        connection.execute("VACUUM (ANALYZE) alerts")


if __name__ == "__main__":
    main()
