"""What the pages of an issue keep and lead to."""

from __future__ import annotations

import datetime as dt

from project_service.core.users import User
from project_service.kit import clock
from project_service.kit.database import db
from project_service.tracker.issues import Issue
from project_service.tracker.milestones import CLOSED, Milestone
from project_service.tracker.notes import Note
from tests.worlds import MAX, SAM


def make_issue(project, **fields):
    issue = Issue(project_id=project.id, iid=1, title="Totals", **fields)
    db.session.add(issue)
    db.session.commit()
    return issue


def test_a_link_to_a_note_opens_the_page_it_is_on(project, people, visit):
    issue = make_issue(project)
    began = clock.now()
    notes = [
        Note(
            project_id=project.id,
            noteable_type="Issue",
            noteable_id=issue.id,
            body=f"remark {number}.",
            author_id=people[MAX].id,
            created_at=began + dt.timedelta(seconds=number),
        )
        for number in range(101)
    ]
    db.session.add_all(notes)
    db.session.commit()
    last = notes[-1].id

    page = visit(MAX).get(f"/{project.full_path}/-/issues/1?note={last}").text

    assert ("remark 100." in page, "remark 0." in page) == (True, False)


def test_the_edit_page_offers_what_the_issue_has(project, people, visit):
    milestone = Milestone(project_id=project.id, iid=1, title="Long gone", state=CLOSED)
    db.session.add(milestone)
    db.session.flush()
    issue = make_issue(project, milestone_id=milestone.id)
    issue.assignees = [db.session.get(User, people[SAM].id)]
    db.session.commit()

    page = visit(MAX).get(f"/{project.full_path}/-/issues/1/edit").text

    assert ("Long gone" in page, "@sam" in page) == (True, True)
