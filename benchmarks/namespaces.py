"""How ``/namespaces`` behaves as the instance grows: 5,000 groups of which a user sees 300, and 20 groups in all.

``python -m benchmarks.namespaces [--database sqlite|postgresql] [--plans]`` fills two databases, small and large, sends
whole requests through the application, in turn to the small and to the large instance, and compares the 95th
percentiles. ``--plans`` shows each statement of the large instance with what the database makes of it.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flask import Flask
from sqlalchemy import event, insert, text

from benchmarks.cache import application_on, new_database
from benchmarks.figures import Effort, Figure, Target, conclude, effort_of, parser
from project_service.domain.access_levels import Role
from project_service.domain.accounts.tokens import PersonalAccessToken, digest_of
from project_service.domain.accounts.users import User
from project_service.domain.memberships import Membership, Share
from project_service.domain.namespaces import Namespace, NamespaceAncestor
from project_service.domain.projects import Project, Route
from project_service.kit import clock
from project_service.kit.db.base import Base
from project_service.kit.db.session import db

TOKEN = "token-of-the-reader"
ADDRESSES = ("/namespaces", "/namespaces?page=2&per_page=10", "/namespaces?search=group", "/namespaces?owned_only=true")
SMALL = 20
LARGE, SEEN = 5_000, 300
QUICK_LARGE, QUICK_SEEN = 500, 50
REQUESTS = 60
BELOW, MEMBERS, PROJECTS = 9, 5, 2  # subgroups of a group, members of each, projects in each
TARGET = Target(3, 3, at_most=True)


def main() -> None:
    """Measure as the command line says."""
    arguments = parser(__doc__)
    arguments.add_argument("--plans", action="store_true", help="show the statements and their plans")
    options = arguments.parse_args()
    sys.exit(conclude(measure(options.database, effort_of(options), plans=options.plans)))


def measure(database: str, effort: Effort, *, plans: bool = False) -> list[Figure]:
    """Fill both, ask for every address in turn."""
    groups, seen = (QUICK_LARGE, QUICK_SEEN) if effort.quick else (LARGE, SEEN)
    with tempfile.TemporaryDirectory() as directory:
        small = application(database, Path(directory), SMALL, SMALL)
        large = application(database, Path(directory), groups, seen)
        if plans:
            show_plans(large)
        requests = effort.rounds * REQUESTS
        return [
            figure(database, address, take_turns([small, large], address, requests), groups) for address in ADDRESSES
        ]


def application(backend: str, directory: Path, groups: int, seen: int) -> Flask:
    """The application on a database of so many groups, of which the reader is a member of ``seen``."""
    url = new_database(f"namespaces_run_{groups}") if backend == "postgresql" else ""
    app = application_on(directory / str(groups), url)
    with app.app_context():
        Base.metadata.create_all(db.engine)
        fill(groups, seen)
        if backend == "postgresql":
            with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(text("VACUUM (ANALYZE)"))
    return app


def fill(groups: int, seen: int) -> None:
    """Groups with nine subgroups each; the reader owns every tenth of those they are in, evenly spread."""
    users = [
        {"id": number, "username": f"user{number}", "name": f"User {number}"} for number in range(1, groups // 4 + 9)
    ]
    for user in users:
        user |= {"email": f"{user['username']}@example.org", "last_activity_on": clock.today()}
    numbers = range(1, groups + 1)
    parents = {number: number - (number - 1) % (BELOW + 1) for number in numbers}
    tops = {number for number in numbers if parents[number] == number}
    own = {
        "kind": "user",
        "name": "Reader",
        "path": "user1",
        "full_path": "user1",
        "full_name": "Reader",
        "owner_id": 1,
    }
    rows: dict[Any, list[dict[str, Any]]] = {
        User: users,
        Namespace.__table__: [
            {
                "id": number,
                "kind": "group",
                "name": f"Group {number}",
                "path": f"group{number}",
                "full_path": f"group{number}" if number in tops else f"group{parents[number]}/group{number}",
                "full_name": f"Group {number}",
                "parent_id": None if number in tops else parents[number],
                "owner_id": None,
            }
            for number in numbers
        ]
        + [{"id": groups + 1, "parent_id": None} | own],
        NamespaceAncestor: [
            {"namespace_id": number, "ancestor_id": ancestor}
            for number in (*numbers, groups + 1)
            for ancestor in {number, parents.get(number, number)}
        ],
        Project: [
            {"namespace_id": number, "name": path, "path": path, "full_path": f"group{number}/{path}", "attributes": {}}
            for number in numbers
            for path in (f"project{place}" for place in range(PROJECTS))
        ],
        Route: [{"path": f"group{number}", "namespace_id": number, "project_id": None} for number in numbers],
        PersonalAccessToken: [
            {
                "user_id": 1,
                "digest": digest_of(TOKEN),
                "scopes": ["api"],
                "name": "bench",
                "last_used_at": clock.now().replace(year=clock.now().year + 5),
            }
        ],
        Membership: [
            *(
                {"user_id": 2 + (number * 7 + place) % (len(users) - 1), "namespace_id": number, "access_level": level}
                for number in numbers
                for place, level in zip(range(MEMBERS), Role, strict=False)
                if level >= Role.GUEST
            ),
            *(
                {
                    "user_id": 1,
                    "namespace_id": 1 + place * groups // seen,
                    "access_level": Role.DEVELOPER if place % 10 else Role.OWNER,
                }
                for place in range(seen)
            ),
        ],
        Share: [
            {"group_id": number, "namespace_id": number % groups + 1, "access_level": Role.DEVELOPER}
            for number in numbers
            if number % 5 == 0
        ],
    }
    with db.engine.begin() as connection:
        for table, values in rows.items():
            connection.execute(insert(table), values)


def take_turns(apps: list[Flask], address: str, requests: int) -> list[list[float]]:
    """How many milliseconds each request took, by application; they take turns."""
    senders = [sender(app, address) for app in apps]
    times: list[list[float]] = [[] for _ in apps]
    for number in range(-20, requests):
        for place, send in enumerate(senders):
            started = time.perf_counter()
            send()
            if number >= 0:
                times[place].append((time.perf_counter() - started) * 1000)
    return times


def sender(app: Flask, address: str) -> Callable[[], Any]:
    """Sends the request of the reader, each time another; an empty page measures nothing."""
    client = app.test_client(use_cookies=False)
    numbers = itertools.count()
    varied = f"/api/v4{address}{'&' if '?' in address else '?'}run="

    def send() -> Any:
        answer = client.get(f"{varied}{next(numbers)}", headers={"PRIVATE-TOKEN": TOKEN})
        if answer.status_code != 200 or len(answer.json or ()) < 2:
            raise SystemExit(f"{address}: {answer.status_code} {answer.text}")
        return answer

    return send


def figure(database: str, address: str, times: list[list[float]], groups: int) -> Figure:
    """How much longer the slowest twentieth takes on the large one."""
    (small, small_tail), (large, large_tail) = (
        (statistics.median(one), statistics.quantiles(one, n=20)[-1]) for one in times
    )
    beside = f"p50 {large:.1f} / {small:.1f} ms, p95 {large_tail:.1f} / {small_tail:.1f} ms"
    name = f"{address}: p95 at {groups:,} groups vs. {SMALL}"
    return Figure(name, database, (large_tail / small_tail,), TARGET, beside)


def show_plans(app: Flask) -> None:
    """The statements of each request, each with its time and its plan."""
    with app.app_context():
        sqlite = db.engine.dialect.name == "sqlite"
        for address in ADDRESSES:
            with statements(app) as sent:
                sender(app, address)()
            print(f"\n=== {address}")
            with db.engine.connect() as connection:
                for statement, values in sent:
                    explained = "EXPLAIN QUERY PLAN " if sqlite else "EXPLAIN ANALYZE "
                    started = time.perf_counter()
                    connection.exec_driver_sql(statement, values).fetchall()
                    spent = (time.perf_counter() - started) * 1000
                    print(f"\n{spent:.2f} ms: {' '.join(statement.split())[:300]}")
                    for row in connection.exec_driver_sql(explained + statement, values):
                        print("   ", row[-1])


@contextmanager
def statements(app: Flask) -> Iterator[list[tuple[str, Any]]]:
    """The statements that are sent inside the block, with their parameters."""
    sent: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_rest: Any) -> None:
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            sent.append((statement, values))

    event.listen(db.engine, "before_cursor_execute", note)
    yield sent
    event.remove(db.engine, "before_cursor_execute", note)


if __name__ == "__main__":
    main()
