"""Parsing of reports, as pure functions (findings reference, section 10; security reports reference, section 4)."""

from __future__ import annotations

import io
import tracemalloc
import uuid

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from project_service.areas.vulnerabilities.fingerprints import NAMESPACE, finding_uuid, fingerprint
from project_service.areas.vulnerabilities.formats.documents import report_json
from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.areas.vulnerabilities.formats.gitlab import normalising, reports
from project_service.areas.vulnerabilities.ingestion import deduplication
from project_service.areas.vulnerabilities.levels import Confidence, FindingSeverity
from project_service.areas.vulnerabilities.locations import image_without_tag, place_of
from project_service.areas.vulnerabilities.report_types import REPORT_TYPES
from project_service.areas.vulnerabilities.severity_order import KINDS, FindingRank, numbers_of

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abcdeé\0", max_size=6), inner, max_size=4),
    max_leaves=12,
)
NAMES = ("name", "message", "severity", "confidence", "cve", "identifiers", "location", "scanner", "links", "details")
ENTRY = st.dictionaries(st.sampled_from(NAMES), JSON, max_size=6) | JSON
VALID_ENTRY = ENTRY.map(lambda entry: {**entry, "name": "A"} if isinstance(entry, dict) else {"name": "A"})
REPORT = st.fixed_dictionaries(
    {},
    optional={
        "version": JSON,
        "scan": JSON,
        "vulnerabilities": st.lists(VALID_ENTRY, max_size=3) | st.lists(ENTRY, max_size=3) | JSON,
        "remediations": st.lists(st.fixed_dictionaries({"fixes": st.lists(JSON, max_size=2)}), max_size=2) | JSON,
        "site": JSON,
    },
)


@pytest.mark.parametrize(
    ("kind", "location", "expected"),
    [
        ("sast", {"file": "a/b.py", "start_line": 1, "end_line": 2, "class": "X"}, "a/b.py:1:2"),
        ("sast", {"file": "a/b.py", "start_line": 1}, "a/b.py:1:"),
        ("sast", {}, "::"),
        ("secret_detection", {"file": "a", "start_line": 5, "end_line": 5, "commit": {"sha": "x"}}, "a:5:5"),
        ("dependency_scanning", {"file": "f", "dependency": {"package": {"name": "p"}, "version": "1"}}, "f:p"),
        ("dependency_scanning", {"dependency": "p"}, ":"),
        ("container_scanning", {"image": "i:main", "dependency": {"package": {"name": "p"}}}, "i:p"),
        ("dast", {"hostname": "h", "path": "/p", "method": "GET", "param": "q"}, "/p:GET:q"),
        ("api_fuzzing", {"path": "/p"}, "/p::"),
        ("coverage_fuzzing", {"crash_type": "Leak", "crash_state": "a\nb"}, "Leak:a\nb"),
        ("coverage_fuzzing", {}, ":"),
    ],
)
def test_the_location_key_of_a_finding_depends_on_its_type(kind, location, expected):
    assert place_of(kind, location) == expected


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("alpine:3.7.3", "alpine:3.7.3"),
        ("alpine:1.0.0-beta", "alpine:1.0.0-beta"),
        ("alpine:latest", "alpine"),
        ("registry.example.com:5000/app:main", "registry.example.com:5000/app"),
        ("registry.example.com:5000/app", "registry.example.com:5000/app"),
        ("app:deadbeef", "app"),
        (f"app:{'ab' * 20}", "app"),
        (f"app@sha256:{'ab' * 32}", "app@sha256"),
        ("app", "app"),
        ("", ""),
    ],
)
def test_image_names_lose_their_tag(image, name):
    assert image_without_tag(image) == name


def test_identities_match_the_reference():
    first, location = fingerprint("find_sec_bugs_type:XSS_REQUEST_PARAMETER_TO_SERVLET_WRITER"), "src/main/java/"
    location = fingerprint(f"{location}servlets/module/lesson/XssLesson.java:96:96")

    assert str(uuid.uuid5(NAMESPACE, "GitLab")) == "4961388b-9d8e-5da0-a499-3ef5da58daf0"
    assert finding_uuid("sast", first, location, 1) == "23697da8-a042-54bc-aa36-45a26e6712b8"


def test_every_severity_confidence_and_type_has_a_distinct_number():
    ranks = [
        FindingRank(kind, severity, level)
        for kind in REPORT_TYPES
        for severity in FindingSeverity
        for level in Confidence
    ]

    assert [FindingRank.of(rank.number) for rank in ranks] == ranks
    for rank in ranks:
        first, last = numbers_of(rank.report_type)
        assert first <= rank.number <= last


def test_stored_numbers_of_report_types_are_fixed():
    assert KINDS[:4] == ("sast", "dast", "dependency_scanning", "container_scanning")
    assert KINDS[4:] == ("secret_detection", "coverage_fuzzing", "api_fuzzing")


def read(raw, kind):
    """The parts of a report, or the message and pointer of its refusal."""
    try:
        with reports.open_report(io.BytesIO(raw), kind) as report:
            entries = list(report.vulnerabilities)
            return entries, list(report.remediations), report.scan
    except BrokenReport as error:
        return error.message, error.pointer


@given(REPORT | st.lists(VALID_ENTRY, max_size=3) | JSON, st.sampled_from(["sast", "dast"]))
@example({"site": 1}, "dast")
def test_both_parsers_give_the_same_result(document, kind):
    raw = orjson.dumps(report_json.storable(document)).replace(b"placeholder", b"\\u0000")
    results = []
    for limit in (1 << 20, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(report_json, "MAX_PARSED_BYTES", limit)
            results.append(read(raw, kind))

    assert results[0] == results[1]


def streamed(raw, kind="sast", **changes):
    """The result of ``read`` with the streaming parser."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ({"MAX_PARSED_BYTES": -1} | changes).items():
            patch.setattr(report_json, name, value)
        return read(raw, kind)


@pytest.mark.parametrize(
    "number",
    ["9" * 400, "9" * 5_000, "-" + "9" * 100_000, "1e400", "-1E+400", "1e" + "9" * 20]
    + ["9" * 20 + ",1e400", "9" * 20 + ",1e" + "9" * 20, "9" * 20 + "," + "9" * 400],
    ids=len,
)
@pytest.mark.parametrize(
    "document", ['{"vulnerabilities":[{"name":"A","details":{"a":[%s]}}]}', "[[%s]]", '{"a":[%s]}']
)
def test_oversized_numbers_are_refused_by_both_parsers(document, number):
    raw = (document % number).encode()

    assert [read(raw, "sast"), streamed(raw)] == [("JSON parsing failed", "")] * 2


@pytest.mark.parametrize("block", [16, 64, 1 << 20])
@pytest.mark.parametrize("name", ["e" + "4" * 30, "9" * 5_000, '\\"e' + "4" * 30, "\\\\", "e-" + "1" * 20])
def test_large_integers_and_digits_in_texts_are_accepted(name, block):
    raw = b'{"vulnerabilities":[{"name":"%s","details":{"%s":9223372036854775808}}]}' % ((name.encode(),) * 2)

    assert streamed(raw, BLOCK_BYTES=block) == read(raw, "sast")
    assert isinstance(read(raw, "sast")[0], list)


@pytest.mark.parametrize("block", [16, 100, 1 << 20])
@pytest.mark.parametrize("trailing", ["", "\\n", '\\"', '"e"', "\\"])
@pytest.mark.parametrize("number", ["1e" + "9" * 20, "9" * 5_000])
def test_oversized_numbers_are_refused_after_any_text(number, trailing, block):
    raw = f'{{"a\\\\":"\\"","b":[{"9" * 20},{number}{trailing}]}}'.encode()

    assert streamed(raw, BLOCK_BYTES=block) == ("JSON parsing failed", "")


def test_tiny_numbers_become_zero():
    raw = b'{"vulnerabilities":[{"name":"A","details":{"a":1e-' + b"9" * 5_000 + b"}}]}"

    assert read(raw, "sast") == streamed(raw) == ([{"name": "A", "details": {"a": 0.0}}], [], None)


@pytest.mark.parametrize(
    "trailing", [b"", b" \n", b'"', b' "abc', b'"abc}', b"\\", b'"\\"', b"}", b"5", b"\f", b"\0", b"\xc3"]
)
def test_trailing_data_is_refused(trailing):
    raw = b'{"vulnerabilities":[]}' + trailing
    expected = ("JSON parsing failed", "") if trailing.strip(b" \n") else ([], [], None)

    assert [read(raw, "sast"), streamed(raw), streamed(raw, BLOCK_BYTES=7)] == [expected] * 3


@given(st.integers(0, 1200), st.sampled_from([b"123456789012345678901234567890", b"1.5", b'"\\u0000"', b"9" * 500]))
def test_chunk_boundaries_do_not_change_the_result(shift, value):
    raw = b" " * shift + b'{"vulnerabilities":[{"name":"A","details":{"a":' + value + b"}}]}"

    assert streamed(raw, BLOCK_BYTES=1000) == read(raw, "sast")


DUPLICATE_KEYS = [
    b'{"vulnerabilities":[{"name":"x","severity":5}],"vulnerabilities":[{"name":"n"}]}',
    b'{"vulnerabilities":[{"name":"b"}],"vulnerabilities":[{"name":"d","a":[{"b":[1]}]},{"name":"e"}]}',
    b'{"remediations":[{}],"vulnerabilities":[{"name":"n"}],"remediations":[{"fixes":[{"id":"1"}]}]}',
    b'{"vulnerabilities":[{"name":"x"}],"vulnerabilities":null}',
    b'{"vulnerabilities":null,"vulnerabilities":[{"name":"x"}]}',
    b'{"vulnerabilities\\u0000":[{"name":"x"}]}',
]


@pytest.mark.parametrize("raw", DUPLICATE_KEYS)
def test_the_last_of_duplicate_keys_counts(raw):
    assert streamed(raw) == read(raw, "sast")


PIECES = [r"\\\\", r"\ud83d\ude00", "a", r"\n", r"\"", r"\u0041"]


@given(st.lists(st.sampled_from([*PIECES * 9, r"\ud83d", r"\ude00"]), max_size=60), st.sampled_from([20, 64, 1 << 20]))
def test_both_parsers_treat_lone_surrogates_alike(pieces, block):
    raw = b'{"vulnerabilities":[{"name":"A","details":{"a":"%s"}}]}' % "".join(pieces).encode()

    assert streamed(raw, BLOCK_BYTES=block) == read(raw, "sast")


def test_short_reads_do_not_end_the_document():
    class ShortReads(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, 5) if size > 0 else size)

    raw = b'{"vulnerabilities":[{"name":"A","description":"\\ud83d\\ude00"}]}'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_json, "MAX_PARSED_BYTES", -1)
        with reports.open_report(ShortReads(raw), "sast") as report:
            assert [one["description"] for one in report.vulnerabilities] == ["\U0001f600"]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"a":"\xff"}', "byte 7 is not UTF-8"),
        (b'\xef\xbb\xbf{"a":"\xff"}', "byte 10 is not UTF-8"),
        ("{}".encode("utf-16"), "byte 1 is not UTF-8"),
        (b"{", "unexpected end of data"),
    ],
)
def test_invalid_json_is_explained(raw, reason):
    with pytest.raises(BrokenReport, match=reason), reports.open_report(io.BytesIO(raw), "sast"):
        pass


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"a":\xff}', "lexical error: invalid char in json text."),
        (b'{"a":"b","c":"d\xff"}', "lexical error: invalid bytes in UTF8 string."),
        (b'{"a":"b","c":"d\xed\xa0\x80"}', "a text is not UTF-8"),
    ],
)
def test_the_streaming_parser_explains_invalid_json(raw, reason):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_json, "MAX_PARSED_BYTES", -1)
        with pytest.raises(BrokenReport) as error, reports.open_report(io.BytesIO(raw), "sast"):
            pass

    assert error.value.reason == reason


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"vulnerabilities":['])
def test_deep_nesting_needs_little_memory(opening):
    raw = b'{"vulnerabilities":[' + opening * 20_000
    tracemalloc.start()

    result = streamed(raw)

    assert (result, tracemalloc.get_traced_memory()[1] < 16 << 20) == (("JSON parsing failed", ""), True)
    tracemalloc.stop()


@pytest.mark.parametrize(("depth", "is_read"), [(254, True), (255, False)])
def test_both_parsers_read_to_the_same_depth(depth, is_read):
    raw = b'{"vulnerabilities":[],"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"

    assert [read(raw, "sast"), streamed(raw)] == [([], [], None) if is_read else ("JSON parsing failed", "")] * 2


@given(st.lists(VALID_ENTRY, max_size=4), st.sampled_from(list(REPORT_TYPES)))
def test_any_valid_entry_becomes_a_finding(entries, kind):
    raw = orjson.dumps(report_json.storable({"vulnerabilities": entries}))
    found = read(raw, kind)
    if isinstance(found[0], str):
        assert found[1].endswith(("severity", "confidence"))
        return
    for entry in found[0]:
        match_keys = deduplication.match_keys_of(kind, entry)
        data = normalising.finding_data(kind, entry, normalising.Scanners(None).of(entry), None)
        assert data["name"]
        assert len(match_keys.location) == 20
        assert FindingRank.of(normalising.rank_of(kind, entry).number).report_type == kind
        assert isinstance(orjson.dumps(data), bytes)


@given(st.lists(st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), max_size=3), max_size=8))
def test_a_finding_with_the_digest_of_an_earlier_one_is_dropped(keys):
    first = list(deduplication.first_occurrences(keys))
    seen = set()
    for entry_keys, is_first in zip(keys, first, strict=True):
        assert is_first is seen.isdisjoint(entry_keys)
        seen |= set(entry_keys) if is_first else set()


@given(st.binary(max_size=200))
def test_any_document_is_a_report_or_refused(raw):
    read(raw, "sast")


@given(st.lists(st.text(max_size=4), max_size=8))
def test_ranks_follow_the_bytes_of_the_keys(keys):
    ranks = deduplication.ranks(keys)

    ordered = [key for _, key in sorted(zip(ranks, keys, strict=True))]
    assert ordered == sorted(keys, key=lambda key: key.encode("utf-8", "surrogatepass"))
