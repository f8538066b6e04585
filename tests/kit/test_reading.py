"""Rows that are only read."""

from __future__ import annotations

import pytest
from sqlalchemy import bindparam, literal, select
from sqlalchemy.orm.exc import UnmappedInstanceError

from project_service.domain.namespaces import Group, Namespace
from project_service.domain.projects import Project, read_project
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.users import User
from project_service.kit.db import reading
from project_service.kit.db.session import db, unit_of_work
from tests.worlds import ADA, DEV, MAX

pytestmark = pytest.mark.both_databases
ALONG = (Issue.project, Issue.author, Issue.assignees, Issue.label_rows, (Issue.milestone, Milestone.project))


@pytest.fixture
def issues(project, people):
    """Three issues: by Ada for Max and Dev, with words and a milestone; by Ada; by nobody."""
    with unit_of_work():
        milestone = Milestone(project_id=project.id, iid=1, title="First", state="active")
        db.session.add(milestone)
        db.session.flush()
        for iid, fields in enumerate(
            (
                {"author_id": people[ADA].id, "labels": ["till", "bug"], "milestone_id": milestone.id},
                {"author_id": people[ADA].id},
                {},
            ),
            1,
        ):
            db.session.add(Issue(project_id=project.id, iid=iid, title=f"Issue {iid}", **fields))
        db.session.flush()
        first = db.session.scalars(select(Issue).where(Issue.iid == 1)).one()
        first.assignees = [db.session.get_one(User, people[name].id) for name in (DEV, MAX)]
    db.session.remove()
    return select(Issue).where(Issue.project_id == project.id).order_by(Issue.iid)


def test_rows_have_the_columns_and_the_properties_of_their_model(issues, project):
    found = reading.rows(issues)

    assert [(one.iid, one.title, one.project_id) for one in found] == [
        (iid, f"Issue {iid}", project.id) for iid in (1, 2, 3)
    ]
    assert {(isinstance(one, Issue), type(one).__name__, reading.model_of(one)) for one in found} == {
        (True, "Issue", Issue)
    }
    assert found[0].created_at.tzinfo is not None


def test_a_statement_is_made_once_for_each_of_its_forms(issues, project):
    made = []

    @reading.made_once
    def listed(closed):
        made.append(closed)
        here = Issue.project_id == bindparam("project")
        state = Issue.state == ("closed" if closed else "opened")
        return reading.along(select(Issue).where(here, state, Issue.iid > bindparam("after")), Issue.author)

    def iids(given, **cut):
        return sorted(one.iid for one in reading.rows(given, **cut))

    all_open, none = listed(False, project=project.id, after=0), listed(True, project=project.id, after=0)

    assert (iids(all_open), iids(none)) == ([1, 2, 3], [])
    assert iids(listed(False, project=project.id, after=2)) == [3]
    assert iids(all_open, limit=5, offset=3) == []
    assert (reading.count(all_open), reading.Listed(none).total) == (3, 0)
    assert made == [False, True]


def test_statements_that_differ_in_values_only_give_what_each_asks_for(issues):
    asked = [(1,), (2, 3), (), (3, 1, 2)]

    found = [[one.iid for one in reading.rows(issues.where(Issue.iid.in_(iids)))] for iids in asked]
    ends = [[one.iid for one in reading.rows(issues, limit=limit, offset=offset)] for limit, offset in ((1, 0), (2, 1))]

    assert (found, ends) == ([[1], [2, 3], [], [1, 2, 3]], [[1], [2, 3]])


def test_a_row_cannot_be_changed_added_or_followed(issues):
    issue = reading.rows(issues)[0]

    with pytest.raises(UnmappedInstanceError, match="author of Issue was not read"):
        _ = issue.author
    with pytest.raises(AttributeError, match="title of Issue was only read"):
        issue.title = "Another"
    with pytest.raises(UnmappedInstanceError):
        db.session.add(issue)


def test_relationships_are_read_along(issues, people):
    first, second, third = reading.rows(reading.along(issues, *ALONG))

    assert (first.author.username, first.project.namespace.kind, first.milestone.title) == (ADA, "group", "First")
    assert [user.id for user in first.assignees] == sorted(people[name].id for name in (DEV, MAX))
    assert (first.labels, first.milestone.project) == (["bug", "till"], first.project)
    assert (second.author, second.assignees, second.labels, second.milestone) == (first.author, [], [], None)
    assert (third.author, third.project) == (None, first.project)


def test_each_kind_of_row_takes_one_statement_for_the_page(issues, count_queries):
    reading.rows(reading.along(issues, *ALONG))

    with count_queries() as sent:
        reading.rows(reading.along(issues, *ALONG))

    # issues; who works on them; their words; people; milestones; projects; namespaces
    assert len(sent) == 7


def test_what_the_session_has_is_taken_from_there(issues, project):
    entity = db.session.get_one(Project, project.id)

    assert reading.rows(reading.along(issues, Issue.project))[0].project is entity


def test_a_unit_that_writes_remembers_nothing(issues, project):
    with unit_of_work():
        known = read_project(project.id)
        found = reading.rows(reading.along(issues, Issue.project))

    assert found[0].project is not known


def test_further_columns_stand_on_each_row(issues):
    found = reading.rows(issues.add_columns((Issue.iid + 10).label("higher"), literal("x").label("mark")))

    assert [(one.iid, one.higher, one.mark) for one in found] == [(1, 11, "x"), (2, 12, "x"), (3, 13, "x")]


def test_columns_alone_come_as_values_and_tuples(issues):
    one = issues.with_only_columns(Issue.iid)

    assert (reading.rows(one), reading.rows(issues.with_only_columns(Issue.iid, Issue.title), limit=1)) == (
        [1, 2, 3],
        [(1, "Issue 1")],
    )


def test_a_row_is_of_the_kind_it_says_it_is(project, people):
    found = reading.rows(select(Namespace).order_by(Namespace.id))

    assert {one.kind: type(one).__name__ for one in found} == {"user": "UserNamespace", "group": "Group"}
    assert {reading.model_of(one) for one in reading.rows(select(Group))} == {Group}


def test_rows_are_counted_up_to_a_limit(issues, monkeypatch):
    assert (reading.count(issues), reading.count(issues.where(Issue.iid > 1))) == (3, 2)


def test_rows_are_looked_up_by_their_ids(issues, people):
    numbers = [one.id for one in reading.rows(issues)]

    found = reading.by_id(Issue, [*numbers[:2], 2**40], Issue.author)

    assert {number: one.author.username for number, one in found.items()} == dict.fromkeys(numbers[:2], ADA)
    assert reading.by_id(Issue, []) == {}


def test_a_change_that_has_not_been_flushed_is_seen(issues, project):
    with unit_of_work():
        db.session.get_one(Project, project.id).name = "Renamed"
        names = reading.rows(select(Project.name).where(Project.id == project.id))

    assert names == ["Renamed"]


def test_only_relationships_lead_anywhere(issues):
    with pytest.raises(TypeError, match="leads to no other rows"):
        reading.rows(reading.along(issues, Issue.title))
