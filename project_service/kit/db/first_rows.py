"""The first rows of each of many parents, by an index that begins with the parent: for lists across projects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, select, true
from sqlalchemy.orm import aliased

from project_service.kit.db.base import Model
from project_service.kit.db.session import db


def first_of_each(
    parents: Select[int],
    model: type[Model],
    parent: Any,
    conditions: Sequence[Any],
    order: Sequence[ColumnElement[Any]],
    count: int,
) -> Select[int]:
    """Select the ids of the first ``count`` rows of each parent, in an order that its index has.

    The work is bounded by the number of parents and ``count``, however many rows there are. PostgreSQL runs the inner
    statement for each parent; SQLite, which has no ``LATERAL``, looks up its ids.
    """
    each = parents.subquery()
    first = select(model.id).where(parent == each.c[0], *conditions).order_by(*order).limit(count).correlate(each)
    if db.engine.dialect.name == "sqlite":
        row = aliased(model)
        return select(row.id).select_from(each.join(row, row.id.in_(first)))
    lateral = first.lateral()
    return select(lateral.c.id).select_from(each.join(lateral, true()))
