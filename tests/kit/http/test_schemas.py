"""How parameters are loaded through schemas, and what is said when they do not fit (common reference, section 4)."""

from __future__ import annotations

from typing import ClassVar

import pytest

from project_service.kit.http import fields
from project_service.kit.http.errors import BadParameters
from project_service.kit.http.schemas import Embedded, Schema, load


class FirstSchema(Schema):
    key = fields.String(required=True)
    value = fields.String(required=True)
    active = fields.Boolean(default=False)


class SecondSchema(Schema):
    page = fields.Integer(default=1)


class ManySchema(Schema):
    exclusive = (("user_id", "username"),)
    at_least_one = ("name", "path")
    counts_too = ("title",)
    exactly_one = ("a", "b")
    all_or_none = ("extern_uid", "provider")

    user_id = fields.Integer()
    username = fields.String()


class InsteadSchema(Schema):
    alternatives: ClassVar[dict[str, str]] = {"user_id": "username"}

    user_id = fields.Integer(required=True)
    username = fields.String()


def refusal(*schemas, **parameters):
    with pytest.raises(BadParameters) as refused:
        load(*schemas, parameters=parameters)
    return refused.value.message


def test_errors_are_collected_in_the_order_of_declaration():
    text = refusal(FirstSchema(), SecondSchema(), page="a", active="maybe")

    assert text == "key is missing, value is missing, active is invalid, page is invalid"


def test_undeclared_parameters_are_ignored():
    loaded = load(FirstSchema(), SecondSchema(), parameters={"key": "a", "value": "b", "colour": "red"})

    assert loaded == {"key": "a", "value": "b", "active": False, "page": 1}


FINE = {"name": "n", "a": "1"}


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        (FINE | {"user_id": 1, "username": "max"}, "user_id, username are mutually exclusive"),
        ({"a": "1"}, "name, path are missing, at least one parameter must be provided"),
        ({"name": "n"}, "a, b are missing, exactly one parameter must be provided"),
        (FINE | {"b": "2"}, "a, b are mutually exclusive"),
        (FINE | {"provider": "ldap"}, "extern_uid, provider provide all or none of parameters"),
        ({"name": "n", "user_id": "x"}, "user_id is invalid, a, b are missing, exactly one parameter must be provided"),
    ],
)  # fmt: skip
def test_dependent_and_exclusive_parameters_are_checked(parameters, text):
    assert refusal(ManySchema(), **parameters) == text


@pytest.mark.parametrize(
    "more", [{}, {"user_id": 1, "username": None}, {"extern_uid": "1", "provider": "ldap"}, {"title": "t", "path": ""}]
)
def test_parameters_required_together_are_checked(more):
    assert "colour" not in load(ManySchema(), parameters=FINE | more)


@pytest.mark.parametrize("name", ["path", "title"])
def test_one_of_several_parameters_is_required(name):
    assert load(ManySchema(), parameters={"a": "1", name: ""}) == {}


def test_another_parameter_may_replace_a_required_one():
    assert load(InsteadSchema(), parameters={"username": "max"}) == {"username": "max"}
    assert refusal(InsteadSchema()) == "user_id is missing"
    assert refusal(InsteadSchema(), username="max", user_id="x") == "user_id is invalid"


class OuterSchema(Schema):
    left_out = Embedded(SecondSchema)
    shown = Embedded(SecondSchema, keep_none=True)
    at = fields.Moment()
    on = fields.Day()
    fixed = fields.Constant(None)


def test_a_missing_part_is_left_out_or_null():
    dumped = OuterSchema().dump({"left_out": None, "shown": None, "at": None, "on": None})

    assert dumped == {"shown": None, "at": None, "on": None, "fixed": None}
