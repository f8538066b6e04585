"""Parsing of payloads as pure functions (alert ingestion reference, sections 4 to 8)."""

from __future__ import annotations

import datetime as dt
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from project_service.areas.alerts.models import Severity
from project_service.areas.alerts.payloads import elements, payload_values, payloads
from project_service.areas.alerts.payloads.bodies import MalformedPayload, Unreadable, read
from project_service.areas.alerts.receivers import grouping
from project_service.areas.alerts.receivers.reports import ParsedAlert, ReadingRules
from project_service.kit import clock
from project_service.kit.times import read_time

MOMENT = dt.datetime(2026, 3, 4, 5, 6, 7, tzinfo=dt.UTC)
BATCH = {
    "version": "4",
    "groupKey": "{}",
    "status": "firing",
    "receiver": "us",
    "groupLabels": {},
    "commonLabels": {},
    "commonAnnotations": {},
    "externalURL": "http://alertmanager.example",
    "alerts": [],
}
ELEMENT = {
    "status": "firing",
    "labels": {"alertname": "HighLatency"},
    "annotations": {},
    "startsAt": "2026-03-04T05:06:07Z",
    "endsAt": "0001-01-01T00:00:00Z",
}
BLANK = ["", "  ", [], {}, None, False]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def parse_checked(report):
    """Return the parsed fields of a payload; check that the report agrees with them."""
    if report is None:
        return None
    parsed = report.parse()
    assert (parsed.fingerprint, parsed.environment, parsed.ended_at is not None) == (
        report.fingerprint,
        report.environment,
        report.is_recovery,
    )
    return parsed


def parse_plain(payload, mapping=None):
    return parse_checked(payloads.parse_plain(payload, ReadingRules(mapping or {})))


def parse_prometheus(element):
    return parse_checked(elements.parse_element(element))


def parse_batch(payload):
    return [parse_checked(report) for report in payloads.parse(payload).reports]


def nested(levels):
    """Return a body with this many nested objects."""
    return b'{"a":' * (levels - 1) + b"{}" + b"}" * (levels - 1)


def is_now(moment):
    return abs((dt.datetime.now(dt.UTC) - moment).total_seconds()) < 60


@pytest.mark.parametrize("body", [b"", b" \n", b"{}"])
def test_an_empty_body_is_an_empty_object(body):
    assert read(body) == {}


@pytest.mark.parametrize(
    "body", [b"{", b'{"a": [1,', b"[]", b'[{"a": 1}]', b"1", b'"text"', b"null", b"title=x", b"\xff{}", b'{"a": NaN}']
)
def test_other_values_than_json_objects_are_refused(body):
    with pytest.raises(Unreadable):
        read(body)


def test_nesting_is_limited_to_a_hundred_levels():
    assert read(nested(100))
    with pytest.raises(Unreadable):
        read(nested(101))


def test_arrays_count_as_levels_too():
    assert read(b'{"a":' + b"[" * 99 + b"]" * 99 + b"}")
    with pytest.raises(Unreadable):
        read(b'{"a":' + b"[" * 100 + b"]" * 100 + b"}")


def test_a_payload_is_at_most_a_mebibyte_when_serialized():
    around = len(b'{"a":""}')
    assert read(b'{"a":"' + b"x" * ((1 << 20) - around) + b'"}')
    with pytest.raises(Unreadable):
        read(b'{"a":"' + b"x" * ((1 << 20) - around + 1) + b'"}')


def test_spaces_between_the_values_do_not_count():
    assert read(b'{"a":' + b" " * (1 << 20) + b"1}") == {"a": 1}


def test_all_fields_of_a_payload_are_read():
    payload = {
        "title": "Disk is full",
        "description": "Nothing left",
        "start_time": "2026-03-04T05:06:07Z",
        "service": "postgresql",
        "monitoring_tool": "Nagios",
        "hosts": ["db-1", "db-2"],
        "severity": "high",
        "fingerprint": "fingerprint",
        "gitlab_environment_name": "production",
        "check": {"value": 95.7},
    }

    parsed = parse_plain(payload)

    assert parsed == ParsedAlert(
        title="Disk is full",
        payload=payload,
        started_at=MOMENT,
        severity=Severity.HIGH,
        description="Nothing left",
        service="postgresql",
        monitoring_tool="Nagios",
        hosts=["db-1", "db-2"],
        fingerprint="b5448ce070e8ff567c4870e9fe0aeba3c0a98330",
        environment="production",
    )


def test_an_empty_payload_gives_default_values():
    parsed = parse_plain({})

    assert (parsed.title, parsed.severity, parsed.hosts) == ("New: Alert", Severity.CRITICAL, [])
    assert (parsed.description, parsed.service, parsed.monitoring_tool, parsed.environment) == (None,) * 4
    assert (parsed.fingerprint, parsed.ended_at, is_now(parsed.started_at)) == (None, None, True)


@pytest.mark.parametrize("blank", BLANK)
def test_blank_values_count_as_missing(blank):
    names = ("title", "description", "service", "monitoring_tool", "hosts", "severity", "fingerprint", "end_time")
    parsed = parse_plain(dict.fromkeys((*names, "start_time", "gitlab_environment_name"), blank))

    assert (parsed.title, parsed.severity, parsed.hosts, parsed.fingerprint) == ("New: Alert", 0, [], None)
    assert (parsed.description, parsed.service, parsed.monitoring_tool, parsed.environment) == (None,) * 4
    assert (parsed.ended_at, is_now(parsed.started_at)) == (None, True)


@pytest.mark.parametrize(
    ("value", "text"),
    [(4356875, "4356875"), (True, "true"), (0, "0"), (1.5, "1.5"), ({"b": 1, "a": [2]}, '{"a":[2],"b":1}')],
)
def test_other_values_become_text(value, text):
    parsed = parse_plain({"title": value, "description": value, "service": value, "monitoring_tool": value})

    assert {parsed.title, parsed.description, parsed.service, parsed.monitoring_tool} == {text}


def test_long_integers_make_different_fingerprints():
    texts = ["18446744073709551616", "18446744073709551617"]
    sent = [parse_plain(read(f'{{"fingerprint": {text}}}'.encode())).fingerprint for text in texts]
    generated = [parse_plain(read(f'{{"id": {text}}}'.encode())).fingerprint for text in texts]

    assert sent == [grouping.sha1(text) for text in texts]
    assert len({*sent, *generated}) == 4


def test_nul_characters_are_replaced():
    assert parse_plain({"title": "a\0b"}).title == "a\ufffdb"


@pytest.mark.parametrize(
    ("name", "limit"), [("title", 200), ("description", 1000), ("service", 100), ("monitoring_tool", 100)]
)
def test_long_texts_are_truncated_with_an_ellipsis(name, limit):
    fits, long = getattr(parse_plain({name: "x" * limit}), name), getattr(parse_plain({name: "x" * (limit + 1)}), name)

    assert (fits, long) == ("x" * limit, "x" * (limit - 3) + "...")


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ("db-1", ["db-1"]),
        (["db-1", ["db-2", ["db-3"]]], ["db-1", "db-2", "db-3"]),
        (["", None, "db-1", False, {}], ["db-1"]),
        ([1, True], ["1", "true"]),
        ({"a": 1}, ['{"a":1}']),
        ("h" * 256, ["h" * 255]),
        (["h" * 255, "i"], ["h" * 255]),
        (["h" * 250, "abcdefg", "i"], ["h" * 250, "abcde"]),
        (["h" * 200, ["i" * 54, "jk"]], ["h" * 200, "i" * 54, "j"]),
    ],
)
def test_hosts_are_flattened_and_truncated(hosts, expected):
    assert parse_plain({"hosts": hosts}).hosts == expected


@pytest.mark.parametrize("severity", list(Severity))
@pytest.mark.parametrize("form", [str.lower, str.upper, str.title])
def test_severities_ignore_case(severity, form):
    assert parse_plain({"severity": form(severity.name)}).severity == severity


@pytest.mark.parametrize("value", ["very bad", "P2", "warning", 3, 1.0, True, ["high"], {"high": 1}, None])
def test_unknown_severities_are_critical(value):
    assert parse_plain({"severity": value}).severity == Severity.CRITICAL


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-04T05:06:07Z",
        "2026-03-04T06:06:07+01:00",
        "2026-03-04 05:06:07 UTC",
        "2026-03-04 05:06:07",
        "Wed, 04 Mar 2026 06:06:07 +0100",
        "2026-03-04 06:06:07 +0100",
        "Wed, 04 Mar 2026 00:06:07 EST",
        "Tue, 03 Mar 2026 22:06:07 PDT",
        "2026-03-04 06:06:07 CET",
        "2026-03-04 06:06:07 cet",
        "2026-03-04 07:06:07 CEST",
        "2026-03-04 06:06:07 BST",
        "2026-03-04 08:06:07 MSK",
        "2026-03-04 10:36:07 IST",
        "Wed, 04 Mar 2026 14:06:07 JST",
        "2026-03-04 01:36:07 NST",
        "2026-03-04 05:06:07 utc",
        "2026-03-04 05:06:07 +0000 UTC",
        "2026-03-04 06:06:07 +0100 CET",
        "2026-03-04 10:36:07 +0530 +0530",
        "2026-03-04 05:06:07 +0000 UTC m=+0.000012345",
        "2026-03-04 06:06:07 UTC+1",
        "Wed Mar 04 2026 06:06:07 GMT+0100",
    ],
)
def test_times_are_parsed_from_many_formats(text):
    assert read_time(text) == MOMENT


def test_nanoseconds_of_go_are_truncated():
    assert read_time("2026-03-04 05:06:07.123456789 +0000 UTC") == MOMENT.replace(microsecond=123456)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-04T24:00:00Z", dt.datetime(2026, 3, 5, tzinfo=dt.UTC)),
        ("2026-03-04 24:00", dt.datetime(2026, 3, 5, tzinfo=dt.UTC)),
        ("2026-12-31T24:00:00.000+01:00", dt.datetime(2026, 12, 31, 23, tzinfo=dt.UTC)),
        ("2016-12-31T23:59:60Z", dt.datetime(2017, 1, 1, tzinfo=dt.UTC)),
        ("2017-01-01T05:29:60.5+05:30", dt.datetime(2017, 1, 1, 0, 0, 0, 500_000, tzinfo=dt.UTC)),
    ],
)
def test_hour_24_and_second_60_roll_over(text, moment):
    assert read_time(text) == moment


@pytest.mark.parametrize(
    "text", ["10:30", "T10:30:00", "10:30 am", "10:30 UTC", "12:30 +0200", "12:30 EET", "5:30 EST"]
)
def test_a_time_without_a_date_is_today(text):
    assert read_time(text) == dt.datetime.combine(clock.today(), dt.time(10, 30), dt.UTC)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "0001-01-01 00:00:00 +0000 UTC", "0001-01-01T00:00:00.000Z"])
def test_the_zero_time_of_go_is_none(text):
    assert parse_plain({"end_time": text}).ended_at is None
    assert is_now(parse_plain({"start_time": text}).started_at)
    resolved = parse_prometheus(ELEMENT | {"startsAt": text, "endsAt": text, "status": "resolved"})
    assert is_now(resolved.started_at)
    assert is_now(resolved.ended_at)


def test_a_date_without_time_is_midnight():
    assert read_time("2026-03-04") == MOMENT.replace(hour=0, minute=0, second=0)


def test_an_unknown_time_zone_is_ignored():
    assert read_time("2026-03-04 05:06:07 XYZT") == MOMENT


@pytest.mark.parametrize(
    "value",
    [
        "yesterday",
        "10.5",
        "2026-03-04T24:00:01Z",
        "2026-03-04T25:00:00Z",
        "2026-03-04T05:06:61Z",
        "9999-12-31T24:00:00Z",
        "",
        "  ",
        "2026-13-45",
        "9" * 65,
        "0001-01-01T00:00:00+23:59",
        "2026-03-04T05:06:07+99:99",
        True,
        None,
        ["2026-03-04"],
        {},
    ],
)
def test_an_invalid_time_counts_as_missing(value):
    assert read_time(value) is None
    assert is_now(parse_plain({"start_time": value}).started_at)


def test_invalid_times_are_reported():
    mapping = {"start_time": {"path": ["event", "times", 0], "type": "string"}}
    payload = {"event": {"times": ["soon" * 50]}, "start_time": 1772600767, "end_time": True}

    report = payloads.parse_plain(payload, ReadingRules(mapping))

    assert report.parse().started_at == MOMENT
    assert report.unreadable_times == {
        "start_time": {"path": "event/times[0]", "value": "soon" * 24 + "s..."},
        "end_time": {"path": "end_time", "value": "true"},
    }


@pytest.mark.parametrize("value", [*BLANK, "0001-01-01T00:00:00Z"])
def test_missing_times_are_not_reported(value):
    assert payloads.parse_plain({"title": "A", "start_time": value, "end_time": value}).unreadable_times == {}


def test_invalid_times_of_prometheus_are_reported():
    firing = elements.parse_element(ELEMENT | {"startsAt": "soon", "endsAt": "late"})
    resolved = elements.parse_element(ELEMENT | {"endsAt": "late", "status": "resolved"})

    assert firing.unreadable_times == {"start_time": {"path": "startsAt", "value": "soon"}}
    assert resolved.unreadable_times == {"end_time": {"path": "endsAt", "value": "late"}}


@given(st.text(max_size=70))
def test_any_text_is_handled_as_time(text):
    moment = read_time(text)

    assert moment is None or moment.utcoffset() == dt.timedelta()


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2026-03-04T05:06:07Z", MOMENT),
        (1772600767000, MOMENT),
        (1772600767, MOMENT),
        ("1772600767", MOMENT),
        (0, None),
        (True, None),
        ("soon", None),
        (None, None),
    ],
)
def test_a_valid_end_time_makes_a_recovery(value, moment):
    parsed = parse_plain({"end_time": value})

    assert parsed.ended_at == moment


@pytest.mark.parametrize(
    ("fingerprint", "digest"),
    [
        ("fingerprint", "b5448ce070e8ff567c4870e9fe0aeba3c0a98330"),
        (111, "6216f8a75fd5bb3d5f22b6f9958cdede3fc086c2"),
        ([1, "fingerprint", "given"], "9463360a4ace9389a8c9f3491b660822ca796d52"),
        (["host", ["disk"]], "e01e891eabed6777d2ce1aea636f93d3ea184ac2"),
        (["hostdisk"], "e01e891eabed6777d2ce1aea636f93d3ea184ac2"),
        ("hostdisk", "e01e891eabed6777d2ce1aea636f93d3ea184ac2"),
        (["db-2", "disk", 95], "6dde4ab3912722706b11eff1e02afa553f8f766a"),
        ("raum-nord/überhitzung", "4bb370cdf498734b4e8d9a4ea053db9b3e97ad43"),
        (True, hashlib.sha1(b"true").hexdigest()),
        (["disk", " ", None, False], hashlib.sha1(b"disk false").hexdigest()),
        ("a\0b", hashlib.sha1(b"a\0b").hexdigest()),
    ],
)
def test_fingerprints_are_digests(fingerprint, digest):
    assert parse_plain({"fingerprint": fingerprint}).fingerprint == digest


@pytest.mark.parametrize("blank", [[None], [[], [" "]]])
def test_a_blank_fingerprint_is_generated(blank):
    assert parse_plain({"title": "A", "fingerprint": blank}).fingerprint is not None


def test_fingerprints_are_not_normalised():
    assert len({parse_plain({"fingerprint": text}).fingerprint for text in ("a", "A", " a", "a ")}) == 4


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}),
        ({"a": [{"b": 1, "c": 2}]}, {"a": [{"c": 2, "b": 1}]}),
    ],
)
def test_the_order_of_keys_does_not_change_the_fingerprint(one, other):
    assert parse_plain({"fingerprint": one}).fingerprint == parse_plain({"fingerprint": other}).fingerprint
    assert parse_plain(one).fingerprint == parse_plain(other).fingerprint is not None


def test_different_values_have_different_fingerprints():
    digests = {parse_plain({"fingerprint": value}).fingerprint for value in ({"a": 1}, {"a": 2}, {"b": 1}, {"a": [1]})}

    assert len(digests) == 4


def test_a_generated_fingerprint_excludes_times_and_hosts():
    first = parse_plain({"title": "A", "hosts": "x", "start_time": "2026-03-04"})
    repeat = parse_plain({"title": "A", "hosts": "y", "start_time": "2026-03-05", "end_time": "2026-03-06"})
    other = parse_plain({"title": "A", "service": "till"})

    assert first.fingerprint == repeat.fingerprint != other.fingerprint


@pytest.mark.parametrize("payload", [{}, {"hosts": "a"}, {"title": "", "more": {"a": None, "b": [], "c": {}}}])
def test_a_payload_of_blank_values_has_no_fingerprint(payload):
    assert parse_plain(payload).fingerprint is None


def test_monitoring_tool_prometheus_marks_a_prometheus_payload():
    parsed = parse_plain(ELEMENT | {"monitoring_tool": "Prometheus"})
    plain = parse_plain({"title": "A", "monitoring_tool": "Prometheus"})

    assert (parsed.title, parsed.started_at) == ("HighLatency", MOMENT)
    assert (plain.title, plain.monitoring_tool) == ("A", "Prometheus")


def have_one_fingerprint(mapping, *examples):
    """Return whether all payloads have the same fingerprint under a mapping of fields to paths."""
    entries = {name: {"path": path, "type": "string"} for name, path in mapping.items()}
    digests = {parse_plain(payload, entries).fingerprint for payload in examples}
    return len(digests) == 1 and None not in digests


@pytest.mark.parametrize(
    ("mapping", "examples"),
    [
        ({"end_time": ["closed_at"]}, [{}, {"closed_at": None}, {"closed_at": 1772600767}, {"closed_at": "soon"}]),
        (
            {"start_time": ["began"], "hosts": ["nodes"]},
            [{"began": 1, "nodes": ["a"]}, {"began": 2, "nodes": "b"}, {"nodes": [{"c": 1}]}, {}],
        ),
        ({"end_time": ["times", "closed"]}, [{}, {"times": None}, {"times": {}}, {"times": {"closed": "2026-03-04"}}]),
        ({"end_time": ["a", "b"]}, [{"a": {"x": 1}}, {"a": {"x": 1, "b": 2}}, {"a": {"b": None, "x": 1}}]),
        ({"start_time": ["t", 0], "end_time": ["t", 1]}, [{}, {"t": []}, {"t": [1]}, {"t": [2, 3]}, {"t": [None, 4]}]),
        (
            {"end_time": ["events", 0, "closed"]},
            [{"events": [{"k": 1}, {"k": 2}]}, {"events": [{"k": 1, "closed": 5}, {"k": 2}]}],
        ),
        ({"end_time": ["closed"]}, [{"end_time": "x", "start_time": 1, "hosts": "h"}, {"closed": 1, "hosts": "i"}]),
    ],
)
def test_a_generated_fingerprint_excludes_fields_mapped_to_times_and_hosts(mapping, examples):
    assert have_one_fingerprint(mapping, *({"name": "Disk full"} | one for one in examples))


@pytest.mark.parametrize(
    ("mapping", "examples"),
    [
        ({"end_time": ["closed"]}, [{"name": "a"}, {"name": "b"}]),
        ({"end_time": ["a", "closed"]}, [{"a": "x"}, {"a": "y"}]),
        ({"end_time": ["a", "closed"]}, [{"a": {"closed": 1, "x": 1}}, {"a": {"closed": 1, "x": 2}}]),
        ({"end_time": ["a", 0]}, [{"a": [1, 2]}, {"a": [1, 3]}]),
        ({"title": ["name"]}, [{"name": "a"}, {"name": "b"}]),
        ({"hosts": ["host"]}, [{"host": "a"}, {"host": "b"}]),
    ],
)
def test_unmapped_fields_change_the_generated_fingerprint(mapping, examples):
    assert not have_one_fingerprint(mapping, *examples)


def test_a_payload_is_not_changed_by_its_fingerprint():
    payload = {"name": "a", "t": [1, {"closed": 2}], "end_time": 3}
    copy = json.loads(json.dumps(payload))

    assert parse_plain(payload, {"end_time": {"path": ["t", 1, "closed"], "type": "number"}}).payload == copy


MAPPED = {
    "title": {"path": ["event", "names", 1], "type": "string"},
    "start_time": {"path": ["event", "opened"], "type": "datetime"},
    "end_time": {"path": ["event", "closed"], "type": "datetime"},
    "hosts": {"path": ["event", "affected"], "type": "array"},
    "severity": {"path": ["event", "level"], "type": "string"},
    "fingerprint": {"path": ["event", "key"], "type": "string"},
    "gitlab_environment_name": {"path": ["event", "env"], "type": "string"},
}


def test_a_mapping_selects_the_values():
    event = {"names": ["short", "Queue is stuck"], "opened": "2026-03-04T05:06:07Z", "affected": ["a", "b"]}
    parsed = parse_plain({"event": event | {"level": "LOW", "key": "fingerprint", "env": "staging"}}, MAPPED)

    assert (parsed.title, parsed.started_at, parsed.hosts) == ("Queue is stuck", MOMENT, ["a", "b"])
    assert (parsed.severity, parsed.environment, parsed.ended_at) == (Severity.LOW, "staging", None)
    assert parsed.fingerprint == "b5448ce070e8ff567c4870e9fe0aeba3c0a98330"


@pytest.mark.parametrize("value", [*BLANK, 7, {"names": ["only one"], "opened": "soon", "level": ""}])
def test_a_blank_mapped_value_falls_back_to_the_plain_key(value):
    plain = {"title": "Plain", "start_time": "2026-03-04T05:06:07Z", "severity": "info", "hosts": "c"}
    parsed = parse_plain(plain | {"event": value}, MAPPED)

    assert (parsed.title, parsed.started_at, parsed.severity) == ("Plain", MOMENT, Severity.INFO)
    assert parsed.hosts == ["c"]


def test_missing_plain_keys_fall_back_to_the_defaults():
    parsed = parse_plain({"event": {"opened": "soon"}}, MAPPED)

    assert (parsed.title, parsed.severity, is_now(parsed.started_at)) == ("New: Alert", Severity.CRITICAL, True)


def test_unmapped_fields_use_plain_keys():
    parsed = parse_plain({"event": {"names": ["", "Mapped"]}, "service": "till", "title": "Plain"}, MAPPED)

    assert (parsed.title, parsed.service) == ("Mapped", "till")


def test_only_the_mapped_end_marks_a_recovery():
    ended = parse_plain({"event": {"closed": "2026-03-04T05:06:07Z"}}, MAPPED)
    unmapped = parse_plain({"event": {"closed": None}, "end_time": "2026-03-04T05:06:07Z"}, MAPPED)

    assert (ended.ended_at, unmapped.ended_at) == (MOMENT, None)


def test_a_mapped_end_may_be_milliseconds():
    assert parse_plain({"event": {"closed": 1772600767000}}, MAPPED).ended_at == MOMENT


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (["a", "b", 1], "y"),
        (["a", "b", 2], None),
        (["a", "b", -1], None),
        (["a", "b", True], None),
        (["a", "b", "1"], None),
        (["a", 0], None),
        (["a", "c", "d"], None),
        (["z", "z"], None),
        ([], None),
    ],
)
def test_a_path_through_a_value_of_another_type_finds_nothing(path, expected):
    assert payload_values.value_at({"a": {"b": ["x", "y"], "c": "text"}}, path) == expected
    assert (
        parse_plain({"a": {"b": ["x", "y"], "c": "text"}}, {"title": {"path": path}}).title == expected or "New: Alert"
    )


@pytest.mark.parametrize("missing", BATCH)
def test_each_of_the_nine_keys_is_needed_for_a_batch(missing):
    assert elements.is_batch(BATCH | {"truncatedAlerts": 0})
    assert not elements.is_batch({key: value for key, value in BATCH.items() if key != missing})


@pytest.mark.parametrize("change", [{"version": "3"}, {"version": 4}, {"alerts": {}}, {"alerts": None}])
def test_other_versions_and_shapes_are_not_a_batch(change):
    assert not elements.is_batch(BATCH | change)


@pytest.mark.parametrize(
    ("annotations", "labels", "title"),
    [
        ({"title": "T", "summary": "S"}, {"alertname": "N"}, "T"),
        ({"title": "", "summary": "S"}, {"alertname": "N"}, "S"),
        ({"summary": None}, {"alertname": "N"}, "N"),
        ({"title": "x" * 201}, {}, "x" * 197 + "..."),
    ],
)
def test_the_title_of_a_prometheus_alert_is_the_first_present_field(annotations, labels, title):
    assert parse_prometheus(ELEMENT | {"annotations": annotations, "labels": labels}).title == title


@pytest.mark.parametrize(
    "change", [{"labels": {}}, {"labels": None}, {"labels": {"alertname": " "}}, {"startsAt": ""}, {"startsAt": None}]
)
def test_a_prometheus_alert_needs_a_title_and_a_start(change):
    assert parse_prometheus(ELEMENT | change) is None


def test_an_invalid_start_is_the_current_time():
    assert is_now(parse_prometheus(ELEMENT | {"startsAt": "soon"}).started_at)


@pytest.mark.parametrize(
    ("words", "severity"),
    [
        ("critical s1 p1 emergency fatal CRITICAL Fatal strange", Severity.CRITICAL),
        ("high s2 p2 major page Page", Severity.HIGH),
        ("medium s3 p3 error alert ERROR", Severity.MEDIUM),
        ("low s4 p4 warn warning minor Warning", Severity.LOW),
        ("info s5 p5 debug information notice Notice", Severity.INFO),
    ],
)
def test_severity_synonyms_of_prometheus_are_mapped(words, severity):
    severities = {
        parse_prometheus(ELEMENT | {"labels": {"alertname": "A", "severity": word}}).severity for word in words.split()
    }

    assert severities == {severity}


def test_a_prometheus_alert_without_severity_is_critical():
    assert parse_prometheus(ELEMENT).severity == Severity.CRITICAL


@pytest.mark.parametrize(
    ("address", "query"),
    [
        ("http://localhost:9090/graph?g0.expr=vector%281%29", "vector(1)"),
        ("http://localhost:9090/graph?g0.expr=up+%3D%3D+0&g0.tab=1", "up == 0"),
        ("http://localhost:9090/graph?g1.expr=vector%281%29", None),
        ("http://localhost:9090/graph", None),
        ("invalid url", None),
        ("http://[half/graph?g0.expr=1", None),
        (None, None),
        (7, None),
    ],
)
def test_the_query_of_a_prometheus_alert_is_read_from_its_address(address, query):
    assert elements.query_of(ELEMENT | {"generatorURL": address}) == query


def test_an_element_is_identified_by_its_own_fingerprint_else_by_its_labels():
    labels = {"labels": {"alertname": "A", "instance": "one"}}
    texts = {"annotations": {"summary": "A at 91 %"}, "startsAt": "2026-03-04T06:06:07+01:00", "generatorURL": "x"}

    assert parse_prometheus(ELEMENT | {"fingerprint": "theirs"}).fingerprint == grouping.sha1("theirs")
    assert parse_prometheus(ELEMENT | labels | texts).fingerprint == parse_prometheus(ELEMENT | labels).fingerprint
    assert parse_prometheus(ELEMENT | labels).fingerprint != parse_prometheus(ELEMENT).fingerprint


def test_a_mapped_fingerprint_goes_before_that_of_an_element():
    rules = ReadingRules({"fingerprint": {"path": ["labels", "alertname"]}})

    mapped = elements.parse_element(ELEMENT | {"fingerprint": "theirs"}, rules)
    blank = elements.parse_element(
        ELEMENT | {"fingerprint": "theirs", "labels": {}, "annotations": {"title": "A"}}, rules
    )

    assert (mapped.fingerprint, blank.fingerprint) == (grouping.sha1("HighLatency"), grouping.sha1("theirs"))


def test_the_fields_of_a_prometheus_alert_are_read():
    annotations = {"title": "T", "description": "D", "gitlab_incident_markdown": "M"}
    labels = {"gitlab_environment_name": "production", "severity": "page"}
    element = ELEMENT | {"annotations": annotations, "labels": labels}

    parsed = parse_prometheus(element)

    assert (parsed.description, parsed.environment, parsed.monitoring_tool) == ("D", "production", "Prometheus")
    assert (parsed.service, parsed.hosts, parsed.payload) == (None, [], element)


@pytest.mark.parametrize(
    ("change", "ended"),
    [
        ({"status": "resolved", "endsAt": "2026-03-04T05:06:07Z"}, MOMENT),
        ({"status": "Resolved", "endsAt": "2026-03-04T05:06:07Z"}, MOMENT),
        ({"status": "firing", "endsAt": "2026-03-04T05:06:07Z"}, None),
        ({"endsAt": "0001-01-01T00:00:00Z"}, None),
    ],
)
def test_a_prometheus_alert_is_resolved_only_by_its_status(change, ended):
    assert parse_prometheus(ELEMENT | change).ended_at == ended


def test_a_resolved_prometheus_alert_without_an_end_ended_now():
    assert is_now(parse_prometheus(ELEMENT | {"status": "resolved", "endsAt": None}).ended_at)


def test_a_batch_skips_invalid_alerts():
    batch = BATCH | {"alerts": [ELEMENT, {"labels": {}}, "text", None, ELEMENT | {"labels": {"alertname": "B"}}]}

    assert [one.title for one in parse_batch(batch)] == ["HighLatency", "B"]


def test_all_alerts_of_a_batch_are_read():
    elements = [ELEMENT | {"labels": {"alertname": f"A{number}"}} for number in range(150)]

    assert [one.title for one in parse_batch(BATCH | {"alerts": elements})] == [f"A{number}" for number in range(150)]


def test_what_a_batch_leaves_out_is_said():
    parsed = payloads.parse(BATCH | {"alerts": [{"labels": {}}, "text"], "truncatedAlerts": 12})

    assert parsed.notes == [
        "left out, without a title or a start: 2",
        "Prometheus itself left 12 alerts out (max_alerts)",
    ]


FIRING, RESOLVED = {"status": "firing"}, {"status": "resolved", "endsAt": "2026-03-04T07:00:00Z"}
LATER = {"startsAt": "2026-03-04T06:00:00Z"}


@pytest.mark.parametrize(
    ("changes", "states"),
    [
        ([FIRING, RESOLVED], [False]),
        ([RESOLVED, FIRING], [False]),
        ([RESOLVED, FIRING | LATER], [False]),
        ([FIRING, RESOLVED | LATER], [True]),
        ([FIRING, FIRING], [False, False]),
    ],
)
def test_of_several_elements_of_one_identity_the_newest_state_counts(changes, states):
    found = payloads.newest_of_each(payloads.parse(BATCH | {"alerts": [ELEMENT | one for one in changes]}).reports)

    assert [report.is_recovery for report in found] == states


@pytest.mark.parametrize(("version", "tool"), [("1", "Grafana"), ("4", "Grafana"), (None, "Grafana")])
def test_a_body_with_an_organization_is_a_batch_of_grafana(version, tool):
    batch = BATCH | {"version": version, "orgId": 1, "alerts": [ELEMENT]}

    assert [one.monitoring_tool for one in parse_batch(batch)] == [tool]


@pytest.mark.parametrize("path", [["labels", "job"], ["alerts", 0, "labels", "job"], ["commonLabels", "team"]])
def test_a_mapping_applies_to_each_element_of_a_batch(path):
    batch = BATCH | {
        "commonLabels": {"team": "till"},
        "alerts": [ELEMENT | {"labels": {"alertname": "A", "job": "till"}}],
    }

    [report] = payloads.parse(batch, ReadingRules({"service": {"path": path}})).reports

    assert report.parse().service == "till"


@pytest.mark.parametrize("word", ["Recovered", " OK ", "up", "false alarm", "CLOSED"])
def test_a_word_in_the_mapped_end_resolves_at_receipt(word):
    rules = ReadingRules({"end_time": {"path": ["state"]}})

    assert is_now(payloads.parse_plain({"title": "A", "state": word}, rules).parse().ended_at)
    assert not payloads.parse_plain({"title": "A", "end_time": word}).is_recovery


@pytest.mark.parametrize("value", ["Triggered", "down", 0, 1, 60, "1", True, "{EVENT.TIME}"])
def test_other_words_and_small_numbers_are_no_end(value):
    rules = ReadingRules({"end_time": {"path": ["state"]}})

    assert not payloads.parse_plain({"title": "A", "state": value}, rules).is_recovery


@pytest.mark.parametrize(
    ("value", "ends"), [(1, True), ("1", True), (1.0, True), ("gone", True), ("ok", False), (2, False)]
)
def test_the_values_that_mean_resolved_can_be_changed(value, ends):
    rules = ReadingRules({"end_time": {"path": ["state"]}}, resolved=frozenset({"1", "gone"}))

    assert payloads.parse_plain({"title": "A", "state": value}, rules).is_recovery is ends


def test_words_that_do_not_look_like_a_time_are_not_reported():
    rules = ReadingRules({"end_time": {"path": ["state"]}})

    triggered = payloads.parse_plain({"state": "Triggered"}, rules).unreadable_times
    garbled = payloads.parse_plain({"state": "2026-13-45"}, rules).unreadable_times

    assert (triggered, garbled) == ({}, {"end_time": {"path": "state", "value": "2026-13-45"}})


@pytest.mark.parametrize(
    ("word", "severity"),
    [("P2", Severity.HIGH), (" p2 ", Severity.HIGH), (3, Severity.LOW), ("low", Severity.LOW), ("odd", Severity.INFO)],
)
def test_a_severity_table_maps_words_of_the_payload(word, severity):
    table = {"p2": Severity.HIGH, "3": Severity.LOW, "*": Severity.INFO}

    assert payloads.parse_plain({"severity": word}, ReadingRules(severities=table)).parse().severity == severity


def test_a_path_goes_on_inside_a_text_that_is_an_object():
    text = json.dumps({"name": "A", "inner": json.dumps({"name": "B"})})

    assert payload_values.value_at({"m": text}, ["m", "name"]) == "A"
    assert payload_values.value_at({"m": text}, ["m", "inner", "name"]) is None
    assert payload_values.value_at({"m": "[1]"}, ["m", 0]) is None
    assert payload_values.value_at({"m": json.dumps({"name": "x" * (64 << 10)})}, ["m", "name"]) is None


def test_a_text_that_holds_an_object_is_unwrapped_once():
    assert read(json.dumps('{"title": "A"}').encode()) == {"title": "A"}
    with pytest.raises(Unreadable):
        read(json.dumps(json.dumps('{"title": "A"}')).encode())


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"a": 1,\n "b": }', "not JSON: expecting value in line 2, column 7"),
        (b'{"a":\n"\xff"}', "not JSON: a byte that is not UTF-8 in line 2"),
        (b"[1]", "not a JSON object"),
        (b'--x\r\nContent-Disposition: form-data; name="data"', "not JSON: a form with parts"),
        (b"payload=%7B%22title%22%3A1%7D", "not JSON: a form: choose JSON"),
    ],
)
def test_refused_bodies_are_explained_in_plain_words(body, reason):
    with pytest.raises(Unreadable) as refused:
        read(body)

    assert str(refused.value).startswith(reason)


def test_a_payload_is_flattened_to_dotted_keys():
    payload = {"a": {"b": {"c": 1}, "d": [1, {"e": 2}]}, "f": {}, "g": None}

    assert grouping.flatten(payload) == [("a.b.c", 1), ("a.d", [1, {"e": 2}]), ("f", {}), ("g", None)]


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_an_object_or_refused(body):
    try:
        parsed = read(body)
    except Unreadable:
        assert body.strip()
    else:
        assert parsed == (json.loads(body, parse_int=as_stored_number) if body.strip() else {})


def as_stored_number(digits):
    """Parse integers of more than 64 bits as the nearest float."""
    return int(digits) if -(2**63) <= int(digits) < 2**64 else float(digits)


MOMENTS = st.datetimes(
    min_value=dt.datetime(1000, 1, 2),
    max_value=dt.datetime(9999, 12, 30),
    timezones=st.integers(-14 * 60, 14 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes))),
)


@given(MOMENTS)
def test_every_time_is_returned_in_utc(moment):
    parsed = read_time(moment.isoformat())

    assert (parsed, parsed.utcoffset()) == (moment, dt.timedelta())


@given(st.dictionaries(st.sampled_from([*ELEMENT, "endsAt", "more"]), JSON), st.lists(JSON, max_size=3))
def test_any_alertmanager_payload_becomes_storable_alerts(changes, others):
    batch = read(json.dumps(BATCH | {"alerts": [ELEMENT, ELEMENT | changes, *others]}).encode())

    parsed = parse_batch(batch)

    assert parsed[0].title == "HighLatency"
    assert len(parsed) <= 2 + sum(isinstance(other, dict) for other in others)
    for one in parsed:
        assert 0 < len(one.title) <= 200
        assert len(one.fingerprint) == 40
        assert not any("\0" in text for text in (one.title, one.description or "", one.environment or ""))


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4), JSON, st.randoms(use_true_random=False))
def test_a_repeat_has_the_same_fingerprint_with_another_order_and_other_times(payload, other, rng):
    repeat = [*payload.items(), ("title", "a"), ("start_time", other), ("hosts", other)]
    rng.shuffle(repeat)

    first, second, third = (
        parse_plain(read(json.dumps(one).encode()))
        for one in (payload | {"title": "a"}, dict(repeat), payload | {"title": "b"})
    )

    assert first.fingerprint == second.fingerprint != third.fingerprint


@given(st.dictionaries(st.sampled_from([*payloads.FIELDS, "start_time", "end_time", "labels", "more"]), JSON))
def test_any_payload_becomes_a_storable_alert(payload):
    parsed = parse_plain(read(json.dumps(payload).encode()))

    assert 0 < len(parsed.title) <= 200
    assert sum(map(len, parsed.hosts)) <= 255
    assert parsed.fingerprint is None or len(parsed.fingerprint) == 40
    assert not any("\0" in text for text in (parsed.title, parsed.description or "", *parsed.hosts))


@pytest.mark.parametrize(
    ("body", "payload"),
    [
        (b'\xef\xbb\xbf{"title": "A"}', {"title": "A"}),
        ('{"title": "é"}'.encode("utf-16"), {"title": "é"}),
        (b"\xef\xbb\xbf", {}),
    ],
)
def test_a_byte_order_mark_is_accepted(body, payload):
    assert read(body) == payload


def test_an_incomplete_character_after_a_byte_order_mark_is_refused():
    with pytest.raises(MalformedPayload):
        read(b"\xff\xfe{")
