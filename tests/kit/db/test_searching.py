"""Finding words in names (namespaces reference, section 3)."""

from __future__ import annotations

import pytest
from sqlalchemy import literal, select, union_all

from project_service.kit.db import searching
from project_service.kit.db.session import db

ROWS = [
    ("acme", "Acme Tools"),
    ("a_c", "Under_score"),
    ("100%", "Percent"),
    ("back", "back\\slash"),
    ("ab", "Short"),
    ("tools", "The Workshop"),
]


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("", []),
        ("ab", []),
        ("acme tools", ["acme", "tools"]),
        ("  acme   of tools ", ["acme", "tools"]),
        ('"acme tools" x', ["acme tools"]),
        ('"ab" acme', ["acme"]),
        ('"acme', ['"acme']),
    ],
)
def test_a_query_is_split_into_words(query, terms):
    assert searching.terms(query) == terms


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("acme", ["acme"]),
        ("ACME", ["acme"]),
        ("cme too", ["acme"]),
        ("tools acme", ["acme"]),
        ('"acme tools"', ["acme"]),
        ('"tools acme"', []),
        ("tools workshop", []),
        ("tools", ["acme", "tools"]),
        ("ab", ["ab"]),
        ("AB", ["ab"]),
        ("a", []),
        ("ab acme", ["acme"]),
        ("r_s", ["a_c"]),
        ("r%s", []),
        ("00%", ["100%"]),
        ("k\\s", ["back"]),
        ("xyz", []),
    ],
)
def test_every_word_must_match_one_of_the_columns(query, found, app):
    made = (select(literal(path).label("path"), literal(name).label("name")) for path, name in ROWS)
    rows = union_all(*made).subquery()

    statement = select(rows.c.path).where(searching.contains(query, rows.c.path, rows.c.name)).order_by(rows.c.path)

    assert list(db.session.scalars(statement)) == found
