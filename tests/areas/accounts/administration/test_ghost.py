"""Contributions of deleted users: moved to the ghost user or removed (supporting resources reference, section 3)."""

from __future__ import annotations

import pytest

from tests.support.sample_data import DEV

pytestmark = pytest.mark.both_databases


@pytest.fixture
def issue(project, as_):
    return as_(DEV).post(f"/projects/{project.id}/issues", json={"title": "Broken totals"}).json


def test_contributions_of_a_deleted_user_move_to_the_ghost_user(issue, project, people, as_admin, run_jobs):
    as_admin.delete(f"/users/{people[DEV].id}")
    run_jobs()

    response = as_admin.get(f"/projects/{project.id}/issues/{issue['iid']}")
    assert (response.status_code, response.json["author"]["username"]) == (200, "ghost")


def test_a_hard_delete_removes_the_contributions_of_the_user(issue, project, people, as_admin, run_jobs):
    as_admin.delete(f"/users/{people[DEV].id}?hard_delete=true")
    run_jobs()

    assert as_admin.get(f"/projects/{project.id}/issues").json == []
    assert as_admin.get(f"/users/{people[DEV].id}").status_code == 404
