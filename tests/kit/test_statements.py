"""Statements that are made once, and rows that travel as one value."""

from __future__ import annotations

import datetime as dt

import pytest
from sqlalchemy import bindparam, select

from project_service.domain.users import User
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.db.statements import Rows, packed, prepared
from tests.worlds import ADA, MAX

pytestmark = pytest.mark.both_databases
MOMENT = dt.datetime(2026, 3, 4, 5, 6, 7, 123456, tzinfo=dt.timezone(dt.timedelta(hours=2)))


def test_a_prepared_statement_is_made_once_and_sent_with_other_values(people):
    made = []

    @prepared
    def names():
        made.append(1)
        return select(User.id).where(User.username == bindparam("name"))

    found = [names(name=name).scalar() for name in (ADA, MAX, "nobody")]

    assert (found, made) == ([people[ADA].id, people[MAX].id, None], [1])


def test_it_is_part_of_the_unit_of_work(people):
    @prepared
    def names():
        return select(User.name).where(User.username == bindparam("name"))

    with unit_of_work():
        db.session.merge(people[ADA]).name = "Ada Lovelace"
        db.session.flush()
        inside = names(name=ADA).scalar()

    assert inside == "Ada Lovelace"


def test_packed_rows_come_out_as_they_went_in(app):
    @prepared
    def rows():
        row = Rows("rows")
        return select(row.text("word"), row.whole("number"), row.moment("when"), row.json("nested"))

    given = [
        {"word": 'a "b" \\ 😀', "number": 2**53, "when": MOMENT, "nested": {"a": [1.0, None, "\\u0000"], "b": 1e300}},
        {"word": None, "number": None, "when": None, "nested": [1, "zwölf"]},
        {"word": "", "number": -1, "when": MOMENT.replace(microsecond=0), "nested": {}},
    ]

    found = [tuple(row) for row in rows(rows=packed(given))]

    assert found == [tuple(row.values()) for row in given]


def test_no_rows_are_no_rows(app):
    @prepared
    def rows():
        return select(Rows("rows").text("word"))

    assert rows(rows=packed([])) == []
