"""Lists of rows with long texts: complete in the API, shortened on pages."""

from __future__ import annotations

import pytest

from project_service.kit.db.large_texts import MAX_LISTED_CHARACTERS
from tests.support.sample_data import MAX

LONG = "ä" * (MAX_LISTED_CHARACTERS + 1)
TEXTS = ["short", LONG[:-1], LONG, LONG * 40]
SHORTENED = "This comment is long, and shortened here."


@pytest.mark.both_databases
def test_lists_return_texts_in_full(as_maintainer, project):
    project_path = f"/projects/{project.id}"
    issues = [
        as_maintainer.post(f"{project_path}/issues", json={"title": "x", "description": text}).json
        for text in [None, "", *TEXTS]
    ]
    notes = f"{project_path}/issues/{issues[0]['iid']}/notes"
    for text in TEXTS:
        as_maintainer.post(notes, json={"body": text})
        as_maintainer.post(f"{project_path}/milestones", json={"title": str(len(text)), "description": text})

    listed = as_maintainer.get(f"{project_path}/issues?sort=asc")
    events = as_maintainer.get(f"{project_path}/events?action=commented&sort=asc").json
    milestones = as_maintainer.get(f"{project_path}/milestones").json
    unchanged = as_maintainer.get(f"{project_path}/issues?sort=asc", headers={"If-None-Match": listed.headers["ETag"]})

    assert (unchanged.status_code, unchanged.data) == (304, b"")
    assert [issue["description"] for issue in listed.json] == [None, "", *TEXTS]
    assert listed.json == [as_maintainer.get(f"{project_path}/issues/{issue['iid']}").json for issue in listed.json]
    assert [note["body"] for note in as_maintainer.get(f"{notes}?sort=asc").json] == TEXTS
    assert [event["note"]["body"] for event in events] == TEXTS
    assert sorted((row["description"] for row in milestones), key=len) == TEXTS


def test_a_page_shows_the_beginning_of_a_long_comment(as_maintainer, project, visit):
    issue = as_maintainer.post(f"/projects/{project.id}/issues", json={"title": "x"}).json
    for text in TEXTS:
        as_maintainer.post(f"/projects/{project.id}/issues/{issue['iid']}/notes", json={"body": text})

    page = visit(MAX).get(f"/{project.full_path}/-/issues/{issue['iid']}").text

    assert page.count(SHORTENED) == 2
    assert len(page) < 5 * len(LONG)
