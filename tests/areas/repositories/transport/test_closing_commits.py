"""Commits on the default branch that close issues."""

from __future__ import annotations

import pytest

from project_service.domain.tracker.issues import Issue
from tests.support.sample_data import DEV, MAX, reload
from tests.support.visitors import store


@pytest.fixture
def issues(project, code):
    return [store(Issue(project_id=project.id, iid=iid, title="Till")) for iid in (1, 2, 3)]


def commit(client, code, message, branch="main", **more):
    actions = [{"action": "create", "file_path": f"{abs(hash(message))}.txt", "content": "x"}]
    fields = {"branch": branch, "commit_message": message, "actions": actions, **more}
    return client.post(f"{code}/commits", json=fields)


def states(issues):
    return [reload(issue).state for issue in issues]


def test_a_commit_on_the_default_branch_closes_the_issues_that_it_names(as_, code, issues, project):
    made = commit(as_(DEV), code, "Mend the till\n\nCloses #1, #2 and #99")

    notes = as_(DEV).get(f"/projects/{project.id}/issues/1/notes").json
    assert (made.status_code, states(issues)) == (201, ["closed", "closed", "opened"])
    assert (notes[0]["body"], notes[0]["system"]) == (f"closed via commit {made.json['id']}", True)
    assert reload(issues[0]).closed_by.username == DEV


def test_other_branches_and_other_words_close_nothing(as_, code, issues):
    commit(as_(DEV), code, "Closes #1", "work", start_branch="main")
    commit(as_(DEV), code, "See #2, encloses#3")

    assert states(issues) == ["opened"] * 3


def test_a_project_can_switch_it_off(as_, as_admin, code, issues, project):
    as_admin.put(f"/projects/{project.id}", json={"autoclose_referenced_issues": False})
    commit(as_(DEV), code, "Closes #1")

    assert states(issues) == ["opened"] * 3


def test_the_first_push_closes_issues_too(as_, project):
    issue = store(Issue(project_id=project.id, iid=3, title="Till"))

    commit(as_(MAX), f"/projects/{project.id}/repository", "Begin\n\nCloses #3")

    assert states([issue]) == ["closed"]
