"""How the list of alerts behaves as alerts gather: its pages at two hundred of them and at two hundred thousand.

``python -m benchmarks.alert_list [--database sqlite|postgresql] [--rows 200000]`` sends whole requests through the
application, in rounds that take both in turn, and prints medians and ratios.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient

from benchmarks.alerts import GOALS, fill
from project_service.access.identity import SESSION_SECRET
from project_service.core.tokens import SESSION_LENGTH, BrowserSession, digest_of
from project_service.kit import clock
from project_service.kit.database import db
from tests.conftest import POSTGRESQL, SQLITE, make_app
from tests.worlds import make_group, make_project, make_user

SMALL = 200
ROUNDS, REQUESTS = 5, 10
GOAL = 2.0
PAGES = {
    "open": "",
    "open, page 100": "?page=100",
    "resolved": "?tab=resolved",
    "all": "?tab=all",
    "by severity": "?order_by=severity",
    "by events": "?order_by=events",
    "searched": "?search=alert+1",
}


def main() -> None:
    """Make both, measure, print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--database", choices=list(GOALS), default=SQLITE)
    arguments.add_argument("--rows", type=int, default=200_000)
    options = arguments.parse_args()
    clients = {rows: client(options.database, rows) for rows in (SMALL, options.rows)}
    sends = {(name, rows): sender(clients[rows], query) for name, query in PAGES.items() for rows in clients}
    found: dict[tuple[str, int], list[float]] = {}
    for send in sends.values():
        send()
    for _ in range(ROUNDS):
        times: dict[tuple[str, int], list[float]] = {}
        for key, send in list(sends.items()) * REQUESTS:
            started = time.perf_counter()
            send()
            times.setdefault(key, []).append(time.perf_counter() - started)
        for key, values in times.items():
            found.setdefault(key, []).append(statistics.median(values) * 1000)
    print(f"{options.database:16}{SMALL:>10,}{options.rows:>12,}{'ratio':>8}   (ms)")
    for name in PAGES:
        few, many = (statistics.median(found[name, rows]) for rows in clients)
        print(f"{name:16}{few:10.1f}{many:12.1f}{many / few:8.2f}{'' if many / few <= GOAL else '   above the goal'}")


def client(database: str, rows: int) -> FlaskClient:
    """A browser of a developer whose project has so many alerts."""
    directory = Path(tempfile.mkdtemp(prefix=f"alert-list-{rows}-"))
    app = make_app(SQLITE if database == SQLITE else POSTGRESQL, directory, LOG_LEVEL="ERROR")
    with app.app_context():
        user = make_user("dev", admin=True)
        make_project("shop", make_group("acme"))
        secret = "a session of the benchmark"
        session = BrowserSession(user_id=user.id, digest=digest_of(secret), expires_at=clock.now() + SESSION_LENGTH)
        db.session.add(session)
        db.session.commit()
        fill(database, db.engine.url.render_as_string(hide_password=False), rows)
        db.session.remove()
    browser = app.test_client()
    with browser.session_transaction() as cookies:
        cookies[SESSION_SECRET] = secret
    return browser


def sender(browser: FlaskClient, query: str) -> Callable[[], Any]:
    """Opens one page of the list."""

    def send() -> Any:
        answer = browser.get(f"/acme/shop/-/alert_management{query}")
        if answer.status_code != 200:
            raise SystemExit(f"{query}: {answer.status_code}")
        return answer

    return send


if __name__ == "__main__":
    main()
