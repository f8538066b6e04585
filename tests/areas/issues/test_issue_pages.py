"""Pages of issues."""

from __future__ import annotations

import datetime as dt

import pytest

from project_service.domain.accounts.users import User
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.milestones import CLOSED, Milestone
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import DEV, GUS, MAX, RITA, SAM


def make_issue(project, **fields):
    issue = Issue(project_id=project.id, iid=1, title="Totals", **fields)
    db.session.add(issue)
    db.session.commit()
    return issue


def test_a_link_to_a_note_opens_the_page_with_the_note(project, people, visit):
    issue = make_issue(project)
    start = clock.now()
    notes = [
        Note(
            project_id=project.id,
            noteable_type="Issue",
            noteable_id=issue.id,
            body=f"remark {number}.",
            author_id=people[MAX].id,
            created_at=start + dt.timedelta(seconds=number),
        )
        for number in range(101)
    ]
    db.session.add_all(notes)
    db.session.commit()
    last = notes[-1].id

    page = visit(MAX).get(f"/{project.full_path}/-/issues/1?note={last}").text

    assert ("remark 100." in page, "remark 0." in page) == (True, False)


def test_the_edit_page_selects_the_current_values(project, people, visit):
    milestone = Milestone(project_id=project.id, iid=1, title="Long gone", state=CLOSED)
    db.session.add(milestone)
    db.session.flush()
    issue = make_issue(project, milestone_id=milestone.id)
    issue.assignees = [db.session.get(User, people[SAM].id)]
    db.session.commit()

    page = visit(MAX).get(f"/{project.full_path}/-/issues/1/edit").text

    assert ("Long gone" in page, "@sam" in page) == (True, True)


@pytest.fixture
def comment(project, people):
    """The address of a comment by dev on the first issue."""
    issue = make_issue(project, author_id=people[MAX].id)
    note = issue_rules.create_note(people[DEV], issue, body="It is cold.")
    db.session.commit()
    return f"/{project.full_path}/-/issues/1/notes/{note.id}"


def bodies():
    db.session.remove()
    return [note.body for note in db.session.query(Note).filter(Note.system.is_(False))]


@pytest.mark.parametrize("person", [DEV, MAX])
def test_a_comment_is_changed_by_its_author_and_by_maintainers(person, comment, visit):
    visitor = visit(person)

    blank = visitor.send(f"{comment}/edit", note=" ")
    response = visitor.send(f"{comment}/edit", note="It is warm.")
    page = visitor.get(response.location).text

    assert (blank.status_code, "can&#39;t be blank" in blank.text) == (422, True)
    assert (response.status_code, bodies(), "It is warm." in page) == (302, ["It is warm."], True)
    assert f'href="{comment}/edit"' in page


def test_a_comment_is_deleted_after_confirmation(comment, visit, project):
    visitor = visit(DEV)
    page = visitor.get(f"{comment}/delete")

    response = visitor.send(f"{comment}/delete")

    assert ("Delete this comment?" in page.text, response.location) == (True, f"/{project.full_path}/-/issues/1")
    assert (bodies(), db.session.query(Issue).one().notes_count) == ([], 0)


@pytest.mark.parametrize(("person", "status"), [(RITA, 403), (SAM, 404)])
def test_other_users_cannot_change_a_comment(person, status, comment, visit):
    visitor = visit(person)

    assert [visitor.send(f"{comment}/{action}", note="x").status_code for action in ("edit", "delete")] == [status] * 2
    assert bodies() == ["It is cold."]


def test_texts_are_rendered_as_markdown(comment, project, visit):
    issue = db.session.query(Issue).one()
    issue.description = "**Severity:** high\n\n- <script>alert(1)</script>\n- [x](javascript:alert(1))"
    db.session.query(Note).one().body = "see [this](https://e.org)"
    db.session.commit()

    page = visit(DEV).get(f"/{project.full_path}/-/issues/1").text

    for part in (
        "<p><strong>Severity:</strong> high</p>",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        '<li><a rel="nofollow noopener noreferrer">x</a></li>',
        '<a href="https://e.org" rel="nofollow noopener noreferrer">this</a>',
    ):
        assert part in page, part


def test_a_milestone_shows_its_issues_and_progress(project, visit):
    milestone = Milestone(project_id=project.id, iid=1, title="Spring")
    db.session.add(milestone)
    db.session.flush()
    fields = {"project_id": project.id, "milestone_id": milestone.id}
    db.session.add(Issue(iid=1, title="Totals", state="closed", **fields))
    db.session.add(Issue(iid=2, title="Secret sums", confidential=True, **fields))
    db.session.commit()
    address = f"/{project.full_path}/-/milestones/1"

    reporter, guest = visit(RITA).get(address).text, visit(GUS).get(address).text

    assert ("1 of 2 closed" in reporter, "#2 Secret sums" in reporter) == (True, True)
    assert ("1 of 1 closed" in guest, "Secret sums" in guest) == (True, False)


def test_tasks_are_ticked_by_those_who_may_change_the_text(visit, as_, project):
    address = f"/projects/{project.id}/issues"
    as_(MAX).post(address, json={"title": "Till", "description": "- [ ] oil\n- [x] paint"})
    note = as_(MAX).post(f"{address}/1/notes", json={"body": "- [ ] clean"}).json
    maintainer, page = visit(MAX), "/acme/shop/-/issues/1"

    statuses = [
        visitor.send(f"{page}{where}/tasks", line=line, checked="true").status_code
        for visitor, where, line in (
            (maintainer, "", "1"),
            (maintainer, "", "1"),
            (maintainer, f"/notes/{note['id']}", "1"),
            (visit(GUS), "", "2"),
        )
    ]

    assert statuses == [302, 409, 302, 403]
    assert as_(MAX).get(f"{address}/1").json["description"] == "- [x] oil\n- [x] paint"
    assert as_(MAX).get(f"{address}/1/notes/{note['id']}").json["body"] == "- [x] clean"
    assert ["data-tasks" in visitor.get(page).text for visitor in (maintainer, visit(GUS))] == [True, False]


def test_a_reply_follows_its_comment(comment, project, visit):
    visitor = visit(RITA)
    issue = f"/{project.full_path}/-/issues/1"
    visitor.send(f"{issue}/notes", note="Later remark.")

    form = visitor.get(f"{comment}/reply").text
    blank = visitor.send(f"{comment}/reply", note="")
    sent = visitor.send(f"{comment}/reply", note="It is warm.")
    page = visitor.get(sent.location).text

    assert ("It is cold." in form, blank.status_code, sent.status_code) == (True, 422, 302)
    bodies_in_order = [page.index(f"<p>{text}</p>") for text in ("It is cold.", "It is warm.", "Later remark.")]
    assert (bodies_in_order, page.count('class="reply"')) == (sorted(bodies_in_order), 1)
    assert visit(SAM).get(f"{comment}/reply").status_code == 404
