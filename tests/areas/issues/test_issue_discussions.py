"""Discussions of issues: comments with replies."""

from __future__ import annotations

import re

import pytest

from project_service.areas.issues.discussions import queries
from project_service.domain.events.models import Event
from project_service.kit.db.session import db
from tests.support.archives import make_archive, send
from tests.support.sample_data import ADA, DEV, GUS, MAX, NOBODY, RITA, SAM, make_group
from tests.transfers.importing.support import export


@pytest.fixture
def issue(project, as_):
    """The path of an issue."""
    made = as_(RITA).post(f"/projects/{project.id}/issues", json={"title": "Totals"}).json
    return f"/projects/{project.id}/issues/{made['iid']}"


def test_a_new_discussion_has_one_note(issue, as_):
    response = as_(GUS).post(f"{issue}/discussions", json={"body": "Why?"})

    assert response.status_code == 201
    assert list(response.json) == ["id", "individual_note", "notes"]
    assert re.fullmatch("[0-9a-f]{40}", response.json["id"])
    (note,) = response.json["notes"]
    assert (response.json["individual_note"], note["type"], note["body"]) == (False, "DiscussionNote", "Why?")
    assert as_(DEV).get(f"{issue}/discussions/{response.json['id']}").json == response.json
    assert as_(DEV).get(issue).json["user_notes_count"] == 1


def test_a_reply_turns_a_comment_into_a_discussion(issue, as_):
    comment = as_(GUS).post(f"{issue}/notes", json={"body": "Why?"}).json
    as_(RITA).put(issue, json={"state_event": "close"})
    plain, system = as_(GUS).get(f"{issue}/discussions").json
    path = f"{issue}/discussions/{plain['id']}"

    response = as_(DEV).post(f"{path}/notes", json={"body": "Because."})

    assert (plain["individual_note"], system["individual_note"]) == (True, True)
    assert (response.status_code, response.json["type"], response.json["body"]) == (201, "DiscussionNote", "Because.")
    after = as_(GUS).get(path).json
    assert (after["individual_note"], [note["body"] for note in after["notes"]]) == (False, ["Why?", "Because."])
    assert after["notes"][0]["updated_at"] == comment["updated_at"]
    assert [note["id"] for note in as_(GUS).get(f"{path}/notes").json] == [note["id"] for note in after["notes"]]
    as_(MAX).delete(f"{path}/notes/{comment['id']}")
    assert db.session.query(Event).filter_by(target_id=comment["id"], target_type="Note").count() == 0


def test_system_notes_are_not_replied_to(issue, as_):
    as_(RITA).put(issue, json={"state_event": "close"})
    (system,) = as_(GUS).get(f"{issue}/discussions").json

    response = as_(RITA).post(f"{issue}/discussions/{system['id']}/notes", json={"body": "Really?"})

    assert response.json == {"message": "400 Bad request - Discussion can not be replied to."}


def test_discussions_are_paged_in_the_order_of_their_first_notes(issue, as_):
    first, second = (as_(GUS).post(f"{issue}/discussions", json={"body": body}).json for body in "ab")
    as_(GUS).post(f"{issue}/discussions/{first['id']}/notes", json={"body": "c"})

    pages = [as_(GUS).get(f"{issue}/discussions?per_page=1&page={number}") for number in (1, 2)]

    assert [[each["id"] for each in page.json] for page in pages] == [[first["id"]], [second["id"]]]
    assert (pages[0].headers["X-Total"], len(pages[0].json[0]["notes"])) == ("2", 2)


def test_internal_discussions_are_hidden_with_their_replies(issue, as_):
    hidden = as_(RITA).post(f"{issue}/discussions", json={"body": "secret", "internal": True}).json
    path = f"{issue}/discussions/{hidden['id']}"

    reply = as_(DEV).post(f"{path}/notes", json={"body": "more"}).json

    assert (reply["internal"], as_(GUS).get(f"{issue}/discussions").json) == (True, [])
    assert [as_(GUS).get(path).json, as_(GUS).get(f"{path}/notes").json] == [
        {"message": "404 Discussion Not Found"},
        {"message": "404 Notes Not Found"},
    ]
    assert as_(GUS).post(f"{path}/notes", json={"body": "x"}).status_code == 404


def test_notes_of_a_discussion_are_changed_and_deleted(issue, as_):
    made = as_(GUS).post(f"{issue}/discussions", json={"body": "Why?"}).json
    path = f"{issue}/discussions/{made['id']}/notes/{made['notes'][0]['id']}"
    elsewhere = path.replace(made["id"], "f" * 40)

    changed = as_(GUS).put(path, json={"body": "How?"})

    assert (changed.status_code, changed.json["body"]) == (200, "How?")
    assert [as_(GUS).put(path, json=sent).status_code for sent in ({}, {"resolved": True})] == [400, 403]
    assert (as_(GUS).get(elsewhere).status_code, as_(DEV).delete(path).status_code) == (404, 403)
    assert (as_(GUS).get(path).json["body"], as_(GUS).delete(path).status_code) == ("How?", 204)
    assert as_(GUS).get(f"{issue}/discussions").json == []


def test_owners_choose_the_time_of_a_discussion(issue, as_):
    sent = {"body": "Why?", "created_at": "2020-01-02T03:04:05Z"}

    made = [as_(name).post(f"{issue}/discussions", json=sent).json["notes"][0] for name in (ADA, GUS)]

    assert [note["created_at"] == "2020-01-02T03:04:05.000Z" for note in made] == [True, False]


@pytest.mark.parametrize(("person", "status"), [(NOBODY, 401), (SAM, 404)])
def test_strangers_see_no_discussions(person, status, issue, as_):
    assert as_(person).get(f"{issue}/discussions").status_code == status


def test_a_blank_comment_is_refused(issue, as_):
    assert as_(GUS).post(f"{issue}/discussions", json={"body": " "}).status_code == 400
    assert as_(GUS).post(f"{issue}/discussions", json={}).json == {"error": "body is missing"}


def test_archives_keep_replies_together(project, issue, as_, run_jobs):
    made = as_(GUS).post(f"{issue}/discussions", json={"body": "Why?"}).json
    as_(GUS).post(f"{issue}/discussions/{made['id']}/notes", json={"body": "Because."})
    archive = make_archive(version=None, files=export(as_(MAX), project.id, run_jobs))

    number = send(as_(ADA), archive, path="copy", namespace=make_group("far").full_path).json["id"]
    run_jobs()

    (found,) = as_(ADA).get(f"/projects/{number}/issues/1/discussions").json
    assert (found["id"], len(found["notes"]), found["individual_note"]) == (made["id"], 2, False)


def test_discussions_with_too_many_notes_for_one_response_are_refused(issue, as_, monkeypatch):
    monkeypatch.setattr(queries, "MAX_NOTES", 3)  # a page loads one discussion more
    first = as_(GUS).post(f"{issue}/discussions", json={"body": "Why?"}).json
    as_(RITA).post(f"{issue}/discussions/{first['id']}/notes", json={"body": "Because."})
    for body in ("How?", "When?"):
        as_(RITA).post(f"{issue}/discussions", json={"body": body})

    answers = [as_(GUS).get(f"{issue}/discussions{query}").status_code for query in ("", "?per_page=1")]

    assert answers == [400, 200]
    assert as_(GUS).get(f"{issue}/notes").status_code == 200
