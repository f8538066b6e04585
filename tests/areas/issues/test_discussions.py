"""Locked discussions, and events of deleted milestones."""

from __future__ import annotations

import pytest

from tests.support.sample_data import ADA, SAM, make_project


@pytest.fixture
def public_project(people):
    """A public project without members."""
    return make_project("public", visibility="public")


@pytest.fixture
def issue(public_project, as_):
    return (
        as_(ADA).post(f"/projects/{public_project.id}/issues", json={"title": "Totals", "discussion_locked": True}).json
    )


@pytest.mark.parametrize(("person", "status"), [(ADA, 201), (SAM, 403)])
def test_locked_discussions_accept_comments_of_members_only(person, status, public_project, issue, as_):
    response = as_(person).post(f"/projects/{public_project.id}/issues/{issue['iid']}/notes", json={"body": "me too"})

    assert response.status_code == status


def test_events_of_a_deleted_milestone_follow_the_visibility_of_the_project(people, as_):
    project = make_project(
        "quiet", visibility="public", issues_access_level="private", merge_requests_access_level="private"
    )
    milestones, feed = (
        f"/projects/{project.id}/milestones",
        f"/projects/{project.id}/events?target_type=milestone",
    )
    milestone = as_(ADA).post(milestones, json={"title": "Opening day"}).json
    before = len(as_(SAM).get(feed).json)

    as_(ADA).delete(f"{milestones}/{milestone['id']}")

    assert (before, [event["action_name"] for event in as_(SAM).get(feed).json]) == (0, ["destroyed", "opened"])
