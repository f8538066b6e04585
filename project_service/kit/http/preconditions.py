"""``If-Unmodified-Since``: delete only what has not changed since the caller looked (common behaviour, section 13)."""

from __future__ import annotations

import datetime as dt
from typing import Any, Protocol, TypeVar

from flask import request

from project_service.kit.http import fields
from project_service.kit.http.errors import PreconditionFailed


class Dated(Protocol):
    """A row that knows when it last changed."""

    updated_at: Any


Row = TypeVar("Row", bound=Dated)


def unmodified(row: Row) -> Row:
    """Hand the row back, or raise ``PreconditionFailed`` if it changed after the moment of the header.

    A header that is no date is ignored.
    """
    moment = _since(request.headers.get("If-Unmodified-Since", ""))
    if moment is not None and row.updated_at > moment:
        raise PreconditionFailed
    return row


def _since(text: str) -> dt.datetime | None:
    try:
        return fields.parse_date(text)
    except ValueError:
        return None
