"""Lists of rows with large texts, which are loaded one by one while the list is serialized.

A page of 100 rows may have a text of a million characters in each. ``load`` reads texts with the rows up to
``MAX_LISTED_CHARACTERS``; longer ones are left to be loaded when they are read (the API), or stay shortened (pages).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Annotated, Any

from sqlalchemy import JSON, Column, Select, String, cast, func, inspect
from sqlalchemy.orm import InstrumentedAttribute, defer, mapped_column
from sqlalchemy.orm.attributes import set_committed_value

from project_service.kit import exact_json
from project_service.kit.db.session import db

MAX_LISTED_CHARACTERS = 16_384
_LARGE = "large_text"
_DEFERRED = "deferred_texts"  # the key in the session's ``info``

LargeText = Annotated[str, mapped_column(info={_LARGE: True})]
LargeJson = Annotated[dict[str, Any], mapped_column(JSON, info={_LARGE: True})]  # only shortened texts are cut


def load(statement: Select[Any], *, shorten: bool = False) -> list[Any]:
    """Return the first column or entity of the rows; with ``shorten`` long texts are cut, else read when used.

    The attribute ``shortened`` of a row names its texts that were cut.
    """
    [described, *_] = statement.column_descriptions
    entity = described.get("entity") if described["expr"] is described.get("entity") else None
    columns = _large_columns(entity) if entity is not None else ()
    if not columns:
        return list(db.session.scalars(statement))
    beginnings = [func.substr(cast(column, String), 1, MAX_LISTED_CHARACTERS + 1) for column in columns]
    listed = db.session.execute(statement.options(*map(defer, columns)).add_columns(*beginnings))
    rows = []
    for row, *texts in listed:
        for column, text in zip(columns, texts, strict=True):
            if text is None or len(text) <= MAX_LISTED_CHARACTERS:
                is_json = text is not None and isinstance(column.type, JSON)
                set_committed_value(row, column.key, exact_json.loads(text) if is_json else text)
            elif shorten and not isinstance(column.type, JSON):
                set_committed_value(row, column.key, text[:MAX_LISTED_CHARACTERS])
                row.shortened = (*getattr(row, "shortened", ()), column.key)
            else:
                deferred_texts().append((row, column.key))
        rows.append(row)
    return rows


def deferred_texts() -> list[tuple[Any, str]]:
    """The rows of this unit of work with long texts that are loaded when they are read, and the names of the texts."""
    deferred: list[tuple[Any, str]] = db.session.info.setdefault(_DEFERRED, [])
    return deferred


def release() -> None:
    """Forget the long texts that were read since the last call; they are loaded again when they are read."""
    for row, name in deferred_texts():
        state = inspect(row, raiseerr=False)
        if state is not None and name not in state.unloaded:
            db.session.expire(row, [name])


@functools.cache
def _large_columns(entity: Any) -> tuple[InstrumentedAttribute[Any], ...]:
    return tuple(_large_attributes(entity))


def _large_attributes(entity: Any) -> Iterator[InstrumentedAttribute[Any]]:
    for attribute in inspect(entity).mapper.column_attrs:
        column = attribute.columns[0]
        if isinstance(column, Column) and column.info.get(_LARGE):
            yield getattr(entity, attribute.key)
