"""Where benchmarks keep data that take long to make, how they know that these are still right, and who serves them."""

from __future__ import annotations

import hashlib
import inspect
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from flask import Flask
from sqlalchemy import Connection, Table
from sqlalchemy.schema import CreateIndex, CreateTable

from project_service.factory import create_app
from project_service.kit.db.base import Base
from project_service.settings import Settings
from tests.contract.service import REPOSITORY
from tests.support.databases import address_of, create_database

CACHE = REPOSITORY / ".cache" / "bench"
CLUSTER = CACHE / "postgresql" / "data"
SECRET_KEY = "a key that only the benchmarks have and that is long enough"


def home(database: str) -> Path:
    """The directory of all that is kept for one kind of database; removing it creates everything again."""
    directory = CACHE / database
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def new_database(name: str, template: str = "template1") -> str:
    """Address of an empty PostgreSQL database, or of a copy, in place of any of that name."""
    return create_database(name, template, CLUSTER)


def kept_database(name: str) -> str:
    """Address of a PostgreSQL database that is there."""
    return address_of(name, CLUSTER)


def plain(address: str) -> str:
    """The address of a PostgreSQL database without the name of our driver."""
    return address.replace("+psycopg", "")


def settle(database: str) -> None:
    """Have what was written until now on the disk, so that it does not disturb what is measured next."""
    if database == "postgresql":
        with psycopg.connect(plain(kept_database("postgres")), autocommit=True) as connection:
            connection.execute("CHECKPOINT")
    os.sync()


def once(mark: Path, key: str, make: Callable[[], object]) -> None:
    """Have something made, unless that was done already by what ``key`` stands for."""
    mark = mark.with_name(f"{mark.name}.made")
    if mark.exists() and mark.read_text() == key:
        return
    mark.unlink(missing_ok=True)
    started = time.perf_counter()
    make()
    mark.write_text(key)
    print(f"made {mark.parent.name}/{mark.stem} in {time.perf_counter() - started:.0f} s", flush=True)


def key_of(*parts: str | Callable[..., object]) -> str:
    """What data depends on: texts, and functions by what is written in them."""
    texts = [part if isinstance(part, str) else inspect.getsource(part) for part in parts]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def schema() -> str:
    """All tables and indexes, as statements: importing the application has declared them."""
    made = [
        str(statement)
        for table in Base.metadata.sorted_tables
        for statement in (CreateTable(table), *map(CreateIndex, sorted(table.indexes, key=lambda one: str(one.name))))
    ]
    return "\n".join(made)


@contextmanager
def indexes_last(connection: Connection, model: Any) -> Iterator[None]:
    """Fill a table inside the block, without its indexes, and have them made behind it."""
    table: Table = model.__table__
    indexes = list(table.indexes)
    for index in indexes:
        index.drop(connection)
    yield
    for index in indexes:
        index.create(connection)


def application_on(directory: Path, address: str) -> Flask:
    """The application on a directory, and on PostgreSQL if it is given an address."""
    environment = {"SECRET_KEY": SECRET_KEY, "LOG_LEVEL": "ERROR", "DATA_DIR": str(directory)}
    if address:
        environment["DATABASE_URL"] = address
    directory.mkdir(exist_ok=True)
    return create_app(
        Settings.from_environment({f"PROJECT_SERVICE_{name}": value for name, value in environment.items()})
    )
