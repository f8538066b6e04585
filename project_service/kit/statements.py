"""Statements that are made once, for what is sent with very many requests.

To make a statement out of expressions, and then to find out that it has been compiled before, costs several times what
the database needs to carry it out. A function under ``prepared`` is called once for each kind of database; calls of the
decorated one send what it made, with other values each time. Rows are columns, never entities.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, cast

import orjson
import sqlalchemy as sa
from sqlalchemy import BindParameter, ColumnElement, Connection, Dialect, Row, bindparam, column, func, type_coerce
from sqlalchemy.engine.result import SimpleResultMetaData
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import JSON, Text, TypeEngine

from project_service.kit import database
from project_service.kit.database import Key, Timestamp, db


class Prepared(Protocol):
    """A statement that waits for its values."""

    def __call__(self, **values: Any) -> Found:
        """Send it within the current unit of work. What the session has not flushed yet is not seen."""


def prepared(make: Callable[[], Any]) -> Prepared:
    """Keep what ``make`` returns; its values are ``bindparam``, or the columns of an ``INSERT`` without any."""
    made: dict[str, Ready] = {}

    @functools.wraps(make)
    def send(**values: Any) -> Found:
        name = db.engine.dialect.name
        if name not in made:
            made[name] = Ready(make())
        return made[name].send(values)

    return send


class Found(list[Row[Any]]):
    """The rows that a statement gave."""

    def first(self) -> Row[Any] | None:
        """The first row, if there is any."""
        return self[0] if self else None

    def scalar(self) -> Any:
        """The first value of the first row, if there is any."""
        return self[0][0] if self else None

    def scalar_one(self) -> Any:
        """The only value of the only row."""
        [[value]] = self
        return value


class Bind:
    """A place of a statement that takes a value."""

    __slots__ = ("default", "is_required", "key", "name", "process")

    def __init__(self, name: str, parameter: BindParameter[Any], dialect: Dialect) -> None:
        self.name = name
        self.key = parameter.key
        self.is_required = parameter.required
        self.default = parameter.effective_value
        self.process = _impl(parameter.type, dialect).bind_processor(dialect)

    def given(self, values: Mapping[str, Any]) -> Any:
        """Its value among these, as the driver takes it."""
        value = values[self.key] if self.is_required else values.get(self.key, self.default)
        return value if self.process is None else self.process(value)


class Ready:
    """A statement that is compiled when it is first sent, and from then on handed to the driver as it is.

    The library finds out each time what kind of statement it has, and keeps account of what may be asked of its
    result: that takes longer than many a statement itself. Text, values, their types and errors are the library's.
    """

    def __init__(self, statement: Any) -> None:
        self.statement = statement
        self.cache: dict[Any, Any] = {}
        self.compiled: SQLCompiler | None = None
        self.is_plain = False
        self.binds: list[Bind] = []
        self.row: Callable[[Any], Row[Any]] | None = None

    def send(self, values: Mapping[str, Any]) -> Found:
        """Carry it out within the current unit of work; what the session has not flushed yet is not seen."""
        connection = database.connection()
        compiled = self.compiled or self._compile(connection.dialect, values)
        if not self.is_plain:
            result = connection.execute(self.statement, values, execution_options={"compiled_cache": self.cache})
            return Found(result.all() if result.returns_rows else ())
        given = [bind.given(values) for bind in self.binds]
        if compiled.positional:
            return self._carried_out(connection, compiled, tuple(given))
        names = (bind.name for bind in self.binds)
        return self._carried_out(connection, compiled, dict(zip(names, given, strict=True)))

    def _carried_out(self, connection: Connection, compiled: SQLCompiler, parameters: Any) -> Found:
        text, listeners = compiled.string, cast("Any", connection.dispatch)
        cursor = connection.connection.cursor()
        try:
            for noticed in listeners.before_cursor_execute:
                noticed(connection, cursor, text, parameters, None, False)
            cursor.execute(text, parameters)
            if not compiled._result_columns:
                return Found()
            row = self.row or self._shape(compiled, connection.dialect, cursor.description)
            return Found(map(row, cursor.fetchall()))
        except Exception as error:  # noqa: BLE001  # raised again, as an error of the library
            connection._handle_dbapi_exception(error, text, parameters, cursor, None)
        finally:
            cursor.close()

    def _compile(self, dialect: Dialect, values: Mapping[str, Any]) -> SQLCompiler:
        compiled: SQLCompiler = self.statement.compile(dialect=dialect, column_keys=list(values))
        self.is_plain = not (
            compiled.literal_execute_params
            or compiled.post_compile_params
            or compiled.insert_prefetch
            or compiled.update_prefetch
            or compiled.escaped_bind_names
        )
        names = compiled.positiontup if compiled.positiontup is not None else compiled.binds
        self.binds = [Bind(name, compiled.binds[name], dialect) for name in names]
        self.compiled = compiled
        return compiled

    def _shape(self, compiled: SQLCompiler, dialect: Dialect, description: Any) -> Callable[[Any], Row[Any]]:
        columns = compiled._result_columns
        metadata = SimpleResultMetaData([column.keyname for column in columns])
        processors = [
            _impl(column.type, dialect).result_processor(dialect, told[1])
            for column, told in zip(columns, description, strict=True)
        ]
        needed = processors if any(processors) else None
        self.row = functools.partial(Row, metadata, needed, metadata._key_to_index)
        return self.row


def _impl(kind: TypeEngine[Any], dialect: Dialect) -> TypeEngine[Any]:
    return kind.dialect_impl(dialect)


class Rows:
    """Many rows that travel as one value, whose making ``packed`` is: what is selected from for an ``INSERT``.

    A value of its own for each column of each row costs more than the database takes for all of them.
    """

    def __init__(self, parameter: str) -> None:
        self._is_sqlite = db.engine.dialect.name == "sqlite"
        packed = bindparam(parameter, type_=Text)
        found = func.json_each(packed) if self._is_sqlite else func.json_array_elements(sa.cast(packed, JSON))
        self._row = found.table_valued(column("value", JSON)).c.value

    def text(self, name: str) -> ColumnElement[Any]:
        """A text, or nothing."""
        found: ColumnElement[Any] = self._row[name].as_string()
        return found

    def whole(self, name: str) -> ColumnElement[Any]:
        """A whole number, or nothing."""
        return sa.cast(self.text(name), Key)

    def moment(self, name: str) -> ColumnElement[Any]:
        """A moment, or nothing."""
        if self._is_sqlite:
            return type_coerce(self.text(name), Timestamp)
        return sa.cast(self.text(name) + "Z", Timestamp)

    def json(self, name: str) -> ColumnElement[Any]:
        """Nested data, letter by letter as it was packed."""
        return type_coerce(self.text(name), JSON) if self._is_sqlite else sa.cast(self.text(name), JSON)


def packed(rows: Iterable[dict[str, Any]]) -> str:
    """Rows as one value for ``Rows``."""
    return orjson.dumps([{name: _plain(value) for name, value in row.items()} for row in rows]).decode()


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat(" ", "microseconds")[:26]
    return orjson.dumps(value).decode() if isinstance(value, dict | list) else value
