"""How a parameter becomes a value (common reference, sections 3 and 4)."""

from __future__ import annotations

import datetime as dt
import enum
from contextlib import suppress
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from project_service.kit.http import fields
from project_service.kit.http.errors import BadParameters
from project_service.kit.http.parameters import nest
from project_service.kit.http.schemas import Nested, Schema, load


class Said(enum.Enum):
    """What is no value that a client sends or gets."""

    INVALID = enum.auto()
    ABSENT = enum.auto()


INVALID, ABSENT = Said


def loaded(field, value=ABSENT, name="x"):
    schema = Schema.from_dict({name: field})()
    return load(schema, parameters={} if value is ABSENT else {name: value})


def refusal(field, value=ABSENT, name="x"):
    with pytest.raises(BadParameters) as refused:
        loaded(field, value, name)
    return refused.value.message


def check(field, value, expected):
    if expected is INVALID:
        assert refusal(field, value) == "x is invalid"
    else:
        found = loaded(field, value)["x"]
        assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", "text"),
        ("", ""),
        (" a ", " a "),
        (5, "5"),
        (-7, "-7"),
        (1.5, "1.5"),
        (True, "true"),
        (False, "false"),
        (None, None),
        ([], INVALID),
        (["a"], INVALID),
        ({}, INVALID),
        ({"a": "b"}, INVALID),
    ],
)
def test_text_fields(value, expected):
    check(fields.String(), value, expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        (0, 0),
        (-5, -5),
        ("5", 5),
        ("+5", 5),
        ("-5", -5),
        ("007", 7),
        (2**63 - 1, 2**63 - 1),
        ("", None),
        (None, None),
        ("abc", INVALID),
        ("1.5", INVALID),
        (1.5, INVALID),
        ("1e3", INVALID),
        ("0x10", INVALID),
        ("1_000", INVALID),
        (" 5", INVALID),
        ("5\n", INVALID),
        ("\N{ARABIC-INDIC DIGIT FIVE}", INVALID),
        ("--5", INVALID),
        (True, INVALID),
        ([5], INVALID),
        ({"a": 5}, INVALID),
        (2**63, INVALID),
        (-(2**63), INVALID),
        ("9" * 30, INVALID),
    ],
)  # fmt: skip
def test_integer_fields(value, expected):
    check(fields.Integer(), value, expected)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("0" * 5000 + "7", 7),
        (str(2**63 - 1), 2**63 - 1),
        (str(2**63), 2**63 - 1),
        ("1" * 5000, 2**63 - 1),
        ("", None),
        ("-1", None),
        ("1.5", None),
        (" 1", None),
        ("\N{ARABIC-INDIC DIGIT FIVE}", None),
        ("\N{SUPERSCRIPT TWO}", None),
    ],
)
def test_integers_of_any_length(text, number):
    assert fields.whole_number(text) == number


SPELLINGS = {True: ["t", "true", "on", "yes", "y"], False: ["f", "false", "off", "no", "n"]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (each, meant)
        for meant, words in SPELLINGS.items()
        for word in words
        for each in (word, word.title(), word.upper())
    ],
)
def test_spellings_of_boolean_fields(value, expected):
    check(fields.Boolean(), value, expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True),
        (False, False),
        (1, True),
        (0, False),
        ("1", True),
        ("0", False),
        ("", None),
        (None, None),
        (2, INVALID),
        ("2", INVALID),
        (-1, INVALID),
        (1.0, INVALID),
        ("tRUE", INVALID),
        (" true", INVALID),
        ("enabled", INVALID),
        ([], INVALID),
        ([True], INVALID),
        ({}, INVALID),
    ],
)
def test_boolean_fields(value, expected):
    check(fields.Boolean(), value, expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2021-01-20", dt.date(2021, 1, 20)),
        ("2021-1-2", dt.date(2021, 1, 2)),
        ("2021-01-20T23:00:00-05:00", dt.date(2021, 1, 20)),
        ("Jan 20 2021", dt.date(2021, 1, 20)),
        ("Wed, 20 Jan 2021 08:15:30 GMT", dt.date(2021, 1, 20)),
        ("2021-01-01T00:00", dt.date(2021, 1, 1)),
        ("08:15", INVALID),
        ("5pm", INVALID),
        ("Friday", INVALID),
        ("", None),
        (None, None),
        ("2021-13-01", INVALID),
        ("2021-02-30", INVALID),
        ("tomorrow", INVALID),
        ("0", INVALID),
        (20210120, INVALID),
        (True, INVALID),
        (["2021-01-20"], INVALID),
        ("1" * 65, INVALID),
    ],
)
def test_date_fields(value, expected):
    check(fields.Date(), value, expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2021-01-20T08:15:30.123Z", dt.datetime(2021, 1, 20, 8, 15, 30, 123000, dt.UTC)),
        ("2021-01-20T08:15:30", dt.datetime(2021, 1, 20, 8, 15, 30, tzinfo=dt.UTC)),
        ("2021-01-20T08:15:30+02:00", dt.datetime(2021, 1, 20, 6, 15, 30, tzinfo=dt.UTC)),
        ("2021-01-20", dt.datetime(2021, 1, 20, tzinfo=dt.UTC)),
        ("", None),
        (None, None),
        ("2021-01-20T25:00:00Z", INVALID),
        ("2021-01-20T08:15:30+99:00", INVALID),
        ("9999-12-31T23:59:59-14:00", INVALID),
        ("0001-01-01T00:00:00+14:00", INVALID),
        ("soon", INVALID),
        (1611130530, INVALID),
        ({}, INVALID),
    ],
)
def test_time_fields(value, expected):
    check(fields.DateTime(), value, expected)


@given(st.dates(min_value=dt.date(1000, 1, 1)), st.sampled_from(["%Y-%m-%d", "%Y/%m/%d", "%Y-%m-%dT00:00:00Z"]))
def test_every_date_is_read_back(day, form):
    assert loaded(fields.Date(), day.strftime(form)) == {"x": day}


offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
moments = st.datetimes(min_value=dt.datetime(1000, 1, 2), max_value=dt.datetime(9999, 12, 30), timezones=offsets)


@given(moments, st.sampled_from(["T", " "]))
def test_every_time_is_returned_in_utc(moment, between):
    found = fields.read_moment(moment.isoformat(between))

    assert (found, found.tzinfo) == (moment, dt.UTC)


@given(st.text(max_size=30) | st.from_regex(r"[0-9:TZ+. apm/-]{1,20}", fullmatch=True))
def test_any_text_is_a_time_in_utc_or_invalid(text):
    with suppress(ValueError):
        assert fields.read_moment(text).tzinfo is dt.UTC


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        ("a,b", ["a", "b"]),
        (" a , b,", ["a", "b"]),
        (["a, b", "c", ""], ["a", "b", "c"]),
        (nest([("x", "a"), ("x", "b,c"), ("x", "d")])["x"], ["a", "b", "c", "d"]),
        ("a", ["a"]),
        ("", []),
        ([], []),
        (None, None),
        (5, ["5"]),
        ({}, INVALID),
        (True, INVALID),
        (1.5, INVALID),
        ([["a"]], INVALID),
        ([{}], INVALID),
    ],
)
def test_array_fields(value, expected):
    check(fields.Array(fields.String()), value, expected)


def test_the_last_of_several_texts_counts():
    found = loaded(fields.String(), nest([("x", "a"), ("x", "b")])["x"])["x"]

    assert (found, type(found)) == ("b", str)


@pytest.mark.parametrize(
    ("value", "expected"), [("1,2", [1, 2]), (["3"], [3]), (4, [4]), ("a", INVALID), ("1,a", INVALID)]
)
def test_the_elements_of_an_array_are_coerced(value, expected):
    check(fields.Array(fields.Integer()), value, expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [({"a": "b"}, {"a": "b"}), ({}, {}), (None, None), ("a", INVALID), ("", INVALID), ([], INVALID)],
)
def test_hash_fields(value, expected):
    check(fields.Hash(), value, expected)


def test_a_file_is_not_accepted_as_text():
    stream = BytesIO(b"bytes")

    assert loaded(fields.Upload(), stream) == {"x": stream}
    assert refusal(fields.Upload(), "text") == "x is invalid"


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        (fields.String(required=True), ABSENT, "x is missing"),
        (fields.String(required=True, allow_blank=False), ABSENT, "x is missing, x is empty"),
        (fields.String(required=True, allow_blank=False), "", "x is empty"),
        (fields.String(required=True, allow_blank=False), None, "x is empty"),
        (fields.Boolean(required=True, allow_blank=False), "", "x is empty"),
        (fields.Boolean(required=True, allow_blank=False), "maybe", "x is invalid"),
        (fields.String(choices=("a", "b")), "c", "x does not have a valid value"),
        (fields.String(choices=("a", "b")), "", "x does not have a valid value"),
        (fields.String(choices=("a", "b")), "A", "x does not have a valid value"),
        (fields.Integer(choices=(0, 30, 40)), 50, "x does not have a valid value"),
        (fields.Integer(choices=(0, 30, 40)), "many", "x is invalid, x does not have a valid value"),
        (fields.Integer(forbidden=(0,)), 0, "x has a value not allowed"),
        (fields.Integer(forbidden=(0,)), "0", "x has a value not allowed"),
        (fields.Array(fields.String(choices=("a",))), "a,b", "x does not have a valid value"),
    ],
)
def test_field_errors_have_these_texts(field, value, text):
    assert refusal(field, value) == text


@pytest.mark.parametrize("value", [None, "", "text"])
def test_required_fields_need_the_key(value):
    assert loaded(fields.String(required=True), value) == {"x": value}


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (fields.Integer(default=20), ABSENT, 20),
        (fields.Integer(default=20), None, 20),
        (fields.Integer(default=20), "", 20),
        (fields.Boolean(default=False), "", False),
        (fields.String(default="*"), ABSENT, "*"),
        (fields.String(default="*"), None, "*"),
        (fields.String(default="*"), "", ""),
        (fields.Date(default=lambda: dt.date(2026, 1, 31)), ABSENT, dt.date(2026, 1, 31)),
        (fields.Array(fields.String(), default=list), None, []),
    ],
)
def test_missing_parameters_get_their_default(field, value, expected):
    assert loaded(field, value) == {"x": expected}


def test_an_absent_parameter_without_a_default_is_absent():
    assert loaded(fields.String()) == {}


def test_a_nested_parameter_is_named_with_brackets():
    class RangeSchema(Schema):
        start = fields.Integer(required=True, allow_blank=False)

    assert refusal(Nested(RangeSchema), {"start": ""}, "range") == "range[start] is empty"
    assert refusal(Nested(RangeSchema), {"start": "a"}, "range") == "range[start] is invalid"
    assert refusal(Nested(RangeSchema), {}, "range") == "range[start] is missing, range[start] is empty"
    assert refusal(Nested(RangeSchema), "text", "range") == "range is invalid"


@pytest.mark.parametrize("sent", ["text", -1, ["text"], [{}, "text"]])
def test_elements_that_are_no_objects_are_refused(sent):
    class PairSchema(Schema):
        key = fields.String()

    assert refusal(fields.Array(Nested(PairSchema)), sent, "pairs") == "pairs is invalid"


def test_names_are_bracketed_at_any_depth():
    class InnerSchema(Schema):
        c = fields.Boolean()

    class OuterSchema(Schema):
        b = Nested(InnerSchema)

    assert refusal(Nested(OuterSchema), {"b": {"c": "maybe"}}, "a") == "a[b][c] is invalid"


SCALARS = [fields.String, fields.Integer, fields.Boolean, fields.Date, fields.DateTime, fields.Hash]
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(SCALARS), anything)
def test_any_value_is_coerced_or_invalid(kind, value):
    with suppress(BadParameters):
        assert loaded(kind(), value).keys() == {"x"}
