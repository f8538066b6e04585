"""How a request becomes parameters (common reference, section 2)."""

from __future__ import annotations

import json
from contextlib import suppress
from io import BytesIO
from urllib.parse import parse_qsl, urlencode

import pytest
from flask import Request
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.test import EnvironBuilder

from project_service.kit.http.errors import BadRequest, Malformed, UnsupportedContentType
from project_service.kit.http.pagination import flatten
from project_service.kit.http.parameters import (
    MAX_BRACKET_DEPTH,
    MAX_JSON_DEPTH,
    MAX_KEYS,
    header,
    nest,
    query,
    read,
    refuse_malformed,
)

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
names = st.text(st.characters(codec="utf-8", exclude_characters="\0[]"), min_size=1, max_size=8)
trees = st.recursive(
    texts | st.lists(texts, min_size=1, max_size=3),
    lambda inner: st.dictionaries(names, inner, min_size=1, max_size=3),
    max_leaves=8,
)


def asked(method="POST", **options):
    return Request(EnvironBuilder(method=method, **options).get_environ())


def multipart(value, name=b"key"):
    part = b'--x\r\nContent-Disposition: form-data; name="' + name + b'"\r\n\r\n' + value + b"\r\n--x--\r\n"
    return {"data": part, "content_type": "multipart/form-data; boundary=x"}


@pytest.mark.parametrize(
    ("pairs", "nested"),
    [
        ([("a", "1"), ("a", "2")], {"a": "2"}),
        ([("filter[environment_scope]", "x")], {"filter": {"environment_scope": "x"}}),
        ([("a[b][c]", "1"), ("a[b][d]", "2")], {"a": {"b": {"c": "1", "d": "2"}}}),
        ([("a[]", "1"), ("a[]", "2")], {"a": ["1", "2"]}),
        ([("a[b][]", "1"), ("a[b][]", "2")], {"a": {"b": ["1", "2"]}}),
        ([("a[][k]", "1"), ("a[][v]", "2"), ("a[][k]", "3")], {"a": [{"k": "1", "v": "2"}, {"k": "3"}]}),
        ([("a[][k][x]", "1"), ("a[][k][x]", "3")], {"a": [{"k": {"x": "1"}}, {"k": {"x": "3"}}]}),
        ([("a[][k][x]", "1"), ("a[][k][y]", "2")], {"a": [{"k": {"x": "1", "y": "2"}}]}),
        ([("a[][k][]", "1"), ("a[][k][]", "2")], {"a": [{"k": ["1", "2"]}]}),
        ([("a[b]", "1"), ("a", "2")], {"a": "2"}),
        ([("a[b", "1")], {"a[b": "1"}),
        ([("a]b", "1")], {"a]b": "1"}),
        ([("a[b]c", "1")], {"a[b]c": "1"}),
        ([("[a]", "1")], {"[a]": "1"}),
        ([("", "1")], {"": "1"}),
    ],
)  # fmt: skip
def test_brackets_make_nested_data(pairs, nested):
    assert nest(pairs) == nested


@given(names, st.lists(texts, min_size=2, max_size=4))
def test_a_repeated_name_has_its_last_text_and_a_list_of_all(name, sent):
    found = nest([(name, text) for text in sent])

    assert found == {name: sent[-1]}
    assert flatten(name, found[name]) == [(name, text) for text in sent]


def test_invalid_utf8_is_refused_in_repeated_names():
    with pytest.raises(Malformed):
        refuse_malformed(nest([("a", "\0"), ("a", "b")]))


@pytest.mark.parametrize(
    "pairs",
    [
        [("a", "1"), ("a[b]", "2")],
        [("a", "1"), ("a[]", "2")],
        [("a[b]", "1"), ("a[]", "2")],
        [("a[]", "1"), ("a[b]", "2")],
        [("a[][]", "1")],
        [("a" + "[b]" * (MAX_BRACKET_DEPTH + 1), "1")],
        [(f"a{number}", "1") for number in range(MAX_KEYS + 1)],
    ],
    ids=["text", "text_array", "hash", "array", "array_of_arrays", "deep", "many"],
)
def test_contradictory_and_excessive_parameters_are_bad_requests(pairs):
    with pytest.raises(BadRequest, match="400 Bad request - "):
        nest(pairs)


@given(st.dictionaries(names, trees, max_size=4))
def test_flattened_link_parameters_are_read_back(tree):
    pairs = [pair for name, value in tree.items() for pair in flatten(name, value)]

    assert nest(pairs) == tree


@given(st.lists(st.dictionaries(st.sampled_from("vwx"), texts), min_size=1, max_size=4))
def test_arrays_of_hashes_are_read_when_each_hash_starts_with_the_same_key(hashes):
    tree = [{"k": "1", **each} for each in hashes]

    assert nest(flatten("a", tree)) == {"a": tree}


@given(st.lists(st.tuples(st.text(alphabet="ab[]", max_size=12), texts), max_size=8))
def test_any_names_are_parsed_or_refused(pairs):
    with suppress(BadRequest):
        assert isinstance(nest(pairs), dict)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"query_string": "a=1&b=2"}, {"a": "1", "b": "2"}),
        ({"query_string": "a=x%2By+z&b&c="}, {"a": "x+y z", "b": "", "c": ""}),
        ({"query_string": "a=1", "json": {"a": 2, "b": None}}, {"a": 2, "b": None}),
        ({"query_string": "a=1", "data": {"a": "2"}}, {"a": "2"}),
        ({"data": "a[b]=%C3%A4", "content_type": FORM}, {"a": {"b": "ä"}}),
        ({"data": "a=ä".encode(), "content_type": FORM}, {"a": "ä"}),
        ({"data": '{"a": [1]}', "content_type": "application/json; charset=utf-8"}, {"a": [1]}),
        ({"data": '{"a": 1}', "content_type": "Application/JSON"}, {"a": 1}),
        ({"data": "[1]", "content_type": JSON}, {}),
        ({"data": "5", "content_type": JSON}, {}),
        ({"data": "null", "content_type": JSON}, {}),
        ({"data": " \n", "content_type": JSON}, {}),
        ({"data": "", "content_type": "text/plain"}, {}),
        (multipart("ä".encode()), {"key": "ä"}),
        ({"method": "DELETE", "json": {"a": 1}}, {"a": 1}),
        ({"method": "GET", "query_string": "a=1", "json": {"a": 2}}, {"a": "1"}),
    ],
)
def test_query_and_body_are_merged(options, found):
    assert read(asked(**options)) == found


def test_a_file_is_a_parameter():
    with asked(data={"override_params[name]": "x", "file": (BytesIO(b"bytes"), "file.tar.gz")}) as request:
        found = read(request)

        assert (found["override_params"], found["file"].read()) == ({"name": "x"}, b"bytes")


@pytest.mark.parametrize(
    "options",
    [
        {"query_string": "a=%ff"},
        {"query_string": "%ff=a"},
        {"query_string": "a=%00"},
        {"query_string": "a[b][]=%00"},
        {"query_string": "a=%C3%28"},
        {"data": "a=%ff", "content_type": FORM},
        {"data": b"a=\xff", "content_type": FORM},
        {"data": "%00=a", "content_type": FORM},
        multipart(b"\xff"),
        multipart(b"a\0"),
        multipart(b"a", name=b"\0"),
        {"data": "{", "content_type": JSON},
        {"data": '{"a": nan}', "content_type": JSON},
        {"data": f'{{"a": NaN, "b": {10**19}}}', "content_type": JSON},
        {"data": f'{{"a": -Infinity, "b": {10**19}}}', "content_type": JSON},
        {"data": f'{{"a": 1e999, "b": {10**19}}}', "content_type": JSON},
        {"data": '{"a": 1}}', "content_type": JSON},
        {"data": b'{"a": "\xff"}', "content_type": JSON},
        {"data": '{"a": "\\u0000"}', "content_type": JSON},
        {"data": '{"\\u0000": 1}', "content_type": JSON},
        {"data": '{"a": [{"b": "\\u0000"}]}', "content_type": JSON},
        {"data": '{"a": "\\ud800"}', "content_type": JSON},
        {"data": "[" * 100_000, "content_type": JSON},
        {"data": '{"a":' + "[" * 900 + "]" * 900 + "}", "content_type": JSON},
    ],
)
def test_invalid_utf8_is_malformed(options):
    with pytest.raises(Malformed):
        read(asked(**options))


def test_raw_bytes_in_a_query_must_be_utf8():
    environ = EnvironBuilder().get_environ() | {"QUERY_STRING": "a=\xff"}

    with pytest.raises(Malformed):
        read(Request(environ))


@pytest.mark.parametrize("depth", [MAX_JSON_DEPTH - 1, MAX_JSON_DEPTH])
def test_the_nesting_of_json_is_limited(depth):
    nested = {}
    for _ in range(depth):
        nested = {"a": nested}

    if depth < MAX_JSON_DEPTH:
        refuse_malformed(nested)
    else:
        with pytest.raises(Malformed):
            refuse_malformed(nested)


@pytest.mark.parametrize(
    ("content_type", "shown"),
    [("text/plain; charset=utf-8", "text/plain"), ("application/xml", "application/xml"), (None, ""), ("", "")],
)
def test_other_bodies_are_not_supported(content_type, shown):
    with pytest.raises(UnsupportedContentType) as refused:
        read(asked(data=b"x", content_type=content_type))

    assert refused.value.body() == {"error": f"The provided content-type '{shown}' is not supported."}


@pytest.mark.parametrize("value", ["\xff", "a\0b", "\xc3("])
def test_a_credential_must_be_text(value):
    environ = EnvironBuilder().get_environ() | {"HTTP_PRIVATE_TOKEN": value}

    with pytest.raises(Malformed):
        header(Request(environ), "PRIVATE-TOKEN")


@given(st.binary(max_size=60), st.sampled_from([JSON, FORM, "multipart/form-data; boundary=x", "text/plain"]))
def test_any_bytes_are_parsed_or_refused(body, content_type):
    with (
        asked(data=body, content_type=content_type) as request,
        suppress(Malformed, BadRequest, UnsupportedContentType),
    ):
        assert isinstance(read(request), dict)


@given(st.binary(max_size=60) | st.text(alphabet="ab[]=&%20cf+", max_size=30).map(str.encode))
def test_any_query_is_parsed_or_refused(text):
    with suppress(Malformed, BadRequest):
        found = query(Request(EnvironBuilder().get_environ() | {"QUERY_STRING": text.decode("latin-1")}))

        assert found == nest(parse_qsl(text.decode(), keep_blank_values=True))


@given(st.lists(st.tuples(names, texts), max_size=8), st.sampled_from(["query_string", "data"]))
def test_encoded_parameters_are_read_back(pairs, place):
    asked_for = asked(**{place: urlencode(pairs)}, content_type=FORM)

    assert read(asked_for) == dict(pairs)


jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(texts, jsons, max_size=4), st.booleans())
def test_json_integers_keep_all_digits(tree, as_ascii):
    body = json.dumps(tree, ensure_ascii=as_ascii).encode()

    assert read(asked(data=body, content_type=JSON)) == tree


@given(jsons, st.lists(st.sampled_from("lkv"), max_size=6), st.sampled_from(["\0", "a\0b", "\ud800", "\udc00\ud800"]))
def test_invalid_utf8_in_json_is_refused(beside, steps, broken):
    value = broken
    for step in steps:
        value = {"l": [beside, value], "k": {"a": beside, "\0": value}, "v": {"a": value, "b": beside}}[step]

    refuse_malformed(beside)
    with pytest.raises(Malformed):
        refuse_malformed(value)


@pytest.mark.parametrize("kind", ["", '; filename="a"'])
def test_a_part_without_a_name_is_ignored(kind, app):
    body = (
        f'--x\r\nContent-Disposition: form-data{kind}\r\n\r\n1\r\n--x\r\nContent-Disposition: form-data; name="a"\r\n'
    )
    body += "\r\n2\r\n--x--\r\n"

    with app.test_request_context(method="POST", data=body, content_type="multipart/form-data; boundary=x") as context:
        assert read(context.request) == {"a": "2"}
