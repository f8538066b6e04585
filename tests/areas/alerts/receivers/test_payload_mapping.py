"""Fields of sample payloads and their mapping to alert fields (alert integrations reference, section 7)."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from project_service.areas.alerts.payloads import payload_mapping
from project_service.areas.alerts.payloads.payload_mapping import SampleField, Unusable, fields_of, fitting, read_sample
from project_service.areas.alerts.payloads.payload_values import value_at
from project_service.areas.alerts.payloads.payloads import parse_plain
from project_service.areas.alerts.receivers.reports import ReadingRules

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2**63) | st.text(max_size=5) | st.just("2026-03-04"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)
SAMPLES = st.dictionaries(st.text(max_size=3), JSON, max_size=4)
TEXT = {"string", "datetime", "number", "boolean"}
MAX_FIELDS = payload_mapping.MAX_FIELDS
SAMPLE = {
    "event": {
        "name": "Disk is full",
        "times": ["2026-03-04T05:06:07Z", None],
        "hosts": [{"name": "db-1"}, {"name": "db-2"}],
        "count": 7,
    },
    "id": "1234-5",
    "nothing": None,
    "yes": True,
    "share": 0.5,
    "empty": {},
}


def test_sample_fields_have_labels_and_types():
    assert {field.label: field.type for field in fields_of(SAMPLE, MAX_FIELDS)} == {
        "event/name": "string",
        "event/times": "array",
        "event/times[0]": "datetime",
        "event/hosts": "objects",
        "event/hosts[0]/name": "string",
        "event/hosts[1]/name": "string",
        "event/count": "number",
        "id": "datetime",
        "nothing": "null",
        "yes": "boolean",
        "share": "number",
    }


def test_a_path_is_a_list_of_keys_and_indexes():
    field = next(one for one in fields_of(SAMPLE, MAX_FIELDS) if one.label == "event/hosts[1]/name")

    assert (field.path, field.key) == (("event", "hosts", 1, "name"), '["event","hosts",1,"name"]')


@pytest.mark.parametrize(
    ("target", "types"),
    [
        ("title", TEXT),
        ("description", TEXT),
        ("start_time", {"string", "datetime", "number", "null"}),
        ("end_time", {"string", "datetime", "number", "null"}),
        ("service", TEXT),
        ("monitoring_tool", TEXT),
        ("hosts", {*TEXT, "array"}),
        ("severity", TEXT),
        ("fingerprint", {*TEXT, "array", "objects"}),
        ("gitlab_environment_name", TEXT),
    ],
)
def test_each_target_accepts_matching_types(target, types):
    fields = [SampleField((kind,), kind) for kind in (*TEXT, "null", "array", "objects")]

    assert {field.type for field in fitting(fields, target)} == types


def test_all_targets_are_listed():
    labels = ["Title", "Description", "Start time", "End time", "Service", "Monitoring tool", "Hosts", "Severity"]

    assert [label for label, _ in payload_mapping.TARGETS.values()] == [*labels, "Fingerprint", "Environment"]


def test_chosen_fields_round_trip_through_the_stored_mapping():
    chosen = {"title": '["event","name"]', "hosts": '["event","times"]', "end_time": '["nothing"]'}

    stored = payload_mapping.mapping_of(SAMPLE, chosen)

    assert stored == {
        "title": {"path": ["event", "name"], "type": "string", "label": "event/name"},
        "hosts": {"path": ["event", "times"], "type": "array", "label": "event/times"},
        "end_time": {"path": ["nothing"], "type": "datetime", "label": "nothing"},
    }
    assert payload_mapping.chosen_of(stored) == chosen


def test_paths_from_the_top_of_a_batch_are_those_of_its_alert():
    keys = (
        "version",
        "groupKey",
        "status",
        "receiver",
        "groupLabels",
        "commonLabels",
        "commonAnnotations",
        "externalURL",
    )
    batch = dict.fromkeys(keys, "x") | {"version": "4", "alerts": [{"labels": {"host": "h"}}]}

    found = payload_mapping.in_element(batch, {"hosts": '["alerts",0,"labels","host"]', "title": '["labels"]'})

    assert found == {"hosts": '["labels","host"]', "title": '["labels"]'}
    assert (
        payload_mapping.in_element({"alerts": []}, found | {"title": '["alerts",0,"a"]'})["title"] == '["alerts",0,"a"]'
    )


@pytest.mark.parametrize(
    "key", ['["event","times"]', '["nothing"]', '["event"]', "nonsense", "[]", "7", '["gone"]', "[{}]"]
)
def test_mismatched_fields_are_not_stored(key):
    assert payload_mapping.mapping_of(SAMPLE, {"title": key}) == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is not valid JSON"),
        ("[1]", "has to be a JSON object"),
        ("7", "has to be a JSON object"),
        ('{"a":"' + "x" * (1 << 20) + '"}', "is too big"),
        ("{" + "x" * (1 << 20), "is too big"),  # refused before it is parsed
        ('{"a":' * 101 + "1" + "}" * 101, "is too big"),
    ],
)
def test_an_invalid_sample_is_refused_with_a_reason(text, why):
    with pytest.raises(Unusable, match=why):
        read_sample(text)


def test_a_sample_of_maximum_size_is_read():
    assert read_sample('{"a":"' + "x" * ((1 << 20) - 8) + '"}').keys() == {"a"}


def test_a_sample_with_too_many_fields_offers_the_first_ones():
    sample = {f"key{number}": "x" for number in range(2500)}

    assert len(fields_of(sample, MAX_FIELDS)) == 2000
    assert payload_mapping.mapping_of(sample, {"title": '["key2499"]'})["title"]["label"] == "key2499"


@given(st.text(max_size=30) | JSON.map(json.dumps))
def test_any_text_is_accepted_or_refused_as_sample(text):
    with suppress(Unusable):
        assert read_sample(text) == json.loads(text)


@given(SAMPLES)
def test_every_field_path_resolves_to_a_value_of_its_type(sample):
    kinds = {"string": str, "datetime": str, "number": int, "boolean": bool, "array": list, "objects": list}
    kinds["null"] = type(None)

    for field in fields_of(sample, MAX_FIELDS):
        assert isinstance(value_at(sample, list(field.path)), kinds[field.type])


@given(SAMPLES, st.sampled_from(list(payload_mapping.TARGETS)))
def test_matching_fields_are_stored_and_read_back(sample, target):
    for field in fitting(fields_of(sample, MAX_FIELDS), target):
        stored = payload_mapping.mapping_of(sample, {target: field.key})

        assert payload_mapping.chosen_of(stored) == {target: field.key}
        assert value_at(sample, stored[target]["path"]) == value_at(sample, list(field.path))


@given(
    SAMPLES,
    st.dictionaries(st.sampled_from(list(payload_mapping.TARGETS)), st.lists(st.text(max_size=3) | st.integers())),
)
def test_any_mapping_yields_an_alert(sample, paths):
    stored = {target: {"path": path} for target, path in paths.items()}

    assert parse_plain(sample, ReadingRules(stored)).parse().title
