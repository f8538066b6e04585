"""Compiled schemas give exactly what marshmallow gives."""

from __future__ import annotations

import datetime as dt
import enum
from types import SimpleNamespace

import marshmallow
import pytest

from project_service.kit.http import fields
from project_service.kit.http.schemas import Inside, Schema


class Level(enum.IntEnum):
    LOW = 1


class InnerSchema(Schema):
    id = fields.Integer()
    name = fields.String()


class Shouted(fields.String):
    def _serialize(self, value, attr, obj, **options):
        return f"{attr}: {value}".upper()


class HookedSchema(Schema):
    id = fields.Integer()

    @marshmallow.post_dump
    def mark(self, data, **_options):
        return data | {"marked": True}


class EverySchema(Schema):
    text = fields.String()
    number = fields.Integer()
    as_text = fields.Integer(as_string=True)
    flag = fields.Boolean()
    moment = fields.Moment()
    day = fields.Day()
    words = fields.Array(fields.String())
    numbers = fields.Array(fields.Integer())
    inner = Inside(InnerSchema)
    kept = Inside(InnerSchema, keep_none=True)
    hooked = Inside(HookedSchema, keep_none=True)
    inners = fields.Array(Inside(InnerSchema))
    renamed = fields.String(attribute="text", data_key="@renamed", dump_only=True)
    below = fields.String(attribute="inner.name", dump_only=True)
    computed = fields.Computed(lambda row: row.number)
    sometimes = fields.When(lambda row: row.flag, lambda row: row.text)
    constant = fields.Constant([1])
    left_out = fields.Computed(lambda _row: marshmallow.missing)
    anything = fields.Anything()
    shouted = Shouted(attribute="text", dump_only=True)
    defaulted = fields.String(dump_default="otherwise")


INNER = SimpleNamespace(id=1, name="ada")
FULL = {
    "text": "väl",
    "number": 5,
    "as_text": 7,
    "flag": True,
    "moment": dt.datetime(2021, 1, 20, 9, 15, 30, 123456, dt.timezone(dt.timedelta(hours=1))),
    "day": dt.date(2021, 1, 20),
    "words": ["a", None],
    "numbers": ["1", 2],
    "inner": INNER,
    "kept": INNER,
    "hooked": INNER,
    "inners": [INNER, None],
    "anything": {"a": [1]},
    "defaulted": "said",
}
ROWS = {
    "full": FULL,
    "nothing": dict.fromkeys(FULL),
    "of other kinds": FULL | {"text": b"bytes", "number": Level.LOW, "flag": 0, "words": ("x",), "inner": {"id": "3"}},
    "parts": {"number": 1, "flag": False, "text": None},
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_row_looks_as_marshmallow_shows_it(row):
    thing, schema = SimpleNamespace(**row), EverySchema()

    dumped = schema.dump(thing)
    plain = marshmallow.Schema._serialize(schema, thing)

    assert list(dumped.items()) == list(plain.items())


def test_a_row_that_is_read_by_key_is_left_to_marshmallow():
    assert InnerSchema().dump({"id": "1"}) == {"id": 1}


def test_parts_of_a_schema_are_shown_in_part():
    assert InnerSchema(only=("name",)).dump(INNER) == {"name": "ada"}
    assert InnerSchema(exclude=("name",)).dump(INNER) == {"id": 1}


def test_what_cannot_be_shown_is_an_error_in_both():
    with pytest.raises(ValueError, match="invalid literal"):
        InnerSchema().dump(SimpleNamespace(id="x", name="ada"))


@pytest.mark.both_databases
def test_every_answer_of_the_api_looks_as_marshmallow_shows_it(app, furnished, monkeypatch):
    """All schemas over all rows that the live route table shows."""
    from tests.surveys import survey

    compared = set()

    def both(self, obj, *, many=False):
        dumped = compiled(self, obj, many=many)
        if not many:
            plain = marshmallow.Schema._serialize(self, obj)
            assert list(dumped.items()) == list(plain.items())
            compared.add(type(self))
        return dumped

    compiled = Schema._serialize
    monkeypatch.setattr(Schema, "_serialize", both)
    answers = survey(app, furnished)

    assert [path for path, (status, _) in answers.items() if status >= 500] == []
    assert len(compared) > 20
