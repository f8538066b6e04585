"""A world that everything can be tried on: it is put back as it was."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Flask

from project_service.kit.db.session import db
from project_service.kit.http.urls import API_PREFIX
from project_service.kit.storage import storage


@pytest.fixture
def document(app: Flask) -> dict[str, Any]:
    """The API's own document."""
    found: dict[str, Any] = app.test_client().get(f"{API_PREFIX}/openapi.json").json
    return found


@pytest.fixture
def put_back(app: Flask) -> Iterator[Callable[[], None]]:
    """Keeps the database and the objects as they are at the first call, and puts them back at every later one."""
    kept = sqlite3.connect(":memory:")
    path = db.engine.url.database or ""
    objects: dict[str, bytes] = {}

    def copy(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
        source.backup(target)

    def keep_objects() -> None:
        for each in storage().listing():
            with storage().open(each.name) as file:
                objects[each.name] = file.read()

    def put_objects() -> None:
        for name, content in objects.items():
            if not storage().exists(name):
                storage().store(io.BytesIO(content), name)

    def put() -> None:
        db.session.remove()
        db.engine.dispose()
        live = sqlite3.connect(path)
        if kept.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            copy(kept, live)
            put_objects()
        else:
            copy(live, kept)
            keep_objects()
        live.close()

    yield put
    kept.close()
