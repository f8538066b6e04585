"""How the feeds of events behave as the table grows: first pages and pages far behind, at ten thousand rows and at N.

``python -m benchmarks.events [--rows 10000000] [--database sqlite|postgresql]`` sends whole requests through the
application, each with a parameter of its own, so that no answer has been kept, in rounds that take all cases in turn.
The databases are made on first use and kept. ``--plans`` shows the statements with what the database makes of them.
"""

from __future__ import annotations

import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import event, text

from benchmarks.cache import application_on, home, indexes_last, kept_database, key_of, new_database, once, schema
from benchmarks.figures import Effort, Figure, Target, conclude, effort_of, parser
from project_service.domain.access_levels import Role, Visibility
from project_service.domain.accounts.tokens import PersonalAccessToken, digest_of
from project_service.domain.accounts.users import User
from project_service.domain.events.models import Event
from project_service.domain.memberships import Membership
from project_service.domain.namespaces import Group, UserNamespace
from project_service.domain.paths import path_registry
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.base import Base
from project_service.kit.db.session import db

SMALL, LARGE, QUICK_LARGE = 10_000, 10_000_000, 1_000_000
USERS, PROJECTS, GROUPS, ISSUES = 1_000, 500, 25, 5_000
FAR = 500  # the last page whose depth is below 10,000 rows
WARMING, FEWEST, MOST = 3, 3, 40
SHARE = 0.25  # of the seconds of a case: one request at a time needs no more
GROWTH_TARGET = Target(1.3, 1.2, at_most=True)
VISIBILITIES = (Visibility.PUBLIC, Visibility.INTERNAL, Visibility.INTERNAL, Visibility.PUBLIC, Visibility.PRIVATE)

# the number of a row, from 1, and one number between 0 and 1 for each thing that is drawn: the same in every run
DRAWS = ", ".join(
    f"((i * {factor}) % 4294967291) / 4294967291.0 AS {name}"
    for name, factor in (("a", 2654435761), ("p", 2246822519), ("k", 3266489917), ("t", 668265263))
)
SERIES = {
    "sqlite": f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT :rows) SELECT i, {DRAWS} FROM n",
    "postgresql": f"SELECT i, {DRAWS} FROM generate_series(CAST(1 AS bigint), CAST(:rows AS bigint)) AS n(i)",
}
MOMENT = {
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f000', '2025-01-01', '+' || (d.i * 50000000.0 / :rows) || ' seconds')",
    "postgresql": "timestamptz '2025-01-01 UTC' + (d.i * 50000000.0 / :rows) * interval '1 second'",
}
FLOOR = {
    "sqlite": "CAST({} AS INTEGER)",
    "postgresql": "CAST(floor({}) AS bigint)",
}
PUSHES = {"sqlite": "'{}'", "postgresql": "CAST('{}' AS json)"}
PUSH = (
    '{"commit_count":2,"action":"pushed","ref_type":"branch","commit_from":"1111111111111111111111111111111111111111",'
    '"commit_to":"2222222222222222222222222222222222222222","ref":"main","commit_title":"Fix totals","ref_count":null}'
)
# pushes 40 %, comments 25 %, issues 20 % (some of both confidential), members 10 %, milestones 5 %; the busiest author
# has 3 % of all events, the busiest project 4.5 %
FILL = """
INSERT INTO events
    (id, action, kind, restriction, author_id, project_id, issue_id, target_type, target_id, data, created_at)
SELECT d.i,
    CASE WHEN k < 0.40 THEN 5 WHEN k < 0.65 THEN 6 WHEN k < 0.85 THEN 1 WHEN k < 0.95 THEN 8 ELSE 1 END,
    CASE WHEN k < 0.40 THEN 2 WHEN k < 0.85 THEN 3 WHEN k < 0.95 THEN 1 ELSE 5 END,
    CASE WHEN k >= 0.40 AND k < 0.85 AND t < 0.05 THEN 1 WHEN k >= 0.40 AND k < 0.65 AND t < 0.08 THEN 2 ELSE 0 END,
    {author}, {project},
    CASE WHEN k >= 0.40 AND k < 0.85 THEN {issue} END,
    CASE WHEN k < 0.40 THEN NULL WHEN k < 0.65 THEN 'Note' WHEN k < 0.85 THEN 'Issue' WHEN k < 0.95 THEN NULL
        ELSE 'Milestone' END,
    CASE WHEN k >= 0.40 AND k < 0.85 THEN {issue} END,
    CASE WHEN k < 0.40 THEN {push} END,
    {moment}
FROM ({series}) AS d
"""

FILL_ISSUES = """
INSERT INTO issues
    (id, iid, project_id, title, state, issue_type, confidential, notes_count, author_id, created_at, updated_at)
SELECT i, i, 1 + (i % {projects}), 'Issue ' || i, 'opened', 'issue', {no}, 1, 1 + (i % {users}), {moment}, {moment}
FROM ({series}) AS d
"""
FILL_NOTES = """
INSERT INTO notes
    (id, project_id, noteable_type, noteable_id, body, system, confidential, author_id, created_at, updated_at)
SELECT i, 1 + (i % {projects}), 'Issue', i, 'A word about it', {no}, {no}, 1 + (i % {users}), {moment}, {moment}
FROM ({series}) AS d
"""


Key = tuple[str, int, int]
numbers = itertools.count()


@dataclass(frozen=True)
class Case:
    """One request, on one database."""

    feed: str
    size: int
    page: int
    send: Callable[[], Any]

    @property
    def key(self) -> Key:
        """What tells it from the others."""
        return self.feed, self.size, self.page


def main() -> None:
    """Measure as the command line says."""
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int)
    arguments.add_argument("--plans", action="store_true", help="show the slow statements and their plans")
    options = arguments.parse_args()
    effort = effort_of(options)
    rows = options.rows or rows_of(effort)
    if options.plans:
        show_plans(application(options.database, rows))
    sys.exit(conclude(measure(options.database, effort, rows)))


def measure(database: str, effort: Effort, rows: int | None = None) -> list[Figure]:
    """Every feed, small and large."""
    large = rows or rows_of(effort)
    apps = {size: application(database, size) for size in (SMALL, large)}
    cases = [case for size, app in apps.items() for case in cases_of(app, size)]
    return list(figures(database, take_turns(cases, effort), large))


def rows_of(effort: Effort) -> int:
    """How many events the large table has."""
    return QUICK_LARGE if effort.quick else LARGE


def application(database: str, size: int) -> Flask:
    """The application on a database of so many events, made if it is missing."""
    return application_on(*make_data(database, size))


def make_data(database: str, size: int) -> tuple[Path, str]:
    """Directory and, on PostgreSQL, address of a database of so many events, made if it is missing."""
    directory, name = home(database) / f"events-{size}", f"events_{size}"
    key = key_of(schema(), fill, make_people, FILL, FILL_ISSUES, FILL_NOTES, str(SERIES), str(MOMENT))
    once(directory, key, lambda: make(database, directory, name, size))
    return directory, kept_database(name) if database == "postgresql" else ""


def make(database: str, directory: Path, name: str, size: int) -> None:
    """A new database."""
    app = application_on(directory, new_database(name) if database == "postgresql" else "")
    with app.app_context():
        fill(database, size)
        db.session.remove()
        db.engine.dispose()


def fill(backend: str, size: int) -> None:
    """People, projects and memberships through the models; issues, notes and events by the database itself."""
    Base.metadata.drop_all(db.engine)
    Base.metadata.create_all(db.engine)
    make_people()
    whole = FLOOR[backend].format
    series = SERIES[backend]
    with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if backend == "sqlite":
            connection.execute(text("PRAGMA foreign_keys=OFF"))
            connection.execute(text("PRAGMA synchronous=OFF"))
        else:
            connection.execute(text("SET session_replication_role = replica"))
            connection.execute(text("SET synchronous_commit = off"))
            connection.execute(text("SET maintenance_work_mem = '512MB'"))
        moment = MOMENT[backend]
        no = "0" if backend == "sqlite" else "false"
        for statement in (FILL_ISSUES, FILL_NOTES):
            filled = statement.format(moment=moment, series=series, no=no, projects=PROJECTS, users=USERS)
            connection.execute(text(filled.replace(":rows", str(ISSUES))))
        author = f"1 + {whole(f'{USERS} * a * a')}"
        # everybody works in some thirty projects, which differ from one to the next; the lower numbers are busier
        turn = f"((({author}) * 618034) % 1000000) / 1000000.0 + {whole('30 * p')} / 30.0"
        statement = FILL.format(
            author=author,
            project=f"1 + {whole(f'{PROJECTS} * ({turn} - {whole(turn)}) * ({turn} - {whole(turn)})')}",
            issue=f"1 + {whole(f'{ISSUES} * t')}",
            push=PUSHES[backend].format(PUSH.replace(":", "\\:")),
            moment=moment,
            series=series,
        )
        with indexes_last(connection, Event):
            connection.execute(text(statement.replace(":rows", str(size))))
        for table in ("events", "issues", "notes") if backend == "postgresql" else ():
            connection.execute(text(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}"))
            connection.execute(text(f"VACUUM (ANALYZE) {table}"))
        if backend == "sqlite":
            connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
            connection.execute(text("PRAGMA foreign_keys=ON"))


def make_people() -> None:
    """The busiest author is a developer of the first groups, and so of a few dozen projects; the second a stranger."""
    people = []
    for number in range(1, USERS + 1):
        user = User(username=f"user{number}", name=f"User {number}", email=f"user{number}@example.org")
        user.last_activity_on = clock.today()
        people.append(user)
    db.session.add_all(people)
    db.session.flush()
    groups = []
    for number in range(1, GROUPS + 1):
        group = Group(path=f"group{number}", name=f"Group {number}", visibility=Visibility.PUBLIC)
        path_registry.store_namespace(group, None, AssertionError("taken"))
        groups.append(group)
    for number in range(1, PROJECTS + 1):
        place = groups[number % GROUPS]
        visibility = VISIBILITIES[number % len(VISIBILITIES)]
        project = Project(name=f"p{number}", path=f"p{number}", visibility=visibility, attributes={}, namespace=place)
        path_registry.store_project(project, AssertionError("taken"))
    for user in people[:5]:
        namespace = UserNamespace(name=user.name, path=user.username, owner=user)
        path_registry.store_namespace(namespace, None, AssertionError("taken"))
        user.namespace_id = namespace.id
        db.session.add(
            PersonalAccessToken(
                user_id=user.id,
                digest=digest_of(f"token-{user.id}"),
                scopes=["api"],
                name="bench",
                last_used_at=clock.now().replace(year=clock.now().year + 5),
            )
        )
    for group in groups[:2]:
        db.session.add(Membership(user_id=people[0].id, namespace_id=group.id, access_level=Role.DEVELOPER))
    for number, user in enumerate(people[5:]):
        group = groups[number % GROUPS]
        db.session.add(Membership(user_id=user.id, namespace_id=group.id, access_level=Role.DEVELOPER))
    db.session.commit()
    db.session.remove()


def cases_of(app: Flask, size: int) -> list[Case]:
    """Every feed, for those who see all of it and for those who see a part: the first page, and one far behind."""
    feeds = {
        "project, member": ("/projects/1/events", 1),
        "project, stranger": ("/projects/1/events", 2),
        "user": ("/users/1/events", 2),
        "own": ("/events", 1),
        "scope=all": ("/events?scope=all", 1),
    }
    client = app.test_client(use_cookies=False)
    cases = [Case(feed, size, 1, request(client, path, 1, user)) for feed, (path, user) in feeds.items()]
    if size > SMALL:
        cases += [Case(feed, size, FAR, request(client, path, FAR, user)) for feed, (path, user) in feeds.items()]
    return cases


def request(client: FlaskClient, path: str, page: int, user: int) -> Callable[[], Any]:
    """Sends one request, each time another; a page that is not full measures nothing."""
    address = f"/api/v4{path}{'&' if '?' in path else '?'}page={page}&run={os.getpid()}-"

    def send() -> Any:
        answer = client.get(f"{address}{next(numbers)}", headers={"PRIVATE-TOKEN": f"token-{user}"})
        if answer.status_code != 200 or len(answer.json or ()) < 20:
            raise SystemExit(f"{address}: {answer.status_code}, {len(answer.json or ())} events; take more --rows")
        return answer

    return send


def take_turns(cases: list[Case], effort: Effort) -> list[dict[Key, float]]:
    """The median of each case in each round, in milliseconds; the cases take turns with every request.

    One that has had its seconds in a round drops out of it.
    """
    found = []
    for case in cases * WARMING:
        case.send()
    for _ in range(effort.rounds):
        times: dict[Key, list[float]] = {case.key: [] for case in cases}
        for case in cases * MOST:
            took = times[case.key]
            if len(took) < FEWEST or sum(took) < effort.seconds * SHARE:
                started = time.perf_counter()
                case.send()
                took.append(time.perf_counter() - started)
        found.append({key: statistics.median(took) * 1000 for key, took in times.items()})
    return found


def figures(database: str, found: list[dict[Key, float]], large: int) -> Iterator[Figure]:
    """How much longer a page takes than its like, feed by feed."""
    for feed in dict.fromkeys(key[0] for key in found[0]):
        keys = {"small": (feed, SMALL, 1), "first": (feed, large, 1), "far": (feed, large, FAR)}
        first, small, far = (tuple(times[keys[name]] for times in found) for name in ("first", "small", "far"))
        names = {
            f"page 1, {large:,} vs. {SMALL:,}": (first, small, GROWTH_TARGET),
            f"page {FAR:,} vs. page 1, {large:,}": (far, first, None),
        }
        for name, (above, below, target) in names.items():
            ratios = tuple(one / other for one, other in zip(above, below, strict=True))
            beside = f"{statistics.median(above):.1f} / {statistics.median(below):.1f} ms"
            yield Figure(f"feed of events ({feed}): {name}", database, ratios, target, beside)


def show_plans(app: Flask) -> None:
    """Every statement that reads events, and its plan with what it took."""
    with app.app_context():
        engine = db.engine
    sent: list[tuple[str, Any]] = []
    explain = "EXPLAIN QUERY PLAN" if engine.dialect.name == "sqlite" else "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF)"

    def before(_connection: Any, _cursor: Any, statement: str, values: Any, *_rest: Any) -> None:
        sent.append((statement, values))

    event.listen(engine, "before_cursor_execute", before)
    for case in cases_of(app, SMALL + 1):
        case.send()
        sent.clear()
        case.send()
        print(f"\n=== {case.feed}, page {case.page}: {len(sent)} statements")
        for statement, values in [one for one in sent if " events" in one[0]]:
            with engine.connect() as connection:
                started = time.perf_counter()
                connection.exec_driver_sql(statement, values).all()
                took = time.perf_counter() - started
                plan = connection.exec_driver_sql(f"{explain} {statement}", values)
                print(f"--- {took * 1000:.2f} ms", statement, *(f"    {row[-1]}" for row in plan), sep="\n")
    event.remove(engine, "before_cursor_execute", before)


if __name__ == "__main__":
    main()
