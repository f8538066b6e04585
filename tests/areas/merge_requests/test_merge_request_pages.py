"""Pages of merge requests."""

from __future__ import annotations

import pytest

from project_service.domain.events import recording
from project_service.domain.events.models import Action
from project_service.kit.db.session import db
from tests.support.sample_data import DEV, GUS, MAX, RITA, make_merge_request, make_note

MERGE_REQUESTS = "/acme/shop/-/merge_requests"
MERGE_REQUEST = f"{MERGE_REQUESTS}/1"


@pytest.fixture
def merge_request(project, people):
    return make_merge_request(
        project,
        "Mend <the> till",
        description="It **sticks**.",
        author_id=people[MAX].id,
        labels=["till"],
        source_branch="mend",
        target_branch="main",
    )


def test_the_list_has_tabs_and_a_search(merge_request, project, visit):
    make_merge_request(project, "Old sums", state="merged")
    visitor = visit(RITA)

    shown = {
        query: [
            title
            for title in ("Mend &lt;the&gt; till", "Old sums")
            if title in visitor.get(f"{MERGE_REQUESTS}?{query}").text
        ]
        for query in ("", "state=merged", "state=all", "state=closed", "search=old&state=all", "state=nonsense")
    }

    both = ["Mend &lt;the&gt; till", "Old sums"]
    assert shown == {
        "": both[:1],
        "state=merged": both[1:],
        "state=all": both,
        "state=closed": [],
        "search=old&state=all": both[1:],
        "state=nonsense": both[:1],
    }


def test_an_empty_list_explains_where_merge_requests_come_from(project, visit):
    assert "They come with projects that are imported." in visit(DEV).get(MERGE_REQUESTS).text


def test_a_merge_request_shows_its_fields_and_notes(merge_request, people, visit):
    make_note(merge_request, "Looks *good*", author_id=people[DEV].id)
    make_note(merge_request, "approved this", system=True)
    make_note(merge_request, "Among us", confidential=True)

    page = visit(RITA).get(MERGE_REQUEST).text

    for part in (
        *("Mend &lt;the&gt; till", "It <strong>sticks</strong>.", "<code>mend</code> into <code>main</code>"),
        *("Looks <em>good</em>", "approved this", "Among us"),
    ):
        assert part in page, part


def test_unknown_and_hidden_merge_requests_are_refused(merge_request, visit):
    reporter = visit(RITA)

    found = [reporter.get(f"{MERGE_REQUESTS}/{iid}").status_code for iid in (2, 10**20)]

    assert (found, visit(GUS).get(MERGE_REQUEST).status_code) == ([404, 404], 403)


def test_a_link_to_a_note_opens_the_page_with_the_note(merge_request, monkeypatch, visit):
    monkeypatch.setattr("project_service.access.visible_notes.NOTES_PER_PAGE", 2)
    notes = [make_note(merge_request, f"word {number}").id for number in range(3)]
    visitor = visit(RITA)

    pages = {query: visitor.get(f"{MERGE_REQUEST}?{query}").text for query in (f"note={notes[2]}", "page=2", "")}

    assert [f'id="note_{notes[2]}"' in page for page in pages.values()] == [True, True, False]
    assert visitor.get(f"{MERGE_REQUEST}?note=999999").status_code == 404


def test_the_feed_links_to_the_merge_request_and_its_notes(merge_request, people, project, visit):
    note = make_note(merge_request, "Looks good", author_id=people[DEV].id)
    recording.record(people[DEV], Action.CREATED, project, merge_request)
    recording.record(people[DEV], Action.COMMENTED, project, note)
    db.session.commit()

    page = visit(RITA).get("/acme/shop").text

    assert f'<a href="{MERGE_REQUEST}">!1 Mend &lt;the&gt; till</a>' in page
    assert f'<a href="{MERGE_REQUEST}?note={note.id}#note_{note.id}">' in page
