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
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.engine.result import SimpleResultMetaData
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import JSON, Text, TypeEngine

from project_service.kit import bigint_json
from project_service.kit.db.base import Key, Timestamp
from project_service.kit.db.session import db


class Prepared(Protocol):
    """A statement that waits for its values."""

    def __call__(self, **values: Any) -> Found:
        """Send it within the current unit of work. What the session has not flushed yet is not seen."""


def prepared(make: Callable[[], Any]) -> Prepared:
    """Keep what ``make`` returns; its values are ``bindparam``."""
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

    __slots__ = ("default", "is_required", "key", "process")

    def __init__(self, parameter: BindParameter[Any], dialect: Dialect) -> None:
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
        self._statement = statement
        self._compiled: Compiled | None = None
        self._is_incomplete = False
        self._cache: dict[Any, Any] = {}

    def send(self, values: Mapping[str, Any]) -> Found:
        """Carry it out within the current unit of work; what the session has not flushed yet is not seen."""
        connection, statement = db.session.connection(), self._statement
        if self._compiled is not None:  # by another thread perhaps, after which there is no statement
            return self._compiled.send(connection, values)
        if not self._is_incomplete:
            compiled: SQLCompiler = statement.compile(dialect=connection.dialect)
            if _is_complete(compiled):
                self._compiled = Compiled(compiled, connection.dialect)
                self._statement = None  # it takes ten times the memory of what was made of it
                return self._compiled.send(connection, values)
            self._is_incomplete = True
        result = connection.execute(statement, values, execution_options={"compiled_cache": self._cache})
        return Found(result.all() if result.returns_rows else ())


class Compiled:
    """What is left of a statement: its text, the places that take values, and how its rows are read."""

    def __init__(self, compiled: SQLCompiler, dialect: Dialect) -> None:
        names = compiled.bind_names.values() if compiled.positiontup is None else compiled.positiontup
        self._names = tuple(names) if compiled.positiontup is None else None
        self._binds = [Bind(compiled.binds[name], dialect) for name in names]
        self._text = compiled.string
        # bytes know their hash, by which PostgreSQL's driver finds what it has prepared; SQLite's takes texts only
        self._sent = self._text if dialect.name == "sqlite" else self._text.encode()
        self._columns = [(column.keyname, _impl(column.type, dialect)) for column in compiled._result_columns]
        self._row: Callable[[Any], Row[Any]] | None = None

    def send(self, connection: Connection, values: Mapping[str, Any]) -> Found:
        """Carry it out."""
        parameters: Any = tuple(bind.given(values) for bind in self._binds)
        if self._names is not None:
            parameters = dict(zip(self._names, parameters, strict=True))
        text, cursor = self._text, connection.connection.cursor()
        try:
            tell(connection, cursor, text, parameters)
            cursor.execute(self._sent, parameters)
            if not self._columns:
                return Found()
            row = self._row or self._shape(connection.dialect, cursor.description)
            return Found(map(row, cursor.fetchall()))
        except Exception as error:  # noqa: BLE001  # raised again, as an error of the library
            connection._handle_dbapi_exception(error, text, parameters, cursor, None)
        finally:
            cursor.close()

    def _shape(self, dialect: Dialect, description: Any) -> Callable[[Any], Row[Any]]:
        metadata = SimpleResultMetaData([name for name, _ in self._columns])
        told = zip(self._columns, description, strict=True)
        processors = [kind.result_processor(dialect, found[1]) for (_, kind), found in told]
        needed = processors if any(processors) else None
        self._row = functools.partial(Row, metadata, needed, metadata._key_to_index)
        return self._row


def tell(connection: Connection, cursor: DBAPICursor, text: str, parameters: Any) -> None:
    """Tell those who listen what is about to be sent past the library, as it does itself."""
    for noticed in cast("Any", connection.dispatch).before_cursor_execute:
        noticed(connection, cursor, text, parameters, None, False)


def _is_complete(compiled: SQLCompiler) -> bool:
    """Whether nothing of the text, or of the values, is only made when the statement is sent."""
    return not (
        compiled.literal_execute_params
        or compiled.post_compile_params
        or compiled.insert_prefetch
        or compiled.update_prefetch
        or compiled.escaped_bind_names
    )


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
    return bigint_json.dumps(value).decode() if isinstance(value, dict | list) else value
