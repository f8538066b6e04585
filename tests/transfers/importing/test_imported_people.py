"""People of an archive: members, authors and assignees."""

from __future__ import annotations

import functools
import tracemalloc

import pytest

from project_service.transfers.importing import user_mapping as transfer_people
from tests.support.archives import MOMENT as MADE
from tests.support.archives import make_archive, make_issue, make_note, rows
from tests.support.sample_data import (
    ADA,
    DEV,
    MAX,
    RITA,
)
from tests.transfers.importing.support import MEMBERS, export


@pytest.mark.both_databases
def test_an_administrators_import_maps_members_by_email(bring, as_, people):
    archive = make_archive(
        {
            "issues": [
                make_issue(number, author_id=number, notes=[make_note(author_id=number)]) for number in (7, 8, 9)
            ],
            "project_members": MEMBERS,
        }
    )

    state = bring(archive, person=ADA)

    client = as_(ADA)
    issues = client.get(f"/projects/{state['id']}/issues?sort=asc").json
    notes = [client.get(f"/projects/{state['id']}/issues/{issue['iid']}/notes").json[0] for issue in issues]
    levels = {one["username"]: one["access_level"] for one in client.get(f"/projects/{state['id']}/members").json}
    assert {issue["iid"]: issue["author"]["username"] for issue in issues} == {7: DEV, 8: RITA, 9: ADA}
    assert [("imported from" in note["body"]) for note in sorted(notes, key=lambda note: note["noteable_iid"])] == [
        False,
        False,
        True,
    ]
    assert levels == {ADA: 40, DEV: 40, RITA: 20}
    events = client.get(f"/projects/{state['id']}/events").json
    assert [event["action_name"] for event in events] == ["created"]


@pytest.mark.both_databases
def test_imported_memberships_keep_their_expiry(bring, as_, people):
    members = [
        {"access_level": 20, "expires_at": "2101-01-01", "user": {"id": 7, "email": "dev@example.org"}},
        {"access_level": 30, "expires_at": "2101/02/03", "user": {"id": 7, "email": "dev@example.org"}},
        {"access_level": 20, "expires_at": "tomorrow", "user": {"id": 8, "email": "rita@example.org"}},
    ]

    state = bring(make_archive({"project_members": members}), person=ADA)

    shown = as_(ADA).get(f"/projects/{state['id']}/members").json
    assert {one["username"]: (one["access_level"], one["expires_at"]) for one in shown} == {
        ADA: (40, None),
        DEV: (30, "2101-02-03"),  # and Rita none, for hers would have no end
    }


@pytest.mark.parametrize("address", ["{}" + "x" * 100_000, "dev@example.org", "{}@example.org"])
def test_member_data_is_read_in_bounded_batches(address, people, monkeypatch):
    monkeypatch.setattr(transfer_people, "MEMBERS_AT_ONCE", 10)
    held = []

    def members():
        for number in range(100):
            user = {"id": number, "email": address.format(number)}
            yield {"access_level": 30, "expires_at": f"2101-01-01{number}{'x' * 200_000}", "user": user}
            held.append(tracemalloc.get_traced_memory()[0])

    tracemalloc.start()
    try:
        transfer_people.map_users(people[ADA], members())
    finally:
        tracemalloc.stop()

    assert max(held) < 1 << 20


def test_access_requests_do_not_become_members(bring, as_, people, run_jobs):
    request = {"access_level": 30, "requested_at": MADE, "user": {"id": 7, "email": "dev@example.org"}}

    number = bring(make_archive({"issues": [make_issue(1)], "project_members": [request]}), person=ADA)["id"]

    client = as_(ADA)
    assert [one["username"] for one in client.get(f"/projects/{number}/members").json] == [ADA]
    assert client.get(f"/projects/{number}/issues/1").json["author"]["username"] == ADA
    kept = rows(export(client, number, run_jobs), "project_members")
    assert [(one["access_level"], one["user"]["email"]) for one in kept if one["requested_at"]] == [
        (30, "dev@example.org")
    ]


@pytest.mark.parametrize(
    ("level", "given"), [(-1, None), (0, None), (5, None), (10, 10), (15, 10), (35, 30), (50, 40), (60, 40)]
)
def test_imported_members_do_not_get_a_higher_role(level, given, bring, as_, people):
    member = {"access_level": level, "user": {"id": 7, "email": "dev@example.org"}}

    number = bring(make_archive({"issues": [make_issue(1)], "project_members": [member]}), person=ADA)["id"]

    client = as_(ADA)
    levels = {one["username"]: one["access_level"] for one in client.get(f"/projects/{number}/members").json}
    assert (levels.get(DEV), client.get(f"/projects/{number}/issues/1").json["author"]["username"]) == (given, DEV)


@pytest.mark.both_databases
def test_imports_of_other_users_map_no_members(bring, as_):
    archive = make_archive({"issues": [make_issue(1, notes=[make_note()])], "project_members": MEMBERS})

    state = bring(archive)

    client = as_(MAX)
    [issue] = client.get(f"/projects/{state['id']}/issues").json
    [note] = client.get(f"/projects/{state['id']}/issues/1/notes").json
    members = [one["username"] for one in client.get(f"/projects/{state['id']}/members").json]
    assert (issue["author"]["username"], note["author"]["username"], members) == (MAX, MAX, [MAX])
    assert note["body"] == "A note\n\n *By Tess on 2021-02-15T15:56:00 (imported from GitLab)*"


@pytest.mark.parametrize(
    ("note", "body"),
    [
        (make_note(""), "*Blank note*\n\n *By Tess on 2021-02-15T15:56:00 (imported from GitLab)*"),
        (make_note(None), "*Blank note*\n\n *By Tess on 2021-02-15T15:56:00 (imported from GitLab)*"),
        (make_note("x", system=True), "x\n\n *By Tess on 2021-02-15T15:56:00 (imported from GitLab)*"),
        (make_note("x", author=None), "x\n\n *By  on 2021-02-15T15:56:00 (imported from GitLab)*"),
        (
            make_note("x", updated_at="2016-06-14T15:02:47Z"),
            "x\n\n *By Tess on 2016-06-14T15:02:47Z (imported from GitLab)*",
        ),
        (
            make_note("x", updated_at="2016-06-14T15:02:47.5+02:00"),
            "x\n\n *By Tess on 2016-06-14T15:02:47 (imported from GitLab)*",
        ),
    ],
)
def test_notes_of_unmapped_users_name_their_author(note, body, bring, as_):
    state = bring(make_archive({"issues": [make_issue(1, notes=[note])]}))

    [shown] = as_(MAX).get(f"/projects/{state['id']}/issues/1/notes").json
    assert shown["body"] == body


def test_user_references_are_mapped_or_become_the_importer(bring, as_, people, run_jobs):
    row = make_issue(1, author_id=7, closed_by_id=8, updated_by_id=9, issue_assignees=[{"user_id": 7}, {"user_id": 9}])
    number = bring(make_archive({"issues": [row], "project_members": MEMBERS}), person=ADA)["id"]

    [line] = rows(export(as_(ADA), number, run_jobs), "issues")
    ids = {name: people[name].id for name in (ADA, DEV, RITA)}
    assert (line["author_id"], line["closed_by_id"], line["updated_by_id"]) == (ids[DEV], ids[RITA], ids[ADA])
    assert {one["user_id"] for one in line["issue_assignees"]} == {ids[DEV], ids[ADA]}


def test_assignees_mapped_to_one_user_are_merged(bring, as_):
    row = make_issue(1, issue_assignees=[{"user_id": 7}, {"user_id": 8}])
    state = bring(make_archive({"issues": [row]}))

    [issue] = as_(MAX).get(f"/projects/{state['id']}/issues").json
    assert [one["username"] for one in issue["assignees"]] == [MAX]


@pytest.mark.parametrize("name", ["merge_request_assignees", "merge_request_reviewers"])
def test_merge_request_assignees_are_unique(name, bring, as_, run_jobs):
    people = [{"user_id": number, "state": "unreviewed"} for number in (7, 8, 7, 9)]
    row = make_issue(1, source_branch="a", target_branch="b", **{name: people})
    number = bring(make_archive({"merge_requests": [row], "project_members": MEMBERS}), person=ADA)["id"]

    [line] = rows(export(as_(ADA), number, run_jobs), "merge_requests")
    assert len(line[name]) == len({one["user_id"] for one in line[name]}) == 3


def test_notes_in_passed_through_rows_name_their_author(bring, as_, run_jobs):
    known, stranger = make_note("Known", author_id=7), make_note("", author_id=99)
    odd = [{"note": {"a": 1}}, {"note": True}, {"id": 5, "type": None}, 5]
    deep = functools.reduce(lambda inner, _: {"a": inner}, range(99), {})
    relations = {
        "project_members": MEMBERS,
        "oddities": [{"notes": odd}, deep, {"notes": [stranger | {"note": 5}]}],
        "ci_pipelines": [{"iid": 1, "notes": [known, stranger], "stages": [{"notes": [stranger]}, {"notes": None}]}],
        "commit_notes": [stranger, known],
    }
    number = bring(make_archive(relations), person=ADA)["id"]

    files = export(as_(ADA), number, run_jobs)
    [pipeline], notes = rows(files, "ci_pipelines"), rows(files, "commit_notes")
    signed = f"*Blank note*\n\n *By Tess on {MADE.partition('.')[0]} (imported from GitLab)*"
    assert [note["note"] for note in pipeline["notes"]] == ["Known", signed]
    assert pipeline["stages"] == [{"notes": [pipeline["notes"][1]]}, {"notes": None}]
    assert [note["note"] for note in notes] == [signed, "Known"]
    *kept, numbered = rows(files, "oddities")
    assert (kept, numbered["notes"][0]["note"]) == ([{"notes": odd}, deep], signed.replace("*Blank note*", "5"))


@pytest.mark.parametrize(("person", "invited"), [(ADA, True), (MAX, False)])
def test_invitations_of_an_administrators_import_are_exported(person, invited, bring, as_, run_jobs):
    invitation = {"user": None, "invite_email": "new@example.org", "access_level": 30}
    state = bring(make_archive({"project_members": [invitation]}), person=person)

    addresses = [one["invite_email"] for one in rows(export(as_(person), state["id"], run_jobs), "project_members")]
    assert ("new@example.org" in addresses, state["failed_relations"]) == (invited, [])
