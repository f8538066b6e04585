"""Finding words in names, as the search fields of the real product do (namespaces reference, section 3)."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_

SHORTEST_TERM = 3
_TERM = re.compile(r'"([^"]*)"|(\S+)')


def terms(query: str) -> list[str]:
    """The words of a query; quoted text stays one. Words under three letters count only when there is no other."""
    found = [(quoted or word).strip() for quoted, word in _TERM.findall(query)]
    return [term for term in found if len(term) >= SHORTEST_TERM]


def contains(query: str, *columns: Any) -> ColumnElement[bool]:
    """Whether one of the columns contains every word; a query of short words only has to equal a whole column.

    ``%``, ``_`` and the backslash are literal.
    """
    squeezed = " ".join(query.split())
    words = terms(squeezed)
    if not words:
        return or_(*(func.lower(column) == squeezed.lower() for column in columns))
    return or_(
        *(and_(*(func.lower(column).contains(word.lower(), autoescape=True) for word in words)) for column in columns)
    )
