"""Search for words in columns, like the search fields of GitLab (namespaces reference, section 3)."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import ColumnElement, String, and_, or_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

from project_service.kit.db.session import begin_search


class folded(GenericFunction[str]):  # noqa: N801  # named as the function it is in SQL
    """Lower case of a text, including non-ASCII letters, which SQLite's own ``lower`` leaves unchanged."""

    inherit_cache = True
    type = String()


@compiles(folded, "postgresql")
def _lower(element: Any, compiler: Any, **options: Any) -> str:
    return f"lower({compiler.process(element.clauses, **options)})"


def has_part(part: str, *columns: Any) -> ColumnElement[bool]:
    """Return the condition that one column contains a text as it is, in any case; with a deadline like ``contains``."""
    begin_search()
    return or_(*(folded(column).contains(part.lower(), autoescape=True) for column in columns))


class TooManyWords(Exception):
    """A query has more words than are compared; SQLite accepts some hundreds of conditions at most."""


MAX_WORDS = 64
MIN_TERM_LENGTH = 3
_TERM = re.compile(r'"([^"]*)"|(\S+)')


def terms(query: str) -> list[str]:
    """Return the words of a query of at least ``MIN_TERM_LENGTH`` characters; a quoted text is one word.

    Raises:
        TooManyWords: there are more than ``MAX_WORDS``.

    """
    words = [(quoted or word).strip() for quoted, word in _TERM.findall(query)]
    long = [term for term in words if len(term) >= MIN_TERM_LENGTH]
    if len(long) > MAX_WORDS:
        raise TooManyWords
    return long


def contains(query: str, *columns: Any) -> ColumnElement[bool]:
    """Return the condition that one column contains every word, or equals a query that has short words only.

    ``%``, ``_`` and the backslash are literal. The statements that follow in the request have a deadline.
    """
    begin_search()
    normalized = " ".join(query.split())
    words = terms(normalized)
    if not words:
        return or_(*(folded(column) == normalized.lower() for column in columns))
    return or_(
        *(and_(*(folded(column).contains(word.lower(), autoescape=True) for word in words)) for column in columns)
    )
