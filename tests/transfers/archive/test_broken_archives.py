"""Hostile archives: broken and foreign files, generated input."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import re
import time
from contextlib import suppress

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from project_service.kit import clock, exact_json
from project_service.kit.storage import storage
from project_service.transfers.archive import contents, extraction, json_stream, layout, legacy, reader
from project_service.transfers.archive.contents import BadArchive
from project_service.transfers.importing.mapping import map_row
from project_service.transfers.importing.mapping.context import ImportContext, ProjectState
from project_service.transfers.importing.mapping.parsing import parse_row
from project_service.transfers.importing.refusals import RowRefused
from project_service.transfers.importing.user_mapping import UserMapping
from tests.support.archives import make_archive, make_issue, make_note, unpack
from tests.support.sample_data import ADA, MAX
from tests.transfers.archive.support import BROKEN, SECRET, error_of

NO_ARCHIVES = [
    b"",
    b"\x1f",
    b"\x1f\x8b",
    b"\x1f\x8b\x08garbage that is no stream at all",
    b"PK\x03\x04 a zip",
    gzip.compress(b""),
    gzip.compress(b"not a tar" * 100),
    gzip.compress(bytes(1024)),
    gzip.compress(random.Random(2).randbytes(20_000)),
    make_archive({})[:-8],
    make_archive({})[:-4] + b"\0\0\0\0",
    make_archive({})[:-8] + b"\1\2\3\4" + make_archive({})[-4:],
    make_archive({"issues": [make_issue(1)]})[:150],
    gzip.compress(gzip.decompress(make_archive({}))[:1500]),
    gzip.compress(gzip.compress(b"x")),
    b"\0" * 1000,
]


@pytest.mark.parametrize("archive", NO_ARCHIVES, ids=range(len(NO_ARCHIVES)))
def test_an_incomplete_archive_fails_with_a_reason(archive, bring, as_):
    state = bring(archive)

    assert error_of(state)
    assert "/" not in error_of(state)
    assert storage().names("imports") + storage().names(f"projects/{state['id']}") == []


def test_every_truncation_of_an_archive_fails(take):
    whole = make_archive({"issues": [make_issue(1)]}, {"description": "x"})

    for size in range(2, len(whole), 7):
        with pytest.raises(BadArchive):
            take(whole[:size])


def start_of(tar, name):
    return tar.index(f"./{name}\0".encode())


@pytest.mark.parametrize("at", [2, 30, 120, 126, 150, 156, 259, 400])
def test_one_wrong_bit_in_a_header_fails_the_archive(at, take):
    whole = bytearray(gzip.decompress(make_archive({"issues": [make_issue(1)], "labels": []})))
    whole[start_of(whole, "tree/project/issues.ndjson") + at] ^= 4

    with pytest.raises(BadArchive, match=BROKEN):
        take(gzip.compress(bytes(whole)))


@pytest.mark.parametrize("size", [1, 200, 511])
def test_a_tar_that_ends_within_a_header_fails(size, take):
    whole = gzip.decompress(make_archive({"issues": [make_issue(1)]}))

    with pytest.raises(BadArchive, match=BROKEN):
        take(gzip.compress(whole[: start_of(whole, "tree/project/issues.ndjson") + size]))


@pytest.mark.parametrize("rest", [b"", bytes(512), bytes(512) + b"garbage", bytes(1024) + b"x" * 512])
def test_a_tar_ends_with_a_block_of_zeros_or_with_its_last_member(rest, take):
    whole = gzip.decompress(make_archive({"issues": [make_issue(1)], "labels": []}))

    found = take(gzip.compress(whole[: start_of(whole, "tree/project/labels.ndjson")] + rest))

    assert list(found.relations) == ["issues"]


def test_trailing_garbage_is_handled(take):
    with suppress(BadArchive):
        take(make_archive({}) + b"garbage")


@pytest.mark.parametrize(
    ("content", "fails"),
    [
        (b'{"title":"\xff"}\n', True),
        (b"\xff\xfe{\n", True),
        ('{"title":"a"}\n'.encode("utf-16"), True),
        (b'\xef\xbb\xbf{"title":"a"}\n', True),
        (b'{"title":"a\0b"}\n', True),
        (b'{"title":"\\ud800"}\n', True),
        (b'{"title":"a"} {"title":"b"}\n', True),
        (b'{"title":NaN}\n', True),
        (b'{"title":"a"}\r\n', False),
    ],
)
def test_invalid_json_lines_are_refused_rows(content, fails, bring):
    state = bring(make_archive({}, files={"tree/project/labels.ndjson": content}))

    assert (error_of(state) == "Incorrect JSON format") if fails else (state["import_status"] == "finished")


@pytest.mark.parametrize("depth", [101, 1023, 1024, 5_000])
def test_rows_nested_beyond_the_parser_limit_are_skipped(depth, bring):
    deep = b'{"title":"a","x":' + b"[" * depth + b'"{"' + b"]" * depth + b"}\n"

    state = bring(make_archive({}, files={"tree/project/labels.ndjson": deep + b'{"title":"b"}\n'}))

    assert state["import_status"] == "finished"
    assert [(one["relation_name"], one["line_number"]) for one in state["failed_relations"]] == [("labels", 1)]


def nested(depth):
    value = "end"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("relation", ["issues", "labels", "boards", "merge_requests", "project_members"])
def test_rows_that_are_nested_too_deeply_are_refused(relation, bring):
    row = make_issue(1, source_branch="a", target_branch="b", user=None, invite_email="a@b", odd=nested(200))

    state = bring(make_archive({relation: [row]}), person=ADA)

    assert (state["import_status"], [failed["exception_message"] for failed in state["failed_relations"]]) == (
        "finished",
        ["nested too deeply"],
    )


@pytest.mark.parametrize(
    ("relation", "changes"),
    [
        ("issues", {"title": nested(300)}),
        ("issues", {"description": nested(300)}),
        ("issues", {"notes": [make_note(nested(300))]}),
        ("issues", {"milestone": {"title": nested(300)}}),
        ("labels", {"color": nested(300)}),
        ("snippets", {"content": nested(300)}),
        ("protected_tags", {"name": nested(300)}),
    ],
)
def test_too_deep_values_are_not_converted_to_text(relation, changes, bring):
    state = bring(make_archive({relation: [make_issue(1) | changes, make_issue(2, name="v*")]}))

    assert (state["import_status"], [failed["line_number"] for failed in state["failed_relations"]]) == (
        "finished",
        [1],
    )


@pytest.mark.parametrize("relation", ["protected_tags", "project_feature", "error_tracking_setting"])
def test_too_deeply_nested_settings_are_ignored(relation, bring):
    row = {"name": "v*", "api_url": nested(300), "create_access_levels": nested(300), "odd": nested(300)}

    assert bring(make_archive({relation: [row]}))["import_status"] == "finished"


def test_a_too_deeply_nested_project_fails(bring):
    assert error_of(bring(make_archive({}, {"odd": nested(300)}))) == "Incorrect JSON format"


def test_a_too_deeply_nested_position_is_dropped(bring, as_):
    note = make_note(position='{"a":' + "[" * 300 + "]" * 300 + "}", type="DiffNote")

    state = bring(make_archive({"issues": [make_issue(1, notes=[note])]}))

    assert state["import_status"] == "finished"
    assert len(as_(MAX).get(f"/projects/{state['id']}/issues/1/notes").json) == 1


def test_nul_characters_in_positions_are_removed(bring):
    note = make_note(position=json.dumps({"new_path": "a\0"}), type="DiffNote")

    state = bring(make_archive({"issues": [make_issue(1, notes=[note])]}))

    assert [failed["exception_message"] for failed in state["failed_relations"]] == ["string contains null byte"]


TOO_MUCH = {
    "deep": (nested(300), "nested too deeply"),
    "deep inside": ({"a": [{"b": nested(98)}, 1]}, "nested too deeply"),
    "many lists": ([[], [{"a": []}]] * 200_000, "The line has too many values"),
    "many numbers": ({"a": [0] * 2_000_000}, "The line has too many values"),
}


@pytest.mark.parametrize(
    ("relation", "odd", "message"),
    [
        pytest.param(relation, *case, id=f"{name}-{relation}", marks=pytest.mark.nightly if is_long else ())
        for relation in ("issues", "boards", "project_feature")
        for name, case in TOO_MUCH.items()
        for is_long in ["many" in name and (relation, name) != ("issues", "many lists")]
    ],
)
def test_an_oversized_row_is_skipped_in_both_formats(relation, odd, message, bring, monkeypatch):
    rows = [make_issue(number, source_branch="a", target_branch="b") for number in (1, 2, 3)]
    rows[1]["odd"] = odd
    if relation == "project_feature":
        rows = rows[1:2]
    legacy = {relation: rows[0] if relation == "project_feature" else rows, "description": "And then"}

    old = bring(make_archive(files={"project.json": json.dumps(legacy).encode()}))
    new = bring(make_archive({relation: rows}), path="again")

    assert [
        [(one["exception_message"], one["line_number"]) for one in state["failed_relations"]] for state in (old, new)
    ] == [[(message, 2 if len(rows) > 1 else 1)]] * 2
    assert [state["import_status"] for state in (old, new)] == ["finished"] * 2


@pytest.mark.parametrize(
    "odd", [nested(300), pytest.param([[]] * 700_000, marks=pytest.mark.nightly)], ids=["deep", "many"]
)
def test_an_oversized_project_of_the_old_format_fails(odd, bring):
    for path, value in (("one", odd), ("two", {"a": odd})):
        legacy = json.dumps({"issues": [make_issue(1)], "odd": value}).encode()

        assert error_of(bring(make_archive(files={"project.json": legacy}), path=path)) == "Incorrect JSON format"


def test_the_last_of_duplicate_relations_in_the_old_format_counts(bring, as_):
    legacy = f'{{"issues":{json.dumps([nested(300)])},"issues":{json.dumps([make_issue(1)])}}}'

    state = bring(make_archive(files={"project.json": legacy.encode()}))

    assert state["failed_relations"] == []
    assert [issue["iid"] for issue in as_(MAX).get(f"/projects/{state['id']}/issues").json] == [1]


@pytest.mark.parametrize("between", ["", '"labels":[],', '"labels":[{"title":"a"}],"boards":{},'])
def test_attributes_of_the_old_format_are_counted_together(between, take):
    odd = json.dumps([0, *([],) * 150_000])
    members = "".join(f'{between}"odd{number}":{odd},' for number in range(8))
    found = take(make_archive(files={"project.json": f'{{{members}"a":1}}'.encode()}))

    with pytest.raises(BadArchive, match="Incorrect JSON format"):
        legacy.convert_legacy(found)


def test_the_old_format_is_refused_when_too_much_is_skipped(bring, monkeypatch):
    monkeypatch.setattr(json_stream, "MAX_SKIPPED_EVENTS", 50_000)
    for number, path, expected in ((3, "few", "finished"), (6, "many", "failed")):
        legacy = json.dumps({"issues": [{"odd": nested(300)}] * number}).encode()

        assert bring(make_archive(files={"project.json": legacy}), path=path)["import_status"] == expected


def test_iids_of_skipped_rows_are_free(bring, as_):
    legacy = json.dumps({"issues": [make_issue(1, odd=nested(300)), make_issue(1), make_issue(2)]}).encode()

    state = bring(make_archive(files={"project.json": legacy}))

    assert [one["line_number"] for one in state["failed_relations"]] == [1]
    assert {issue["iid"] for issue in as_(MAX).get(f"/projects/{state['id']}/issues").json} == {1, 2}


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "number", ["9" * 5000, "9" * 4301, "1e400", "-1e400", "1e99999999999999999999", f'{2**64},"far":1e400']
)
@pytest.mark.parametrize("is_legacy", [False, True])
def test_oversized_numbers_are_invalid_json(bring, number, is_legacy):
    row = b'{"title":"A","iid":1,"odd":%s}' % number.encode()
    legacy, tree = {"project.json": b'{"issues":[%s]}' % row}, {"tree/project/issues.ndjson": row}

    state = bring(make_archive(files=legacy) if is_legacy else make_archive({}, files=tree))

    assert error_of(state) == "Incorrect JSON format"


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("relations", "project"),
    [
        ({"project_members": [{"access_level": 30, "user": {"id": 7, "email": "a\0@b"}}]}, {}),
        ({"protected_tags": [{"name": "v\0"}]}, {}),
        ({"error_tracking_setting": [{"api_url": "http://a\0", "project_name": "\0"}]}, {}),
        ({"project_feature": [{"odd\0": "\0"}]}, {}),
        ({"boards": [{"name": "\0"}]}, {}),
        ({"issues": [make_issue(1, notes=[make_note("a\0")])]}, {}),
    ],
)
def test_rows_with_nul_characters_are_skipped(relations, project, bring):
    state = bring(make_archive(relations, project), person=ADA)

    assert state["import_status"] == "finished"


def test_a_project_whose_description_has_a_nul_fails(bring):
    assert error_of(bring(make_archive({}, {"description": "a\0b"}))) == "string contains null byte"


ODD = [1, True, 1.5, 1e300, 2**63, 2**64 - 1, -(2**63), "text", "", [], [1], {}, {"a": 1}, [[None]], "2021-13-45", None]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "relation", ["labels", "milestones", "issues", "merge_requests", "snippets", "project_members"]
)
def test_rows_with_values_of_wrong_types_are_handled(relation, bring, as_):
    names = {
        "labels": ["title", "color", "description", "priorities", "created_at"],
        "milestones": ["title", "iid", "state", "due_date", "events", "description"],
        "issues": [
            *[
                "iid",
                "title",
                "description",
                "state",
                "author_id",
                "closed_by_id",
                "weight",
                "due_date",
                "confidential",
            ],
            *["notes", "events", "label_links", "milestone", "issue_assignees", "designs", "created_at", "closed_at"],
            *["issue_type", "discussion_locked", "assignee_id", "time_estimate"],
        ],
        "merge_requests": ["iid", "source_branch", "target_branch", "state", "source_project_id", "diff_head_sha"],
        "snippets": ["title", "content", "visibility_level", "file_name", "author_id", "notes"],
        "project_members": ["access_level", "user", "invite_email", "user_id"],
    }[relation]
    base = make_issue(1, source_branch="a", target_branch="b", access_level=30, user={"id": 1, "email": "a@b.c"})
    lines = [
        base | {"iid": 1 + at, "title": f"t{at}"} | {name: odd}
        for at, (name, odd) in enumerate(itertools.product(names, ODD))
    ]

    state = bring(make_archive({relation: lines}), person=ADA)

    assert (state["import_status"], state["import_error"]) == ("finished", None)
    assert as_(ADA).get(f"/projects/{state['id']}/issues?per_page=100").status_code == 200
    assert as_(ADA).get(f"/projects/{state['id']}/events?per_page=100").status_code == 200


@pytest.mark.both_databases
@pytest.mark.parametrize("relation", ["notes", "events"])
def test_nested_rows_with_values_of_wrong_types_are_handled(relation, bring, as_, run_jobs):
    names = [
        *["note", "author_id", "author", "created_at", "updated_at", "system", "confidential", "type", "position"],
        *["attachment", "commit_id", "events", "action", "target_type", "push_event_payload", "fingerprint", "extra"],
    ]
    base = make_note() | {"action": "created", "target_type": "Issue"}
    lines = [
        make_issue(1 + at, **{relation: [base | {name: odd}, odd]})
        for at, (name, odd) in enumerate(itertools.product(names, ODD))
    ]

    state = bring(make_archive({"issues": lines}))

    client = as_(MAX)
    assert (state["import_status"], state["import_error"]) == ("finished", None)
    assert client.get(f"/projects/{state['id']}/events?per_page=100").status_code == 200
    assert client.post(f"/projects/{state['id']}/export").status_code == 202
    run_jobs()
    assert unpack(client.get(f"/projects/{state['id']}/export/download").data)


KEYS = sorted(
    {
        *(*layout.ISSUE, *layout.ISSUE_NESTED, *layout.NOTE, *layout.MERGE_REQUEST, *layout.SNIPPET),
        *(*layout.MILESTONE, *layout.EVENT, "label", "user", "author", "milestone", "filename", "id"),
        *("push_event_payload", "priorities"),
    }
)


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from(["opened", "closed", "created", "2021-01-01T00:00:00Z", "DiffNote", "Note", '{"a":1}'])
)


def deeper(inner):
    names = st.sampled_from(KEYS) | st.text(max_size=5)
    return st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4)


JSON = st.recursive(LEAVES, deeper, max_leaves=15)


NEEDED = {"title": "t", "source_branch": "a", "target_branch": "b"}


ROW = st.dictionaries(st.sampled_from(KEYS), JSON, max_size=12).map(lambda row: NEEDED | row)


TRANSLATED = st.sampled_from(["labels", "milestones", "issues", "merge_requests", "snippets", "boards"])


class Numbers:
    """Ids without a database."""

    def __init__(self):
        self.last = 0

    def take(self):
        self.last += 1
        return self.last

    __next__ = take

    def __iter__(self):
        return self


@given(rows=st.lists(ROW | JSON, min_size=1, max_size=3), relation=TRANSLATED)
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_row_is_imported_or_a_failure(rows, relation):
    context = ImportContext(1, UserMapping(5, accounts={7: 8}), ProjectState(), clock.now())
    context.ids = dict.fromkeys(context.ids, Numbers())

    for line, row in enumerate(rows, start=1):
        try:
            parsed = parse_row(orjson.dumps(row))
        except TypeError:  # an integer that JSON of ours does not write
            continue
        if isinstance(parsed, RowRefused):
            context.record_failure(relation, line, parsed)
        else:
            map_row(context, relation, line, parsed)

    for stored in context.batch.rows.values():
        for row in stored:
            for value in row:
                if isinstance(value, dict | list):
                    assert orjson.dumps(value)
                if isinstance(value, int):
                    assert abs(value) < 2**63
                if isinstance(value, str):
                    assert "\0" not in value


@given(data=st.data())
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_damaged_archive_is_read_or_refused(data, tmp_path_factory):
    whole = bytearray(
        gzip.decompress(
            make_archive({"issues": [make_issue(1)]}, files={f"uploads/{SECRET}/{'x' * 120}": b"x", "avatar/a": b"b"})
        )
    )
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(whole) - 1))
        new = data.draw(st.binary(min_size=1, max_size=12))
        whole[at : at + len(new)] = new
        start = at - at % 512  # with its checksum right it gets further
        if data.draw(st.booleans()) and len(whole) >= start + 512:
            header = whole[start : start + 512]
            header[148:156] = b" " * 8
            whole[start + 148 : start + 156] = b"%06o\0 " % sum(header)
    place = tmp_path_factory.mktemp("fuzz")
    (place / "archive.tar.gz").write_bytes(gzip.compress(bytes(whole), 1))

    try:
        found = extraction.unpack(place / "archive.tar.gz", place / "unpacked")
        found.check()
        legacy.convert_legacy(found)
        reader.project_of(found)
        for relation in reader.relations_of(found):
            for _, raw in reader.rows_of(found, relation):
                parse_row(raw)
    except BadArchive:
        pass
    assert {path.name for path in place.iterdir()} <= {"archive.tar.gz", "unpacked"}


@given(content=st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_text_in_the_old_format_is_split_or_refused(content, tmp_path_factory):
    place = tmp_path_factory.mktemp("legacy")
    found = contents.Unpacked(place, texts={"VERSION": "0.2.4"}, legacy=place / "project.json")
    found.legacy.write_bytes(content)

    try:
        legacy.convert_legacy(found)
        reader.project_of(found)
        for relation in reader.relations_of(found):
            for _, raw in reader.rows_of(found, relation):
                parse_row(raw)
    except BadArchive:
        pass


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":' + b"9" * 30 + b',"b":"' + b'\\"' * 2_000_000,
        b'{"a":' + b"9" * 30 + b',"b":[' + b"9" * 4300 + b"," + (b"9" * 4300 + b",") * 2000 + b"1]}",
        b'{"a":' + b"9" * 30 + b',"b":"' + b"x" * 60_000_000 + b'"}',
    ],
    ids=["a text without an end", "long numbers", "a long text"],
)
def test_the_search_for_oversized_numbers_takes_linear_time(text, tmp_path):
    place = tmp_path / "project.json"
    place.write_bytes(text)
    started = time.monotonic()

    json_stream._can_be_read(place)

    assert time.monotonic() - started < 5


@pytest.mark.parametrize("window", [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 50])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"1234": "1\\"4", "a": 123}', True),
        (b'{"1234": "1\\\\", "a": 1234}', False),
        (b'{"a": "1\\"234567", "b": [12, 345]}', True),
        (b'["\\"", 1234, "a"]', False),
        (b'"12\\', True),
    ],
)
def test_oversized_numbers_are_found_across_chunks(text, expected, window, tmp_path, monkeypatch):
    monkeypatch.setattr(exact_json, "MAX_DIGITS", 3)
    monkeypatch.setattr(json_stream, "WINDOW_BYTES", window)
    place = tmp_path / "project.json"
    place.write_bytes(text)

    found = json_stream._can_be_read(place)

    longest = max(map(len, re.findall(rb'"(?:[^"\\]|\\.)*"?', text)))
    assert found == expected or (longest >= window - 1 and not found)  # longer than any part is not read either
