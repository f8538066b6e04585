"""Finding words in names, as the search fields of the real product do (namespaces reference, section 3)."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import ColumnElement, String, and_, or_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction


class folded(GenericFunction[str]):  # noqa: N801  # named as the function it is in SQL
    """Text in lower case, also beyond ASCII; SQLite's own ``lower`` stops there."""

    inherit_cache = True
    type = String()


@compiles(folded, "postgresql")
def _lower(element: Any, compiler: Any, **options: Any) -> str:
    return f"lower({compiler.process(element.clauses, **options)})"


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
        return or_(*(folded(column) == squeezed.lower() for column in columns))
    return or_(
        *(and_(*(folded(column).contains(word.lower(), autoescape=True) for word in words)) for column in columns)
    )
