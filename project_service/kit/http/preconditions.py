"""``If-Unmodified-Since``: conditional deletion (common reference, section 13)."""

from __future__ import annotations

import datetime as dt
from typing import Any, Protocol, TypeVar

from flask import request

from project_service.kit.http import fields
from project_service.kit.http.errors import PreconditionFailed


class HasUpdatedAt(Protocol):
    """A row with the time of its last change."""

    updated_at: Any


Row = TypeVar("Row", bound=HasUpdatedAt)


def unmodified(row: Row) -> Row:
    """Return the row, or raise ``PreconditionFailed`` if it changed after the time in the header.

    A header that is not a date is ignored.
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
