"""Helpers shared by the tests of feeds of events."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import select

from project_service.areas.activity import merged_feed
from project_service.domain.access_levels import Visibility
from project_service.domain.events.models import Action
from project_service.domain.events.recording import record
from project_service.domain.tracker.documents.designs import Design
from project_service.domain.tracker.documents.snippets import Snippet
from project_service.domain.tracker.documents.wiki_pages import WikiPage
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import Note
from project_service.kit.db.session import db, unit_of_work
from tests.support.sample_data import (
    make_user,
)

COMMIT = "c" * 40


PUSH = {
    "commit_count": 2,
    "action": "pushed",
    "ref_type": "branch",
    "commit_from": "1" * 40,
    "commit_to": "2" * 40,
    "ref": "main",
    "commit_title": "Fix totals",
    "ref_count": None,
}


NEWS = dt.datetime(2026, 3, 14, 12, tzinfo=dt.UTC)


DAY = dt.timedelta(days=1)


FEEDS = ["/events", "/users/{user}/events", "/projects/{project}/events"]


def of_project(project, **query):
    return address(f"/projects/{project.id}/events", query)


def of_user(user, **query):
    return address(f"/users/{user.id}/events", query)


def own(**query):
    return address("/events", query)


def address(path, query):
    return path + ("?" + "&".join(f"{name}={value}" for name, value in query.items()) if query else "")


def ids(response):
    assert response.status_code == 200, response.json
    return [event["id"] for event in response.json]


def store(*rows):
    db.session.add_all(rows)
    db.session.commit()
    return rows[0]


def change(row, **fields):
    """Change a row in the database and refresh the test's object."""
    loaded = db.session.get(type(row), row.id)
    for changed in {id(loaded): loaded, id(row): row}.values():
        for name, value in fields.items():
            setattr(changed, name, value)
    db.session.commit()


def write(author, action, project, target=None, data=None, at=None):
    """Record an event as the services do; return its id."""
    with unit_of_work():
        event = record(author, action, project, target, data)
        if at is not None:
            event.created_at = at
        db.session.flush()
    return event.id


def make_issue(project, author, **fields):
    number = len(db.session.scalars(select(Issue.id)).all()) + 1
    fields = {"iid": number, "title": f"Issue {number}"} | fields
    return store(Issue(project_id=project.id, author_id=author.id, **fields))


def make_note(project, author, target, **fields):
    kind = "DesignManagement::Design" if isinstance(target, Design) else type(target).__name__
    fields = {"noteable_type": kind, "noteable_id": target and target.id, "body": "a word"} | fields
    return store(Note(project_id=project.id, author_id=author.id, **fields))


def every_kind(project, author):
    """One event of every kind with a different text, by name; their targets were created by another user."""
    other = make_user()
    fields = {"project_id": project.id, "author_id": other.id}
    plain, secret = make_issue(project, other), make_issue(project, other, confidential=True)
    merge_request = store(MergeRequest(iid=1, title="Better totals", **fields))
    milestone = store(Milestone(project_id=project.id, iid=1, title="1.0"))
    wiki = store(WikiPage(project_id=project.id, title="Home", slug="home"))
    designs = [store(Design(project_id=project.id, issue_id=issue.id, filename="a.png")) for issue in (plain, secret)]
    snippets = {
        level.text: store(Snippet(title=f"{level.text} snippet", visibility=level, **fields)) for level in Visibility
    }
    comments = {
        "note": make_note(project, author, plain),
        "internal note": make_note(project, author, plain, confidential=True),
        "secret note": make_note(project, author, secret),
        "internal secret note": make_note(project, author, secret, confidential=True),
        "diff note": make_note(project, author, merge_request, type="DiffNote"),
        "commit note": make_note(project, author, None, noteable_type="Commit", commit_id=COMMIT),
        "design note": make_note(project, author, designs[0]),
        "secret design note": make_note(project, author, designs[1]),
        "wiki note": make_note(project, author, None, noteable_type="WikiPage::Meta", noteable_id=wiki.id),
        "alert note": make_note(project, author, None, noteable_type="AlertManagement::Alert", noteable_id=1),
        **{f"{name} snippet note": make_note(project, author, snippet) for name, snippet in snippets.items()},
    }
    created = {
        "project": None,
        "issue": plain,
        "secret issue": secret,
        "merge request": merge_request,
        "milestone": milestone,
        "wiki": wiki,
        "design": designs[0],
        "secret design": designs[1],
        **{f"{name} snippet": snippet for name, snippet in snippets.items()},
    }
    written = {name: write(author, Action.CREATED, project, target) for name, target in created.items()}
    written |= {name: write(author, Action.COMMENTED, project, note) for name, note in comments.items()}
    written |= {name: write(author, Action[name.upper()], project) for name in ("joined", "left", "expired")}
    return written | {"push": write(author, Action.PUSHED, project, data=PUSH)}


def named(events, response):
    names = {number: name for name, number in events.items()}
    return {names[number] for number in ids(response)}


def limit_scan(monkeypatch, events, per_result=0):
    """Set how many events of all projects are scanned before projects are read one by one."""
    monkeypatch.setattr(merged_feed, "MIN_SCANNED_EVENTS", events)
    monkeypatch.setattr(merged_feed, "MAX_SCANNED_PER_RESULT", per_result)
