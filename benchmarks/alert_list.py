"""How the list of alerts behaves as alerts gather: its pages at two hundred of them and at two hundred thousand.

``python -m benchmarks.alert_list [--database sqlite|postgresql]`` sends whole requests through the application, in
rounds that take both in turn.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient

from benchmarks.alerts import fill
from benchmarks.cache import application_on, new_database
from benchmarks.figures import Effort, Figure, Target, run
from project_service.access.identity import SESSION_KEY
from project_service.domain.accounts.tokens import SESSION_LENGTH, BrowserSession, digest_of
from project_service.kit import clock
from project_service.kit.db.base import Base
from project_service.kit.db.session import db
from tests.support.sample_data import make_group, make_project, make_user

SMALL, LARGE, QUICK_LARGE = 200, 200_000, 20_000
REQUESTS = 10
TARGET = Target(2, 2, at_most=True)
PAGES = {
    "open": "",
    "open, page 100": "?page=100",
    "resolved": "?tab=resolved",
    "all": "?tab=all",
    "by severity": "?order_by=severity",
    "by events": "?order_by=event_count",
    "searched": "?search=alert+1",
}


def measure(database: str, effort: Effort) -> list[Figure]:
    """Open every page of the short list and of the long one."""
    large = QUICK_LARGE if effort.quick else LARGE
    with ExitStack() as stack:
        directories = {rows: Path(stack.enter_context(tempfile.TemporaryDirectory())) for rows in (SMALL, large)}
        clients = {rows: client(database, rows, directory) for rows, directory in directories.items()}
        sends = {(name, rows): sender(clients[rows], query) for name, query in PAGES.items() for rows in clients}
        for send in sends.values():
            send()
        found: dict[tuple[str, int], list[float]] = {}
        for _ in range(effort.rounds):
            times: dict[tuple[str, int], list[float]] = {}
            for key, send in list(sends.items()) * REQUESTS:
                started = time.perf_counter()
                send()
                times.setdefault(key, []).append(time.perf_counter() - started)
            for key, values in times.items():
                found.setdefault(key, []).append(statistics.median(values) * 1000)
    return [figure(database, name, found[name, SMALL], found[name, large], large) for name in PAGES]


def figure(database: str, name: str, few: list[float], many: list[float], large: int) -> Figure:
    """How much longer a page of the long list takes."""
    ratios = tuple(longer / shorter for longer, shorter in zip(many, few, strict=True))
    beside = f"{statistics.median(many):.1f} / {statistics.median(few):.1f} ms"
    return Figure(f"page of alerts ({name}): {large:,} vs. {SMALL}", database, ratios, TARGET, beside)


def client(database: str, rows: int, directory: Path) -> FlaskClient:
    """A browser of a developer whose project has so many alerts."""
    app = application_on(directory, new_database(f"alert_list_run_{rows}") if database == "postgresql" else "")
    with app.app_context():
        Base.metadata.create_all(db.engine)
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
        cookies[SESSION_KEY] = secret
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
    sys.exit(run(measure, __doc__))
