"""Filters of issues, and the issues of a milestone."""

from __future__ import annotations

import datetime as dt

import pytest

from project_service.kit import clock
from tests.support.sample_data import DEV, GUS, MAX, NOBODY, RITA, SAM

pytestmark = pytest.mark.both_databases


@pytest.fixture
def milestone(project, as_):
    return as_(MAX).post(f"/projects/{project.id}/milestones", json={"title": "Spring"}).json


@pytest.fixture
def issues(project, as_, people, milestone):
    """Four issues: of rita and of dev, with labels, a milestone, an assignee and weights."""
    fields = [
        {"labels": "oven,cold", "milestone_id": milestone["id"], "weight": 3, "title": "Burnt"},
        {"labels": "oven", "assignee_ids": [people[MAX].id], "description": "All is burnt"},
        {"confidential": True, "milestone_id": milestone["id"], "weight": 0},
        {"milestone_id": milestone["id"]},
    ]
    for author, values in zip((RITA, DEV, RITA, DEV), fields, strict=True):
        response = as_(author).post(f"/projects/{project.id}/issues", json={"title": "Wrong"} | values)
        assert response.status_code == 201, response.json
    for iid, day in ((1, "2026-03-01"), (2, "2026-03-11"), (3, "2026-04-30")):
        as_(DEV).put(f"/projects/{project.id}/issues/{iid}", json={"due_date": day})
    as_(DEV).put(f"/projects/{project.id}/issues/4", json={"state_event": "close"})
    return project


@pytest.mark.parametrize(
    ("query", "iids"),
    [
        ("not[labels]=cold", [2, 3, 4]),
        ("not[labels][]=cold&not[labels][]=oven", [3, 4]),
        ("labels=oven&not[labels]=cold", [2]),
        ("not[milestone]=Spring", [2]),
        ("not[iids][]=1&not[iids][]=4", [2, 3]),
        ("not[author_username]=rita", [2, 4]),
        ("not[assignee_username][]=max", [1, 3, 4]),
        ("not[weight]=3", [2, 3, 4]),
        ("not[my_reaction_emoji]=thumbsup", [1, 2, 3, 4]),
        ("my_reaction_emoji=None", [1, 2, 3, 4]),
        ("my_reaction_emoji=Any", []),
        ("my_reaction_emoji=thumbsup", []),
        ("labels=none", [3, 4]),
        ("labels=ANY", [1, 2]),
        ("labels=oven&labels=cold", [1]),
        ("milestone=none", [2]),
        ("milestone=any", [1, 3, 4]),
        ("search=burnt", [1, 2]),
        ("search=burnt&in=title", [1]),
        ("search=burnt&in=description", [2]),
        ("search=burnt&in=title,description", [1, 2]),
        ("due_date=", [1, 2, 3, 4]),
        ("due_date=0", [4]),
        ("due_date=any", [1, 2, 3]),
        ("weight=3", [1]),
        ("weight=0", [3]),
        ("weight=None", [2, 4]),
        ("weight=Any", [1, 3]),
    ],
)
def test_issues_are_filtered(query, iids, issues, as_):
    response = as_(DEV).get(f"/projects/{issues.id}/issues?sort=asc&{query}")

    assert (response.status_code, [issue["iid"] for issue in response.json]) == (200, iids)


@pytest.mark.parametrize(
    ("today", "due", "iids"),
    [
        ("2026-03-11", "today", [2]),
        ("2026-03-10", "tomorrow", [2]),
        ("2026-03-11", "overdue", [1]),
        ("2026-03-09", "week", [2]),
        ("2026-03-15", "week", [2]),
        ("2026-03-16", "week", []),
        ("2026-03-31", "month", [1, 2]),
        ("2026-03-15", "next_month_and_previous_two_weeks", [1, 2, 3]),
        ("2026-03-16", "next_month_and_previous_two_weeks", [2, 3]),
        ("2026-02-28", "next_month_and_previous_two_weeks", [1, 2]),
    ],
)
def test_issues_are_filtered_by_due_date(today, due, iids, issues, as_, monkeypatch):
    monkeypatch.setattr(clock, "today", lambda: dt.date.fromisoformat(today))

    response = as_(DEV).get(f"/projects/{issues.id}/issues?sort=asc&due_date={due}")

    assert (response.status_code, [issue["iid"] for issue in response.json]) == (200, iids)


@pytest.mark.parametrize("name", ["author_id", "assignee_id"])
def test_issues_are_filtered_by_excluded_user_ids(name, issues, as_, people):
    expected = {"author_id": (RITA, [2, 4]), "assignee_id": (MAX, [1, 3, 4])}
    person, iids = expected[name]

    response = as_(DEV).get(f"/projects/{issues.id}/issues?sort=asc&not[{name}]={people[person].id}")

    assert [issue["iid"] for issue in response.json] == iids


@pytest.mark.parametrize("query", ["weight=heavy", "not[author_id]=x", "not=1"])
def test_invalid_combinations_of_filters_are_refused(query, issues, as_):
    assert as_(DEV).get(f"/projects/{issues.id}/issues?{query}").status_code == 400


@pytest.mark.parametrize(("person", "iids"), [(DEV, [4, 3, 1]), (GUS, [4, 1])])
def test_only_visible_issues_of_a_milestone_are_listed(person, iids, issues, milestone, as_):
    response = as_(person).get(f"/projects/{issues.id}/milestones/{milestone['id']}/issues")

    assert (response.status_code, [issue["iid"] for issue in response.json]) == (200, iids)
    assert response.headers["X-Total"] == str(len(iids))


@pytest.mark.parametrize(("person", "status"), [(MAX, 200), (SAM, 404), (NOBODY, 401)])
def test_only_users_who_see_the_project_list_the_issues_of_a_milestone(person, status, issues, milestone, as_):
    assert as_(person).get(f"/projects/{issues.id}/milestones/{milestone['id']}/issues").status_code == status


def test_issues_of_an_unknown_milestone_are_not_found(issues, as_):
    response = as_(DEV).get(f"/projects/{issues.id}/milestones/999/issues")

    assert (response.status_code, response.json) == (404, {"message": "404 Milestone Not Found"})


@pytest.mark.parametrize(
    ("timebox", "titles"),
    [("Started", ["now"]), ("Upcoming", ["next"]), ("Any", ["later", "next", "now"]), ("None", ["none"])],
)
def test_issues_are_filtered_by_the_time_of_their_milestone(timebox, titles, project, as_):
    path, today = f"/projects/{project.id}", clock.today()
    days = {"now": (-1, None), "next": (3, 5), "later": (3, 9)}
    dates = {
        title: [day and (today + dt.timedelta(days=day)).isoformat() for day in both] for title, both in days.items()
    }
    for title, (start, due) in dates.items():
        made = as_(DEV).post(f"{path}/milestones", json={"title": title, "start_date": start, "due_date": due}).json
        as_(RITA).post(f"{path}/issues", json={"title": title, "milestone_id": made["id"]})
    as_(RITA).post(f"{path}/issues", json={"title": "none"})

    listed = as_(RITA).get(f"{path}/issues?milestone_id={timebox}").json

    assert sorted(issue["title"] for issue in listed) == titles
    assert as_(RITA).get(f"{path}/issues?milestone_id={timebox}&milestone=now").status_code == 400
