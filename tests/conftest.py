"""Fixtures of all tests: applications on both databases, people, clients, and what happens after a request."""

from __future__ import annotations

import contextvars
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import argon2
import pytest
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import HealthCheck, settings
from sqlalchemy import event, select
from werkzeug.test import TestResponse

from project_service.domain.accounts.users import User
from project_service.domain.memberships import Membership
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.domain.repositories.models import Repository
from project_service.factory import create_app
from project_service.kit import clock, jobs
from project_service.kit.db import migrations
from project_service.kit.db.base import Base
from project_service.kit.db.session import db
from project_service.kit.deliveries import dispatching
from project_service.kit.http import requests
from project_service.kit.jobs import Task
from project_service.kit.security import passwords
from project_service.settings import Settings
from tests.support import sample_data
from tests.support.databases import create_database
from tests.support.git_repositories import keep_repository
from tests.support.remote_servers import RemoteServer, serving
from tests.support.sample_data import ADA, MAX, ROLES, SAM

pytest_plugins = ["tests.support.visitors"]

API = "/api/v4"
SECRET_KEY = "a key that only the tests have and that is long enough"
SQLITE, POSTGRESQL = "sqlite", "postgresql"
# Measuring coverage doubles the time of a test. Folders whose tests run, by many requests, what other tests cover:
NOT_MEASURED = ("fuzzing", "guards", "load", "security")
# how long an example takes says how busy the machine is
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--both-databases", action="store_true", help="run every test on SQLite and on PostgreSQL")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a case for each database of every test that has one; ``pytest_collection_modifyitems`` chooses."""
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", [SQLITE, POSTGRESQL], scope="session", indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the PostgreSQL cases of tests that are not marked ``both_databases``; choose what coverage measures."""
    selected: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    for item in items:
        callspec = getattr(item, "callspec", None)
        on_postgresql = callspec is not None and callspec.params.get("backend") == POSTGRESQL
        wanted = config.getoption("--both-databases") or item.get_closest_marker("both_databases")
        if on_postgresql and (not wanted or item.get_closest_marker("sqlite_only")):
            deselected.append(item)
            continue
        selected.append(item)
        folder = item.path.parent.name
        if folder in NOT_MEASURED or (on_postgresql and "areas" in item.path.parts):
            item.add_marker("no_cover")
    # the files of areas are short and many: run last, they leave no worker alone with a long file
    items[:] = sorted(selected, key=lambda item: "areas" in item.path.parts)
    config.hook.pytest_deselected(items=deselected)


@pytest.fixture(scope="session", autouse=True)
def _cheap_passwords() -> None:
    """Hash quickly: what argon2 costs is not what the tests are about."""
    passwords._hasher = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@pytest.fixture(scope="session")
def backend(request: pytest.FixtureRequest) -> str:
    """Which database the test runs on."""
    return str(request.param)


@pytest.fixture(scope="session")
def applications(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Flask]]:
    """Makes the application of a database once per worker."""
    made: dict[str, Flask] = {}

    def application(backend: str) -> Flask:
        if backend not in made:
            made[backend] = make_app(backend, tmp_path_factory.mktemp(backend))
        return made[backend]

    yield application
    for app in made.values():
        with app.app_context():
            db.engine.dispose()


def make_app(backend: str, directory: Path, **changes: Any) -> Flask:
    """A migrated application of its own; ``changes`` are variables without their prefix."""
    environment = {"DATA_DIR": str(directory), "SECRET_KEY": SECRET_KEY, "SQLITE_SYNCHRONOUS": "OFF"} | changes
    if backend == POSTGRESQL:
        environment["DATABASE_URL"] = create_database(f"{directory.name}_{os.environ.get('PYTEST_XDIST_WORKER', 'gw')}")
    app = create_app(
        Settings.from_environment({f"PROJECT_SERVICE_{name}": value for name, value in environment.items()})
    )
    app.extensions["redis"] = NoRedis()
    app.test_client_class = FreshClient
    with app.app_context():
        migrations.upgrade()
    return app


class FreshClient(FlaskClient):
    """A client whose requests know nothing of the test's own application context, as those of a server."""

    def open(self, *args: Any, **options: Any) -> TestResponse:
        """Send one request, in a context of its own."""
        return contextvars.Context().run(super().open, *args, **options)


class NoRedis:
    """No Redis: wake-ups are lost, tests run the tasks themselves with ``run_jobs``."""

    def __getattr__(self, name: str) -> Any:
        import redis

        raise redis.ConnectionError("the tests have no Redis")


@pytest.fixture
def app(backend: str, applications: Callable[[str], Flask]) -> Iterator[Flask]:
    """The application on an empty database, inside its context."""
    application = applications(backend)
    with application.app_context():
        yield application
        db.session.remove()
        _empty()
        db.session.remove()


def _empty() -> None:
    # one round trip, and none of it compiled: this runs after every test
    statements = [f"DELETE FROM {table.name}" for table in reversed(Base.metadata.sorted_tables)]
    with db.engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("; ".join(statements))
        else:
            cursor = connection.connection.cursor()
            for statement in statements:
                cursor.execute(statement)


class Client:
    """A client of the API with the token of a user. Paths are those below ``/api/v4``."""

    def __init__(self, browser: FlaskClient, token: str | None) -> None:
        self.browser = browser
        self.token = token

    def open(self, method: str, path: str, **options: Any) -> TestResponse:
        """Send one request; the session of the test is not the request's."""
        headers = dict(options.pop("headers", None) or {})
        if self.token is not None:
            headers.setdefault("PRIVATE-TOKEN", self.token)
        db.session.remove()
        options.setdefault("buffered", True)  # reads and closes responses that are files
        response = self.browser.open(API + path, method=method, headers=headers, **options)
        db.session.remove()
        return response

    def get(self, path: str, **options: Any) -> TestResponse:
        return self.open("GET", path, **options)

    def head(self, path: str, **options: Any) -> TestResponse:
        return self.open("HEAD", path, **options)

    def post(self, path: str, **options: Any) -> TestResponse:
        return self.open("POST", path, **options)

    def put(self, path: str, **options: Any) -> TestResponse:
        return self.open("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> TestResponse:
        return self.open("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> TestResponse:
        return self.open("DELETE", path, **options)


@pytest.fixture
def browser(app: Flask) -> FlaskClient:
    """A client without a token that keeps cookies."""
    return app.test_client()


@pytest.fixture
def people(app: Flask) -> dict[str, User]:
    """Everybody, by username."""
    return sample_data.make_people()


@pytest.fixture
def client_of(app: Flask) -> Callable[..., Client]:
    """Makes a client of a user (or of nobody), with a token of the given scopes."""

    def make(user: User | None, *scopes: str, **fields: Any) -> Client:
        token = None if user is None else sample_data.make_token(user, *scopes, **fields)
        return Client(app.test_client(use_cookies=False), token)

    return make


@pytest.fixture
def as_(people: dict[str, User], client_of: Callable[..., Client]) -> Callable[[str | None], Client]:
    """Makes a client of one of the people by name: ``as_(MAX)``; ``as_(NOBODY)`` has no token."""
    return lambda name: client_of(people[name] if name else None)


@pytest.fixture
def as_admin(as_: Callable[[str | None], Client]) -> Client:
    return as_(ADA)


@pytest.fixture
def as_maintainer(as_: Callable[[str | None], Client]) -> Client:
    return as_(MAX)


@pytest.fixture
def as_stranger(as_: Callable[[str | None], Client]) -> Client:
    return as_(SAM)


@pytest.fixture
def group(people: dict[str, User]) -> Group:
    """The private group ``acme`` that olive owns."""
    made = sample_data.make_group("acme")
    sample_data.add_member(made, people["olive"], ROLES["olive"])
    return made


@pytest.fixture
def project(people: dict[str, User], group: Group) -> Project:
    """The private project ``acme/shop``: olive owns it through the group, the others are members of the project."""
    made = sample_data.make_project("shop", group)
    db.session.add_all(
        Membership(user_id=people[name].id, user=people[name], project_id=made.id, access_level=role)
        for name, role in ROLES.items()
        if name != "olive"
    )
    db.session.commit()
    return made


@pytest.fixture
def repository(project: Project, tmp_path: Path) -> Repository:
    """The repository of the shop, with one file."""
    return keep_repository(project, tmp_path / "repository", "v1.0", files={"README.md": b"Till\n"})


@pytest.fixture
def filled(
    project: Project, repository: Repository, group: Group, people: dict[str, User], client_of: Callable[..., Client]
) -> Client:
    """An administrator's client; the project, the group and everybody's account have something in every list."""
    client = client_of(people[ADA])
    sample_data.fill_lists(project, group, people, client)
    return client


@pytest.fixture
def run_jobs(app: Flask, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Runs all tasks that are due, as workers would, until there are none; the sending job ends at once."""
    monkeypatch.setattr(dispatching, "RUN_SECONDS", 0)

    def run() -> int:
        count = 0
        while True:
            db.session.remove()
            due = (Task.failed_at.is_(None), Task.attempts == 0, Task.run_at <= clock.now())
            ids = list(db.session.scalars(select(Task.id).where(*due).order_by(Task.id)))
            db.session.remove()
            if not ids:
                return count
            for task_id in ids:
                jobs.run(task_id)
                count += 1

    return run


@pytest.fixture
def remote() -> Iterator[RemoteServer]:
    """A server that is not ours."""
    with serving() as remote:
        yield remote


@pytest.fixture
def no_room_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no file of a request be received: the disk is full."""

    class Full(io.BytesIO):
        def write(self, _data: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(requests, "SpooledTemporaryFile", lambda *_, **_options: Full())


@pytest.fixture
def count_queries(app: Flask) -> Callable[[], Any]:
    """Counts the statements sent inside a block: ``with count_queries() as queries: …; len(queries)``."""

    @contextmanager
    def counting() -> Iterator[list[str]]:
        sent: list[str] = []

        def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
            sent.append(statement)

        event.listen(db.engine, "before_cursor_execute", note)
        try:
            yield sent
        finally:
            event.remove(db.engine, "before_cursor_execute", note)

    return counting
