"""Feeds of events: fields of each kind of event."""

from __future__ import annotations

import datetime as dt

import pygit2
import pytest

from project_service.areas.alerts.effects import incidents
from project_service.areas.alerts.models import Alert
from project_service.domain.events.models import Action
from project_service.domain.tracker.documents.designs import Design
from project_service.domain.tracker.documents.snippets import Snippet
from project_service.domain.tracker.documents.wiki_pages import WikiPage
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.milestones import Milestone
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.areas.activity.support import (
    COMMIT,
    NEWS,
    PUSH,
    every_kind,
    make_issue,
    make_note,
    named,
    of_project,
    of_user,
    own,
    store,
    write,
)
from tests.support.git_repositories import keep_repository
from tests.support.sample_data import (
    DEV,
    GUS,
    MAX,
)


def basic(user):
    return {
        "id": user.id,
        "name": user.name,
        "username": user.username,
        "state": "active",
        "avatar_url": f"http://localhost/-/avatars/user/{user.id}",
        "web_url": f"http://localhost/{user.username}",
    }


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (PUSH, "pushed to"),
        (PUSH | {"action": "created", "commit_from": None}, "pushed new"),
        (PUSH | {"action": "removed", "commit_to": None, "commit_count": 0, "commit_title": None}, "deleted"),
        (PUSH | {"action": "created", "ref_type": "tag", "ref": "v1"}, "pushed new"),
        (
            PUSH | {"ref": None, "commit_count": 0, "commit_from": None, "commit_to": None, "ref_count": 4},
            "pushed to",
        ),
    ],
)
def test_a_push_event_has_its_push_data(data, name, people, project, as_):
    write(people[DEV], Action.PUSHED, project, data=data)

    (event,) = as_(DEV).get(own()).json

    assert event["push_data"] == data
    assert list(event["push_data"]) == list(PUSH)
    assert (event["action_name"], event["target_type"], event["target_id"]) == (name, None, None)


@pytest.mark.both_databases
def test_an_event_has_these_keys_in_this_order(people, project, as_):
    number = write(people[DEV], Action.PUSHED, project, data=PUSH, at=NEWS + dt.timedelta(microseconds=123456))

    (event,) = as_(DEV).get(own()).json

    assert list(event.items()) == [
        ("id", number),
        ("title", None),
        ("project_id", project.id),
        ("action_name", "pushed to"),
        ("target_id", None),
        ("target_iid", None),
        ("target_type", None),
        ("author_id", people[DEV].id),
        ("target_title", None),
        ("created_at", "2026-03-14T12:00:00.123Z"),
        ("author", basic(people[DEV])),
        ("push_data", PUSH),
        ("author_username", "dev"),
    ]


@pytest.mark.both_databases
def test_only_the_feed_of_a_project_has_data(people, project, as_):
    write(people[DEV], Action.JOINED, project)

    events = [as_(DEV).get(path).json[0] for path in (of_project(project), own(), of_user(people[DEV]))]

    assert ["data" in event for event in events] == [True, False, False]
    assert events[0]["data"] is None


def test_keys_of_missing_targets_are_left_out(people, project, as_):
    write(people[DEV], Action.JOINED, project)

    (event,) = as_(DEV).get(of_project(project)).json

    assert {"note", "wiki_page", "push_data"}.isdisjoint(event)


def test_a_comment_event_includes_its_note(people, project, as_):
    issue = make_issue(project, people[GUS], iid=4, title="Totals are wrong")
    note = make_note(project, people[DEV], issue, body="seen", created_at=NEWS, updated_at=NEWS)
    number = write(people[DEV], Action.COMMENTED, project, note)

    (event,) = as_(DEV).get(own()).json

    values = {
        key: event[key] for key in ("id", "action_name", "target_id", "target_iid", "target_type", "target_title")
    }
    assert values == {
        "id": number,
        "action_name": "commented on",
        "target_id": note.id,
        "target_iid": note.id,
        "target_type": "Note",
        "target_title": "Totals are wrong",
    }
    later_additions = {"internal"}
    assert {key: value for key, value in event["note"].items() if key not in later_additions} == {
        "id": note.id,
        "type": None,
        "body": "seen",
        "attachment": None,
        "author": basic(people[DEV]),
        "created_at": "2026-03-14T12:00:00.000Z",
        "updated_at": "2026-03-14T12:00:00.000Z",
        "system": False,
        "noteable_id": issue.id,
        "noteable_type": "Issue",
        "resolvable": False,
        "resolved_at": None,
        "confidential": False,
        "noteable_iid": 4,
        "commands_changes": {},
    }


def test_a_comment_on_a_diff_has_a_position(people, project, as_):
    merge_request = store(MergeRequest(project_id=project.id, iid=7, title="Better totals"))
    position = {"new_path": "a.py", "new_line": 3}
    note = make_note(project, people[DEV], merge_request, type="DiffNote", position=position)
    write(people[DEV], Action.COMMENTED, project, note)

    (event,) = as_(DEV).get(own()).json

    assert (event["target_type"], event["target_title"]) == ("DiffNote", "Better totals")
    assert (event["note"]["type"], event["note"]["position"], event["note"]["noteable_iid"]) == (
        "DiffNote",
        position,
        7,
    )


@pytest.mark.parametrize(
    ("name", "noteable_type", "title"),
    [
        ("commit note", "Commit", None),
        ("public snippet note", "Snippet", "public snippet"),
        ("design note", "DesignManagement::Design", "a.png"),
        ("alert note", "AlertManagement::Alert", None),
        ("wiki note", "WikiPage::Meta", "Home"),
    ],
)
def test_a_comment_on_a_target_without_iid_has_no_iid(name, noteable_type, title, people, project, as_):
    events = every_kind(project, people[DEV])

    event = next(one for one in as_(DEV).get(own(per_page=100)).json if one["id"] == events[name])

    assert (event["note"]["noteable_type"], event["note"]["noteable_iid"]) == (noteable_type, None)
    assert event["target_title"] == title


def test_a_comment_on_an_alert_has_the_title_of_the_alert(people, project, as_):
    alert = store(Alert(project_id=project.id, iid=3, title="The till is stuck", started_at=clock.now()))
    note = incidents.comment(people[DEV], alert, "Looking into it")
    db.session.commit()

    (event,) = as_(DEV).get(own(target_type="note")).json

    assert (event["target_id"], event["target_iid"], event["target_title"]) == (note.id, note.id, "The till is stuck")
    assert (event["note"]["noteable_id"], event["note"]["noteable_iid"]) == (alert.id, None)


def test_a_comment_on_a_commit_has_the_title_of_the_commit(people, project, as_, tmp_path):
    keep_repository(project, tmp_path)
    repository = pygit2.Repository(str(tmp_path))
    commit = str(repository.head.target)
    tree = str(repository[commit].tree_id)
    for number in (commit, commit[:8], "main", tree, COMMIT, None):
        note = make_note(project, people[DEV], None, noteable_type="Commit", commit_id=number)
        write(people[DEV], Action.COMMENTED, project, note)

    events = as_(DEV).get(own(sort="asc")).json

    assert [event["target_title"] for event in events] == ["first", None, None, None, None, None]


def test_only_comments_on_diffs_have_a_position(people, project, as_):
    every_kind(project, people[DEV])

    events = as_(DEV).get(own(per_page=100, action="commented")).json

    assert {event["target_type"] for event in events if "position" in event["note"]} == {"DiffNote"}


NAMES = [
    ("project", Action.CREATED, "created"),
    ("project", Action.JOINED, "joined"),
    ("project", Action.LEFT, "left"),
    ("project", Action.EXPIRED, "removed due to membership expiration from"),
    ("issue", Action.CREATED, "opened"),
    ("issue", Action.CLOSED, "closed"),
    ("issue", Action.REOPENED, "opened"),
    ("merge request", Action.CREATED, "opened"),
    ("merge request", Action.REOPENED, "opened"),
    ("merge request", Action.CLOSED, "closed"),
    ("merge request", Action.MERGED, "accepted"),
    ("merge request", Action.APPROVED, "approved"),
    ("milestone", Action.CREATED, "opened"),
    ("milestone", Action.REOPENED, "opened"),
    ("milestone", Action.CLOSED, "closed"),
    ("milestone", Action.DESTROYED, "destroyed"),
    ("wiki", Action.CREATED, "created"),
    ("wiki", Action.UPDATED, "updated"),
    ("wiki", Action.DESTROYED, "destroyed"),
    ("design", Action.CREATED, "uploaded"),
    ("design", Action.UPDATED, "revised"),
    ("design", Action.DESTROYED, "deleted"),
    ("snippet", Action.CREATED, "opened"),
]


def test_every_action_has_a_name(people, project, as_):
    about = {"project_id": project.id}
    issue = make_issue(project, people[DEV], iid=41, title="Wrong")
    targets = {
        "project": (None, None, None),
        "issue": (issue, "Issue", "Wrong"),
        "merge request": (MergeRequest(iid=42, title="Better", **about), "MergeRequest", "Better"),
        "milestone": (Milestone(iid=43, title="1.0", **about), "Milestone", "1.0"),
        "wiki": (WikiPage(title="Home", slug="home", **about), "WikiPage::Meta", "Home"),
        "design": (Design(iid=44, filename="a.png", issue_id=issue.id, **about), "DesignManagement::Design", "a.png"),
        "snippet": (Snippet(title="a few lines", **about), "Snippet", "a few lines"),
    }
    store(*(target for target, _, _ in targets.values() if target is not None))
    for kind, action, _ in NAMES:
        write(people[DEV], action, project, targets[kind][0])

    events = as_(DEV).get(own(sort="asc", per_page=100)).json

    keys = ("action_name", "target_type", "target_title", "target_id", "target_iid")
    expected = []
    for kind, _, name in NAMES:
        target, target_type, title = targets[kind]
        number = None if target is None else target.id
        expected.append((name, target_type, title, number, getattr(target, "iid", number)))
    assert [tuple(event[key] for key in keys) for event in events] == expected


def test_a_project_with_an_import_url_was_imported(people, project, as_):
    write(people[DEV], Action.CREATED, project, data={"imported": True})

    assert [event["action_name"] for event in as_(DEV).get(own()).json] == ["imported"]


def test_a_wiki_page_event_is_shown_until_the_page_is_deleted(people, project, as_):
    page = store(WikiPage(project_id=project.id, title="Home sweet home", slug="home-sweet-home"))
    write(people[DEV], Action.CREATED, project, page)
    before = as_(DEV).get(own()).json[0]
    db.session.delete(db.session.get(WikiPage, page.id))
    db.session.commit()

    after = as_(DEV).get(own()).json[0]

    assert before["wiki_page"] == {"format": "markdown", "slug": "home-sweet-home", "title": "Home sweet home"}
    assert after["wiki_page"] is None


@pytest.mark.both_databases
def test_a_feed_with_every_kind_of_event_is_read_completely(people, project, as_):
    events = every_kind(project, people[DEV])

    responses = [as_(MAX).get(path) for path in (of_project(project, per_page=100), of_user(people[DEV], per_page=100))]

    assert [named(events, response) for response in responses] == [set(events)] * 2
