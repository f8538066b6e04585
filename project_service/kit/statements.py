"""Statements that are made once, for what is sent with very many requests.

To make a statement out of expressions, and then to find out that it has been compiled before, costs several times what
the database needs to carry it out. A function under ``prepared`` is called once for each kind of database; calls of the
decorated one send what it made, with other values each time. Rows are columns, never entities.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import orjson
from sqlalchemy import ColumnElement, CursorResult, bindparam, cast, column, func, type_coerce
from sqlalchemy.types import JSON, Text

from project_service.kit.database import Key, Timestamp, db


class Prepared(Protocol):
    """A statement that waits for its values."""

    def __call__(self, **values: Any) -> CursorResult[Any]:
        """Send it within the current unit of work. What the session has not flushed yet is not seen."""


def prepared(make: Callable[[], Any]) -> Prepared:
    """Keep what ``make`` returns; its values are ``bindparam``, or the columns of an ``INSERT`` without any."""
    made: dict[str, Any] = {}

    @functools.wraps(make)
    def send(**values: Any) -> CursorResult[Any]:
        connection = db.session.connection()
        name = connection.dialect.name
        if name not in made:
            made[name] = make()
        return connection.execute(made[name], values)

    return send


class Rows:
    """Many rows that travel as one value, whose making ``packed`` is: what is selected from for an ``INSERT``.

    A value of its own for each column of each row costs more than the database takes for all of them.
    """

    def __init__(self, parameter: str) -> None:
        self._is_sqlite = db.engine.dialect.name == "sqlite"
        packed = bindparam(parameter, type_=Text)
        found = func.json_each(packed) if self._is_sqlite else func.json_array_elements(cast(packed, JSON))
        self._row = found.table_valued(column("value", JSON)).c.value

    def text(self, name: str) -> ColumnElement[Any]:
        """A text, or nothing."""
        found: ColumnElement[Any] = self._row[name].as_string()
        return found

    def whole(self, name: str) -> ColumnElement[Any]:
        """A whole number, or nothing."""
        return cast(self.text(name), Key)

    def moment(self, name: str) -> ColumnElement[Any]:
        """A moment, or nothing."""
        if self._is_sqlite:
            return type_coerce(self.text(name), Timestamp)
        return cast(self.text(name) + "Z", Timestamp)

    def json(self, name: str) -> ColumnElement[Any]:
        """Nested data, letter by letter as it was packed."""
        return type_coerce(self.text(name), JSON) if self._is_sqlite else cast(self.text(name), JSON)


def packed(rows: Iterable[dict[str, Any]]) -> str:
    """Rows as one value for ``Rows``."""
    return orjson.dumps([{name: _plain(value) for name, value in row.items()} for row in rows]).decode()


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat(" ", "microseconds")[:26]
    return orjson.dumps(value).decode() if isinstance(value, dict | list) else value
