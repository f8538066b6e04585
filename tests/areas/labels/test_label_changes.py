"""Creating, changing, deleting and promoting labels through HTTP."""

from __future__ import annotations

import itertools

import pytest

from project_service.domain.access_levels import Role
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.labels import Label
from project_service.kit.db.session import db
from tests.support.sample_data import (
    DEV,
    GUS,
    NOBODY,
    OLIVE,
    RITA,
    SAM,
    add_member,
    make_group,
    make_label,
    make_merge_request,
    make_project,
    reload,
)


@pytest.fixture(autouse=True)
def members_of_the_group(people, group):
    """The reporter and the guest of the project have these roles in its group too."""
    add_member(group, people[RITA], Role.REPORTER)
    add_member(group, people[GUS], Role.GUEST)


BUG = {"name": "bug", "color": "#FF0000"}


def labels_path(owner, *more):
    kind = "projects" if isinstance(owner, Project) else "groups"
    return "/".join((f"/{kind}/{owner.id}/labels", *map(str, more)))


def make_issue(project, *labels, iid=1):
    issue = Issue(project_id=project.id, iid=iid, title="x", labels=list(labels))
    db.session.add(issue)
    db.session.commit()
    return issue


def labels_of(row):
    return [label.title for label in reload(row).label_rows]


def test_a_created_label_has_the_documented_keys(project, group, as_):
    created = as_(RITA).post(labels_path(project), json=BUG | {"name": " bug ", "color": "Teal", "priority": 0})
    in_group = as_(RITA).post(labels_path(group), json=BUG | {"name": "slow", "description": "*x*"})

    shared = {"text_color": "#FFFFFF", "subscribed": False}
    of_project = {"name": "bug", "description": None, "description_html": "", "color": "#008080", "priority": 0}
    assert (created.status_code, created.json) == (
        201,
        {"id": created.json["id"], "is_project_label": True} | of_project | shared,
    )
    of_group = {"name": "slow", "description": "*x*", "description_html": "<em>x</em>", "color": "#FF0000"}
    assert (in_group.status_code, in_group.json) == (201, {"id": in_group.json["id"]} | of_group | shared)


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"name": None}, {"error": "name is missing"}),
        ({"name": "a,b"}, {"message": {"title": ["is invalid"]}}),
        ({"name": "  "}, {"message": {"title": ["can't be blank", "is invalid"]}}),
        ({"name": "x" * 256}, {"message": {"title": ["is too long (maximum is 255 characters)"]}}),
        ({"color": "reddish"}, {"message": {"color": ["must be a valid color code"]}}),
        ({"priority": "x"}, {"error": "priority is invalid"}),
        ({"priority": -1}, {"message": {"priority": ["must be greater than or equal to 0"]}}),
        ({"description": "é" * (257 << 10)}, {"message": {"description": ["is too long (maximum is 524288 bytes)"]}}),
    ],
)
def test_invalid_labels_are_refused_and_not_stored(fields, refusal, project, as_):
    body = {name: value for name, value in (BUG | fields).items() if value is not None}

    response = as_(RITA).post(labels_path(project), json=body)

    assert (response.status_code, response.json) == (400, refusal)
    assert as_(RITA).get(labels_path(project)).json == []


@pytest.mark.both_databases
def test_a_title_is_unique_in_a_project_and_the_groups_above(project, group, as_):
    as_(RITA).post(labels_path(group), json=BUG)
    as_(RITA).post(labels_path(project), json=BUG | {"name": "slow"})

    refused = [as_(RITA).post(labels_path(owner), json=BUG) for owner in (project, group)]
    repeated = as_(RITA).post(labels_path(project), json=BUG | {"name": "slow"})
    renamed = as_(RITA).put(labels_path(project, "slow"), json={"new_name": "bug"})

    conflict = {"message": "Label already exists"}
    assert [(each.status_code, each.json) for each in (*refused, repeated)] == [(409, conflict)] * 3
    text = f"already exists at group level for {group.name}. Please choose another one."
    assert (renamed.status_code, renamed.json) == (400, {"message": {"title": [text]}})


@pytest.mark.parametrize("owner", ["project", "group"])
def test_reporters_write_labels(owner, request, as_):
    path = labels_path(request.getfixturevalue(owner))

    statuses = [as_(person).post(path, json=BUG).status_code for person in (NOBODY, SAM, GUS, RITA)]

    assert statuses == [401, 404, 403, 201]


def test_labels_of_a_group_need_a_role_in_the_group_also_through_a_project(project, group, people, as_):
    add_member(project, people[SAM], 40)
    label = make_label(group, "bug", color="#111111")

    priority = as_(SAM).put(labels_path(project, "bug"), json={"priority": 2})
    refused = [
        as_(SAM).put(labels_path(project, label.id), json={"color": "#fff"}),
        as_(SAM).delete(labels_path(project, label.id)),
        as_(SAM).put(labels_path(project, label.id, "promote")),
    ]

    assert (priority.status_code, priority.json["priority"], priority.json["is_project_label"]) == (200, 2, False)
    assert [response.status_code for response in refused] == [403] * 3


def test_a_label_is_updated_by_id_title_or_parameter(project, as_):
    label = make_label(project, "bug", color="#111111", priority=1)
    client, path = as_(RITA), labels_path(project)

    by_title = client.put(f"{path}/bug", json={"description": "d", "priority": ""})
    by_id = client.put(f"{path}/{label.id}", json={"color": "#ABC"})
    old_form = client.put(path, json={"name": "bug", "new_name": "defect"})
    by_label_id = client.put(path, json={"label_id": label.id, "priority": None})
    refusals = [client.put(f"{path}/defect", json={}), client.put(path, json={"color": "#fff"})]

    assert (by_title.json["description"], by_title.json["priority"]) == ("d", None)
    assert [by_id.json["color"], old_form.json["name"], by_label_id.status_code] == ["#ABC", "defect", 200]
    texts = [
        "new_name, color, description, priority are missing, at least one parameter must be provided",
        "label_id, name are missing, exactly one parameter must be provided",
    ]
    assert [(refusal.status_code, refusal.json) for refusal in refusals] == [(400, {"error": text}) for text in texts]


@pytest.mark.both_databases
def test_a_rename_reaches_issues_and_merge_requests_that_mean_the_label(project, group, as_):
    other = make_project(namespace=make_group(parent=group))
    make_label(group, "bug")
    make_label(other, "bug")
    rows = [
        make_issue(project, "bug", "defect"),
        make_issue(project, "bug", iid=2),
        make_merge_request(project, labels=["bug"]),
        make_issue(other, "bug"),
    ]

    response = as_(RITA).put(labels_path(group, "bug"), json={"new_name": "defect"})

    assert response.status_code == 200
    assert [labels_of(row) for row in rows] == [["defect"], ["defect"], ["defect"], ["bug"]]


@pytest.mark.both_databases
def test_a_deleted_label_leaves_its_issues_unless_a_group_has_its_title(project, group, as_):
    make_label(group, "bug")
    for title in ("bug", "slow"):
        make_label(project, title)
    issue = make_issue(project, "bug", "slow")

    statuses = [as_(RITA).delete(labels_path(project, title)).status_code for title in ("bug", "slow", "slow")]

    assert (statuses, labels_of(issue)) == ([204, 204, 404], ["bug"])
    assert as_(RITA).delete(labels_path(group), json={"name": "bug"}).status_code == 204
    assert labels_of(issue) == []


def test_projects_see_labels_of_the_groups_above(project, group, as_):
    subgroup = make_group(parent=group)
    below = make_project(namespace=subgroup)
    for owner, title in ((group, "top"), (subgroup, "middle"), (below, "own"), (project, "elsewhere")):
        make_label(owner, title)

    def names(path, query=""):
        return [label["name"] for label in as_(OLIVE).get(f"{path}?{query}").json]

    assert names(labels_path(below)) == ["middle", "own", "top"]
    assert names(labels_path(below), "include_ancestor_groups=false") == ["middle", "own"]
    assert names(labels_path(subgroup)) == ["middle", "top"]
    assert names(labels_path(subgroup), "include_ancestor_groups=false") == ["middle"]
    assert names(labels_path(group), "include_descendant_groups=true") == ["middle", "top"]
    everything = "include_descendant_groups=true&only_group_labels=false"
    assert names(labels_path(group), everything) == ["elsewhere", "middle", "own", "top"]


def test_counts_of_a_group_are_those_of_visible_projects_below(project, group, as_):
    make_label(group, "bug")
    make_issue(make_project(namespace=make_group(parent=group)), "bug")
    make_issue(project, "bug")
    db.session.add(Issue(project_id=project.id, iid=9, title="x", labels=["bug"], confidential=True, state="closed"))
    db.session.commit()
    make_merge_request(project, labels=["bug"])

    def counts(person):
        [label] = as_(person).get(f"{labels_path(group)}?with_counts=true").json
        return [label[f"{key}_count"] for key in ("open_issues", "closed_issues", "open_merge_requests")]

    assert (counts(OLIVE), counts(GUS)) == ([2, 1, 1], [2, 0, 0])


@pytest.mark.both_databases
def test_promoting_merges_the_labels_of_the_projects_of_a_group(project, group, as_):
    other = make_project(namespace=group)
    make_label(project, "bug", color="#123456", priority=3)
    make_label(other, "bug", priority=5)
    issue = make_issue(other, "bug")

    promoted = as_(RITA).put(labels_path(project, "bug", "promote"))
    again = as_(RITA).put(labels_path(project, "promote"), json={"name": "bug"})

    assert (promoted.status_code, promoted.json["color"], labels_of(issue)) == (200, "#123456", ["bug"])
    assert [label.group_id for label in db.session.query(Label)] == [group.id]
    priorities = [as_(OLIVE).get(labels_path(each, "bug")).json["priority"] for each in (project, other)]
    assert priorities == [3, 5]
    text = "Failed to promote project label to group label"
    assert (again.status_code, again.json) == (400, {"message": text})


@pytest.mark.both_databases
def test_an_issue_creates_the_labels_that_neither_project_nor_group_has(project, group, as_):
    make_label(group, "known")
    issues = f"/projects/{project.id}/issues"

    issue = as_(RITA).post(issues, json={"title": "x", "labels": "new, known"}).json
    as_(GUS).post(issues, json={"title": "x", "labels": "dropped"})
    as_(RITA).put(f"{issues}/{issue['iid']}", json={"add_labels": "later", "remove_labels": "gone"})

    found = [(row["name"], row["color"], row["is_project_label"]) for row in as_(GUS).get(labels_path(project)).json]
    new = [(title, "#6699cc", True) for title in ("later", "new")]
    assert sorted(found) == sorted([("known", "#6699cc", False), *new])


def test_changes_of_labels_and_assignees_move_the_time_of_change(project, people, as_):
    path = f"/projects/{project.id}/issues"
    issue = as_(RITA).post(path, json={"title": "x", "labels": "bug"}).json
    times = [issue["updated_at"]]
    assignees = {"assignee_ids": [people[DEV].id]}

    for change in ({"labels": "bug"}, {"labels": "slow"}, {"labels": "slow"}, assignees, assignees):
        times += [as_(RITA).put(f"{path}/{issue['iid']}", json=change).json["updated_at"]]

    assert [later > former for former, later in itertools.pairwise(times)] == [
        False,
        True,
        False,
        True,
        False,
    ]


def test_a_moved_project_keeps_the_labels_of_its_former_group(project, group, as_admin, as_):
    make_label(group, "bug", color="#123456")
    make_label(group, "unused")
    make_issue(project, "bug")
    target = make_group(path="target")

    moved = as_admin.put(f"/projects/{project.id}/transfer", json={"namespace": target.id})

    labels = as_admin.get(labels_path(project)).json
    assert moved.status_code == 200
    assert [(label["name"], label["color"], label["is_project_label"]) for label in labels] == [
        ("bug", "#123456", True)
    ]
