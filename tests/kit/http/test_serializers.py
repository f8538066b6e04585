"""Schemas serialize exactly as marshmallow does."""

from __future__ import annotations

import datetime as dt
import enum
from types import SimpleNamespace

import marshmallow
import orjson
import pytest

from project_service.kit import clock
from project_service.kit.http import fields
from project_service.kit.http.schemas import Embedded, Schema


class Level(enum.IntEnum):
    LOW = 1


class InnerSchema(Schema):
    id = fields.Integer()
    name = fields.String()


class Shouted(fields.String):
    def _serialize(self, value, attr, obj, **options):
        return f"{attr}: {value}".upper()


class HookedSchema(Schema):
    dump = marshmallow.Schema.dump

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
    inner = Embedded(InnerSchema)
    kept = Embedded(InnerSchema, keep_none=True)
    hooked = Embedded(HookedSchema, keep_none=True)
    inners = fields.Array(Embedded(InnerSchema))
    renamed = fields.String(attribute="text", data_key="@renamed", dump_only=True)
    below = fields.String(attribute="inner.name", dump_only=True)
    computed = fields.Computed(lambda row: row.number)
    sometimes = fields.ConditionalField(lambda row: row.flag, lambda row: row.text)
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


def by_marshmallow(schema, value, *, many=None):
    """What marshmallow itself makes of a value, nested schemas included."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Schema, "dump", marshmallow.Schema.dump)
        return schema.dump(value, many=many)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_row_is_serialized_as_by_marshmallow(row):
    thing, schema = SimpleNamespace(**row), EverySchema()

    assert list(schema.dump(thing).items()) == list(by_marshmallow(schema, thing).items())


def all_schemas(base=Schema):
    """Every schema class of the application, itself and its subclasses."""
    for schema in base.__subclasses__():
        if schema.__module__.startswith("project_service."):
            yield schema
        yield from all_schemas(schema)


VALUES = {
    marshmallow.fields.Integer: 3,
    marshmallow.fields.Boolean: True,
    marshmallow.fields.DateTime: clock.now(),
    marshmallow.fields.Date: clock.today(),
    marshmallow.fields.Dict: {"a": 1},
}


def value_of(field):
    """A value that an object might have for a field."""
    if isinstance(field, marshmallow.fields.List):
        return [value_of(field.inner), None]
    if isinstance(field, marshmallow.fields.Nested):
        return [object_of(field.schema)] if field.many or field.schema.many else object_of(field.schema)
    return next((value for kind, value in VALUES.items() if isinstance(field, kind)), "text")


def object_of(schema):
    """An object with the attributes of all fields, whose computed fields give a fixed value."""
    attributes = {}
    for name, field in schema.dump_fields.items():
        if isinstance(field, fields.Computed):
            field.function = lambda obj: [type(obj).__name__]
        if isinstance(field, fields.ConditionalField):
            field.condition = bool
        first, *rest = (field.attribute or name).split(".")
        if rest:
            vars(attributes.setdefault(first, SimpleNamespace()))[rest[-1]] = value_of(field)
        else:
            attributes[first] = value_of(field)
    return SimpleNamespace(**attributes)


def test_every_schema_of_the_application_serializes_as_marshmallow_does(app):
    compared = 0
    for schema in (schema_class() for schema_class in all_schemas()):
        full = object_of(schema)
        empty = SimpleNamespace(**dict.fromkeys(vars(full)))
        for thing in (full, empty, SimpleNamespace()):
            assert list(schema.dump(thing).items()) == list(by_marshmallow(schema, thing).items()), type(schema)
            compared += 1
    assert compared > 300


def test_mappings_are_serialized_by_marshmallow():
    assert InnerSchema().dump({"id": "1"}) == {"id": 1}


def test_only_and_exclude_select_fields():
    assert InnerSchema(only=("name",)).dump(INNER) == {"name": "ada"}
    assert InnerSchema(exclude=("name",)).dump(INNER) == {"id": 1}


def test_values_that_cannot_be_serialized_raise_in_both():
    with pytest.raises(ValueError, match="invalid literal"):
        InnerSchema().dump(SimpleNamespace(id="x", name="ada"))


@pytest.mark.both_databases
def test_every_api_response_is_serialized_as_by_marshmallow(app, filled, monkeypatch):
    """All schemas over all rows that the live route table shows."""
    from tests.support.route_survey import survey

    compared = set()

    def compare(self, obj, *, many=None):
        dumped = dump(self, obj, many=many)
        assert orjson.dumps(dumped) == orjson.dumps(by_marshmallow(self, obj, many=many))
        compared.add(type(self))
        return dumped

    dump = Schema.dump
    monkeypatch.setattr(Schema, "dump", compare)
    responses = survey(app, filled)

    assert [path for path, (status, _) in responses.items() if status >= 500] == []
    assert len(compared) > 20
