"""JSON whose integers keep every digit."""

from __future__ import annotations

import json

import pytest

from project_service.kit import exact_json
from project_service.kit.exact_json import MAX_DIGITS


@pytest.mark.parametrize("number", [0, 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**400, int("9" * MAX_DIGITS)])
def test_integers_are_read_and_written_with_every_digit(number):
    raw = f'{{"a":[{number},"ö"]}}'

    assert exact_json.loads(raw) == exact_json.loads(raw.encode()) == {"a": [number, "ö"]}
    assert exact_json.dumps({"a": [number, "ö"]}) == raw.encode()


def test_longer_integers_are_refused_unless_converted():
    raw = "[" + "9" * (MAX_DIGITS + 1) + "]"

    assert exact_json.loads(raw, too_long=len) == [MAX_DIGITS + 1]
    with pytest.raises(ValueError, match="out of range"):
        exact_json.loads(raw)


@pytest.mark.parametrize(
    "raw",
    ["{", "NaN", "1e400", '"\\ud800"', '"a\nb"', "[1,]", "0123", b'"\xff"', b"\xef\xbb\xbf1", "[" * 100_000],
)
@pytest.mark.parametrize("long", [b"", b"18446744073709551616"])
def test_invalid_json_is_refused_in_any_case(raw, long):
    encoded = raw.encode() if isinstance(raw, str) else raw

    with pytest.raises(ValueError, match=".*"):
        exact_json.loads(b"[" + long + b"," + encoded + b"]" if long else encoded)


MANY = exact_json.MAX_EVENTS


@pytest.mark.parametrize(
    ("raw", "too_many"),
    [
        (b"[" + b"[]," * (MANY // 2) + b"[]]", False),
        (b"[" + b"[]," * MANY + b"[]]", True),
        (b"[" + b'{"":0},' * MANY + b"0]", True),
        (b"[" + b"[]," * MANY + b'"no end', True),
        (b"[" + b'["a short text"],' * (MANY // 2) + b"[]]", False),  # as sparse as exports are
        (b"[" + b'["a"],' * (MANY // 2) + b"[]]", True),
        (b"[" + b'["a"],        \n        ' * (MANY // 2) + b"[]]", True),
        (b"[" + b'["a rather long text, but too many of them"],' * MANY + b"[]]", True),
        (b'["' + b"[{,}]" * MANY + b'"]', False),
        (b'["' + b'\\"' * MANY + b'"]', False),
        (b"[" + b"9" * 2 * MANY + b"]", False),
        (b"[" + b"9" * 30 + b",-" + b"9" * 5000 + b"," + b"[]," * MANY + b"[]]", True),
        (b"[" + b"9" * 30 + b".5e" + b"9" * 30 + b',"' + b"[]," * MANY + b'"]', False),
        (b'["\\u0031' + b"1" * 20 + b'",' + b"[]," * MANY + b"[]]", True),
        (b"[\xff" + b"[]," * MANY + b"[]]", False),  # every reader stops there
        (b" " * 3 * MANY, False),
    ],
)
def test_a_text_with_too_many_values_is_detected_before_parsing(raw, too_many):
    assert exact_json.has_too_many_values(raw) is too_many


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_nan_and_infinity_are_written_as_null_and_read_on_request(number):
    assert exact_json.dumps([2**64, number]) == b"[18446744073709551616,null]"
    assert repr(exact_json.loads(json.dumps([number]), allow_nan=True)) == repr([number])


def test_keys_are_sorted_on_request():
    assert exact_json.dumps({"b": 2**64, "a": {"d": 1, "c": 2}}, sort_keys=True) == (
        b'{"a":{"c":2,"d":1},"b":18446744073709551616}'
    )


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a":"one\ntwo\tthree\x01"}', {"a": "one\ntwo\tthree\x01"}),
        (rb'{"a\ud83d":["\udc00x","\ud83d\ude00"]}', {"a\ufffd": ["\ufffdx", "\N{GRINNING FACE}"]}),
        (b'{"a":"\n","n":123456789012345678901}', {"a": "\n", "n": 123456789012345678901}),
    ],
)
def test_lenient_parsing_accepts_control_characters_and_half_surrogate_pairs(raw, value):
    assert exact_json.loads(raw, lenient=True) == value
    with pytest.raises(ValueError, match=r".*"):
        exact_json.loads(raw)


@pytest.mark.parametrize("raw", [b'{"a":1', b'{"a":NaN}', b"{'a':1}", b'{"a":1,}', b'{"a":"\xff"}', b"[" * 100_000])
def test_lenient_parsing_refuses_what_is_no_json(raw):
    with pytest.raises(ValueError, match=r".*"):
        exact_json.loads(raw, lenient=True)
