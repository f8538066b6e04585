"""Feeds of events: who sees which, with generated examples."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from project_service.domain.access_levels import Role, Visibility
from project_service.domain.events.models import Action, Event, Restriction
from project_service.domain.events.recording import change_confidentiality, record
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.documents.designs import Design
from project_service.domain.tracker.documents.wiki_pages import WikiPage
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from tests import conftest
from tests.areas.activity.support import (
    DAY,
    NEWS,
    PUSH,
    change,
    every_kind,
    ids,
    limit_scan,
    make_issue,
    make_note,
    named,
    of_project,
    of_user,
    own,
    store,
    write,
)
from tests.support.sample_data import (
    ADA,
    DEV,
    GUS,
    MAX,
    OLIVE,
    RITA,
    ROLES,
    SAM,
    add_member,
    make_group,
    make_project,
    make_user,
    share,
)

CODE = {"push", "commit note"}


CHANGES = {"merge request", "diff note"}


ISSUES = {"issue", "note", "design", "design note"}


WIKI = {"wiki", "wiki note"}


SNIPPETS = {"public snippet", "public snippet note"}


INTERNAL_SNIPPETS = {"internal snippet", "internal snippet note"}


PRIVATE_SNIPPETS = {"private snippet", "private snippet note"}


UNRESTRICTED = {"project", "joined", "left", "expired"}


CONFIDENTIAL = {"secret issue", "secret note", "secret design", "secret design note"}


INTERNAL = {"internal note", "internal secret note"}


ALERTS = {"alert note"}


EXTERNAL_USER = UNRESTRICTED | CODE | CHANGES | ISSUES | {"milestone"} | WIKI | SNIPPETS


STRANGER = EXTERNAL_USER | INTERNAL_SNIPPETS


GUEST = STRANGER | PRIVATE_SNIPPETS


REPORTER = GUEST | CONFIDENTIAL | INTERNAL


DEVELOPER = REPORTER | ALERTS


EXTERNAL = "external"


@pytest.fixture
def external(client_of, people):
    return client_of(make_user(EXTERNAL, external=True))


def seen_by(client, project, author, events):
    """Return the names of the events that a client sees; the feeds of the project and of the author have to agree."""
    by_author = named(events, client.get(of_user(author, per_page=100)))
    response = client.get(of_project(project, per_page=100))
    if response.status_code == 404:
        assert by_author == set()
        return None
    assert named(events, response) == by_author
    return by_author


ABOVE = {RITA: REPORTER, DEV: DEVELOPER, MAX: DEVELOPER, OLIVE: DEVELOPER, ADA: DEVELOPER}


MATRIX = {
    "public": {SAM: STRANGER, EXTERNAL: EXTERNAL_USER, GUS: GUEST} | ABOVE,
    "internal": {SAM: STRANGER, EXTERNAL: None, GUS: GUEST} | ABOVE,
    "private": {SAM: None, EXTERNAL: None, GUS: GUEST - CODE - CHANGES} | ABOVE,
}


@pytest.mark.parametrize("visibility", ["public", "internal", "private"])
def test_roles_see_these_kinds_of_events(visibility, people, project, as_, external):
    change(project, visibility=Visibility.of(visibility))
    events = every_kind(project, people[DEV])
    clients = {name: as_(name) for name in (SAM, *ROLES, ADA)} | {EXTERNAL: external}

    seen = {name: seen_by(client, project, people[DEV], events) for name, client in clients.items()}
    own_projects = {name: named(events, clients[name].get(own(scope="all", per_page=100))) for name in ROLES}

    assert seen == MATRIX[visibility]
    assert own_projects == {name: seen[name] for name in ROLES}


@pytest.mark.parametrize(
    ("features", "missing"),
    [
        (["issues"], ISSUES | CONFIDENTIAL | INTERNAL),
        (["merge_requests"], CHANGES),
        (["issues", "merge_requests"], ISSUES | CONFIDENTIAL | INTERNAL | CHANGES | {"milestone"}),
        (["repository"], CODE),
        (["wiki"], WIKI),
        (["snippets"], SNIPPETS | INTERNAL_SNIPPETS | PRIVATE_SNIPPETS),
        (["builds", "forking", "pages", "operations", "analytics"], set()),
    ],
)
def test_a_disabled_or_members_only_feature_hides_its_events(features, missing, people, project, as_):
    change(project, visibility=Visibility.PUBLIC)
    events = every_kind(project, people[DEV])

    views = {}
    for level in ("disabled", "private"):
        change(project, **{f"{feature}_access_level": level for feature in features})
        views[level] = {name: seen_by(as_(name), project, people[DEV], events) for name in (SAM, GUS, RITA, OLIVE, ADA)}

    assert views["disabled"] == {
        SAM: STRANGER - missing,
        GUS: GUEST - missing,
        RITA: REPORTER - missing,
        OLIVE: DEVELOPER - missing,
        ADA: DEVELOPER - missing,
    }
    assert views["private"] == {
        SAM: STRANGER - missing,
        GUS: GUEST - (missing & (CODE | CHANGES)),
        RITA: REPORTER,
        OLIVE: DEVELOPER,
        ADA: DEVELOPER,
    }


@pytest.mark.parametrize("relation", ["author", "assignee"])
@pytest.mark.parametrize("person", [SAM, GUS])
def test_authors_and_assignees_of_a_confidential_issue_see_its_events(person, relation, people, project, as_):
    change(project, visibility=Visibility.PUBLIC)
    author = people[person] if relation == "author" else people[RITA]
    issue = make_issue(project, author, confidential=True)
    if relation == "assignee":
        issue.assignees = [people[person]]
        db.session.commit()
    foreign = make_issue(project, people[RITA], confidential=True)
    opened = write(people[DEV], Action.CREATED, project, issue)
    comment = write(people[DEV], Action.COMMENTED, project, make_note(project, people[DEV], issue))
    write(people[DEV], Action.COMMENTED, project, make_note(project, people[DEV], issue, confidential=True))
    write(people[DEV], Action.CREATED, project, foreign)

    client = as_(person)

    assert ids(client.get(of_project(project))) == [comment, opened]
    assert ids(client.get(of_user(people[DEV]))) == [comment, opened]


def test_the_author_of_a_confidential_issue_needs_access_to_the_project(people, project, as_):
    issue = make_issue(project, people[SAM], confidential=True)
    write(people[SAM], Action.CREATED, project, issue)

    assert ids(as_(SAM).get(own())) == []


def test_events_follow_the_confidentiality_of_their_issue(people, project, as_):
    change(project, visibility=Visibility.PUBLIC)
    dev, issues = as_(DEV), f"/projects/{project.id}/issues"
    iid = dev.post(issues, json={"title": "Wrong"}).json["iid"]
    dev.post(f"{issues}/{iid}/notes", json={"body": "a word"})
    dev.post(f"{issues}/{iid}/notes", json={"body": "among us", "internal": True})

    counts = []
    for confidential in (False, True, False):
        dev.put(f"{issues}/{iid}", json={"confidential": confidential})
        counts.append([len(ids(as_(name).get(of_project(project)))) for name in (SAM, GUS, RITA, DEV)])

    assert counts == [[2, 2, 3, 3], [0, 0, 3, 3], [2, 2, 3, 3]]


@pytest.mark.both_databases
@pytest.mark.parametrize("act", [lambda *args: issue_rules.create_note(*args, body="x"), issue_rules.close_issue])
def test_events_during_a_change_to_confidential_are_confidential(act, people, project):
    issue = make_issue(project, people[RITA])
    with unit_of_work():
        db.session.execute(update(Issue).values(confidential=True), execution_options={"synchronize_session": False})
        act(people[DEV], issue)

    assert db.session.scalars(select(Event.restriction)).all() == [Restriction.CONFIDENTIAL]


def test_designs_follow_the_confidentiality_of_their_issue(people, project, as_):
    issue = make_issue(project, people[RITA])
    design = store(Design(project_id=project.id, issue_id=issue.id, filename="a.png"))
    write(people[DEV], Action.CREATED, project, design)
    write(people[DEV], Action.COMMENTED, project, make_note(project, people[DEV], design))
    with unit_of_work():
        issue.confidential = True
        change_confidentiality(issue)

    assert [len(ids(as_(name).get(of_project(project)))) for name in (GUS, RITA)] == [0, 2]


@pytest.mark.parametrize("scanned", [0, 10_000])
def test_a_former_member_sees_nothing_of_a_private_project(scanned, people, project, as_, monkeypatch):
    limit_scan(monkeypatch, scanned)
    write(people[DEV], Action.PUSHED, project, data=PUSH)
    before = [len(as_(DEV).get(path).json) for path in (own(), own(scope="all"))]

    as_(MAX).delete(f"/projects/{project.id}/members/{people[DEV].id}")

    assert before == [1, 1]
    assert [as_(DEV).get(path).json for path in (own(), own(scope="all"))] == [[], []]


def test_events_of_a_project_appear_with_a_membership(people, project, as_):
    secret = make_issue(project, people[DEV], confidential=True)
    event = write(people[DEV], Action.CREATED, project, secret)
    before = ids(as_(SAM).get(of_user(people[DEV])))

    add_member(project, people[SAM], Role.DEVELOPER)

    assert before == []
    assert ids(as_(SAM).get(of_user(people[DEV]))) == [event]


@pytest.mark.both_databases
def test_a_project_that_is_being_deleted_is_in_no_feed(people, project, as_, run_jobs):
    write(people[DEV], Action.JOINED, project)

    as_(OLIVE).delete(f"/projects/{project.id}")
    responses = [as_(name).get(path) for name in (DEV, ADA) for path in (of_user(people[DEV]), own(scope="all"))]
    run_jobs()

    assert [ids(response) for response in responses] == [[]] * 4
    assert as_(ADA).get(of_project(project)).status_code == 404
    assert db.session.scalars(select(Event)).all() == []


@pytest.mark.both_databases
def test_the_events_of_a_user_are_removed_with_the_user(people, project, as_admin, run_jobs):
    write(people[DEV], Action.JOINED, project)
    remaining = write(people[RITA], Action.JOINED, project)

    as_admin.delete(f"/users/{people[DEV].id}")
    run_jobs()

    assert ids(as_admin.get(of_project(project))) == [remaining]


@dataclass
class VisibilityExample:
    """Users, groups, projects and events as plain data, for expected results that do not come from the tested code."""

    users: list = field(default_factory=list)
    groups: list = field(default_factory=list)
    parents: dict = field(default_factory=dict)
    projects: list = field(default_factory=list)
    members: list = field(default_factory=list)
    shares: list = field(default_factory=list)
    issues: list = field(default_factory=list)
    events: list = field(default_factory=list)

    def above(self, group):
        while group is not None:
            yield group.id
            group = self.parents[group.id]

    def level_in(self, user, kind, source_id):
        return max(
            (
                level
                for user_id, target_kind, target_id, level in self.members
                if (user_id, target_kind, target_id) == (user.id, kind, source_id)
            ),
            default=0,
        )

    def level_in_group(self, user, group):
        """Return the access level by membership in the group or its parents."""
        return max(self.level_in(user, "group", above) for above in self.above(group))

    def role(self, user, project):
        if user.admin:
            return 50
        if isinstance(project.namespace, int):
            roles = [50 if project.namespace == user.id else 0]
            above = set()
        else:
            roles = [self.level_in_group(user, project.namespace)]
            above = set(self.above(project.namespace))
        roles.append(self.level_in(user, "project", project.id))
        for kind, source_id, group, level in self.shares:
            if (kind == "project" and source_id == project.id) or (kind == "group" and source_id in above):
                roles.append(min(level, self.level_in_group(user, group)))
        return max(roles)


@dataclass
class ExampleProject:
    """A project of an example."""

    id: int
    namespace: object
    visibility: str
    features: dict


@dataclass
class ExampleEvent:
    """An event of an example."""

    id: int
    author: int
    project: ExampleProject
    at: dt.datetime
    kind: str
    issue: dict | None
    internal: bool


def is_visible(example, caller, event):
    """Return whether a caller sees an event (events reference, section 5)."""
    role, project = example.role(caller, event.project), event.project
    is_open = project.visibility == "public" or (project.visibility == "internal" and not caller.external)
    if not is_open and role == 0:
        return False

    def allows(feature, min_role):
        level = project.features[feature]
        if level == "disabled":
            return False
        return role >= min_role or (level == "enabled" and is_open)

    if event.kind == "push":
        return allows("repository", 20)
    if event.kind == "joined":
        return True
    if event.kind == "merge request":
        return allows("merge_requests", 20)
    if event.kind == "milestone":
        return allows("issues", 10) or allows("merge_requests", 10)
    if event.kind == "wiki":
        return allows("wiki", 10)
    assert event.kind in ("issue", "note")
    if not allows("issues", 10):
        return False
    if event.internal and role < 20:
        return False
    return not event.issue["confidential"] or role >= 20 or caller.id in event.issue["people"]


def is_own_project(example, caller, project):
    """Whether the caller belongs to a project; the administrator flag is ignored."""
    was_admin, caller.admin = caller.admin, False
    try:
        return example.role(caller, project) >= 10
    finally:
        caller.admin = was_admin


def make_example(rng):
    example = VisibilityExample()
    example.users = [make_user(f"u{n}", admin=n == 0, external=n == 1) for n in range(5)]
    for number in range(4):
        parent = rng.choice([None, *example.groups])
        group = make_group(f"g{number}", parent, visibility="public" if parent is None else "private")
        example.groups.append(group)
        example.parents[group.id] = parent
    levels = [10, 20, 30, 40]
    for number in range(5):
        owner = rng.choice([None, None, rng.choice(example.users)])
        group = None if owner else rng.choice(example.groups)
        features = {
            name: rng.choice(["enabled", "enabled", "private", "disabled"])
            for name in ("issues", "merge_requests", "repository", "wiki")
        }
        visibility = rng.choice(["private", "private", "internal", "public"])
        project = make_project(
            f"p{number}",
            owner or group,
            visibility=visibility,
            **{f"{name}_access_level": level for name, level in features.items()},
        )
        example.projects.append(ExampleProject(project.id, owner.id if owner else group, visibility, features))
    rows = {
        example_project.id: db.session.get(conftest.Project, example_project.id) for example_project in example.projects
    }
    for user in example.users:
        for group in rng.sample(example.groups, 1):
            ended, level = rng.random() < 0.2, rng.choice(levels)
            add_member(group, user, level, clock.today() - (DAY if rng.random() < 0.5 else 0 * DAY) if ended else None)
            example.members += [] if ended else [(user.id, "group", group.id, level)]
        for example_project in rng.sample(example.projects, rng.randint(0, 1)):
            level = rng.choice(levels)
            add_member(rows[example_project.id], user, level)
            example.members.append((user.id, "project", example_project.id, level))
    for _ in range(3):
        group, level = rng.choice(example.groups), rng.choice(levels)
        if rng.random() < 0.5:
            example_project = rng.choice(example.projects)
            kind, target = "project", rows[example_project.id]
        else:
            kind, target = "group", rng.choice(example.groups)
        existing = {(entry[0], entry[1], entry[2].id) for entry in example.shares}
        if (kind, target.id, group.id) not in existing and (kind == "project" or target.id != group.id):
            share(target, group, Role(level))
            example.shares.append((kind, target.id, group, level))
    for number in range(8):
        example_project, author = rng.choice(example.projects), rng.choice(example.users)
        assignees = rng.sample(example.users, rng.randint(0, 1))
        issue = Issue(
            project_id=example_project.id,
            iid=number + 1,
            title="x",
            author_id=author.id,
            confidential=rng.random() < 0.5,
        )
        issue.assignees = assignees
        store(issue)
        people = {author.id, *(user.id for user in assignees)}
        example.issues.append(
            {"row": issue, "project": example_project, "confidential": issue.confidential, "people": people}
        )
    for number in range(40):
        example.events.append(make_example_event(example, rng, rows, number))
    db.session.commit()
    return example


def make_example_event(example, rng, rows, number):
    author, example_project, issue, internal = rng.choice(example.users), rng.choice(example.projects), None, False
    kind = rng.choice(["push", "joined", "merge request", "milestone", "wiki", "issue", "issue", "note", "note"])
    action, target = {"push": Action.PUSHED, "joined": Action.JOINED, "note": Action.COMMENTED}.get(kind), None
    if kind in ("issue", "note"):
        issue = rng.choice(example.issues)
        example_project, target = issue["project"], issue["row"]
    if kind == "note":
        internal = rng.random() < 0.3
        target = Note(
            project_id=example_project.id,
            noteable_type="Issue",
            noteable_id=issue["row"].id,
            body="x",
            confidential=internal,
        )
    if kind == "merge request":
        target = MergeRequest(project_id=example_project.id, iid=number, title="x")
    if kind == "milestone":
        target = Milestone(project_id=example_project.id, iid=number, title=f"m{number}")
    if kind == "wiki":
        target = WikiPage(project_id=example_project.id, title="x", slug="x")
    if target is not None:
        db.session.add(target)
        db.session.flush()
    event = record(author, action or Action.CREATED, rows[example_project.id], target)
    event.created_at = NEWS + rng.randint(0, 5) * DAY
    db.session.flush()
    return ExampleEvent(event.id, author.id, example_project, event.created_at, kind, issue, internal)


@pytest.mark.both_databases
@given(seed=st.integers(0, 2**32))
@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_every_feed_shows_exactly_the_visible_events(app, client_of, seed):
    rng = random.Random(seed)
    conftest._empty()
    example = make_example(rng)
    db.session.expunge_all()
    newest_first = sorted(example.events, key=lambda event: (event.at, event.id), reverse=True)

    for caller in rng.sample(example.users, 3):
        client = client_of(caller)
        seen = [event for event in newest_first if is_visible(example, caller, event)]
        for user in example.users:
            expected = [event.id for event in seen if event.author == user.id]
            assert ids(client.get(of_user(user, per_page=100))) == expected
        assert ids(client.get(own(per_page=100))) == [event.id for event in seen if event.author == caller.id]
        for project in example.projects:
            response = client.get(of_project(project, per_page=100))
            visible = project.visibility == "public" or (project.visibility == "internal" and not caller.external)
            if not visible and example.role(caller, project) == 0:
                assert response.status_code == 404
            else:
                assert ids(response) == [event.id for event in seen if event.project is project]
        own_ids = [event.id for event in seen if is_own_project(example, caller, event.project)]
        assert ids(client.get(own(scope="all", per_page=100))) == own_ids
        assert client.get(own(scope="all", per_page=1)).headers["X-Total"] == str(len(own_ids))
        with pytest.MonkeyPatch.context() as patch:
            limit_scan(patch, rng.choice([0, 3]))
            assert ids(client.get(own(scope="all", per_page=99))) == own_ids


def test_encoded_project_paths_are_accepted(people, as_admin):
    project = make_project("with.dot", people[ADA])
    event = write(people[ADA], Action.JOINED, project)

    response = as_admin.get(f"/projects/{quote('ada/with.dot', safe='')}/events")

    assert ids(response) == [event]
