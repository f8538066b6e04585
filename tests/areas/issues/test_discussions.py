"""Locked discussions, and events of deleted milestones."""

from __future__ import annotations

import pytest

from tests.support.sample_data import ADA, SAM, make_project


@pytest.fixture
def place(people):
    """A public project in which nobody has a role."""
    return make_project("place", visibility="public")


@pytest.fixture
def issue(place, as_):
    return as_(ADA).post(f"/projects/{place.id}/issues", json={"title": "Totals", "discussion_locked": True}).json


@pytest.mark.parametrize(("person", "status"), [(ADA, 201), (SAM, 403)])
def test_locked_discussions_accept_comments_of_members_only(person, status, place, issue, as_):
    response = as_(person).post(f"/projects/{place.id}/issues/{issue['iid']}/notes", json={"body": "me too"})

    assert response.status_code == status


def test_events_of_a_deleted_milestone_follow_the_visibility_of_the_project(people, as_):
    place = make_project(
        "quiet", visibility="public", issues_access_level="private", merge_requests_access_level="private"
    )
    milestones, feed = f"/projects/{place.id}/milestones", f"/projects/{place.id}/events?target_type=milestone"
    made = as_(ADA).post(milestones, json={"title": "Opening day"}).json
    before = len(as_(SAM).get(feed).json)

    as_(ADA).delete(f"{milestones}/{made['id']}")

    assert (before, [event["action_name"] for event in as_(SAM).get(feed).json]) == (0, ["destroyed", "opened"])
