"""Many rows at once arrive as they were given."""

from __future__ import annotations

import datetime as dt
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select

from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import Note
from project_service.kit.db.bulk import Writer, new_ids, table_of_ids
from project_service.kit.db.session import db
from tests.support.sample_data import make_project, make_user

pytestmark = pytest.mark.both_databases
MOMENT = dt.datetime(2026, 3, 14, 15, 9, 26, 535897, dt.UTC)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)))
data = st.none() | st.dictionaries(texts, st.recursive(st.none() | st.booleans() | texts, st.lists), max_size=3)


@pytest.fixture
def place(app):
    """Ids of a project and of a user."""
    made = make_project().id, make_user().id
    db.session.commit()
    return made


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(texts, st.none() | texts, st.booleans(), data), max_size=5))
def test_rows_are_read_back_unchanged(place, rows):
    project_id, author_id = place
    columns = ("id", "project_id", "noteable_type", "body", "attachment", "system", "confidential", "position")
    writer = Writer(Note, *columns, "author_id", "created_at", "updated_at")
    given = [
        (number, project_id, "Issue", body, attachment, system, False, position, author_id, MOMENT, MOMENT)
        for number, (body, attachment, system, position) in enumerate(rows, 1)
    ]

    writer.write(given)

    found = db.session.scalars(select(Note).order_by(Note.id)).all()
    assert [(one.body, one.attachment, one.system, one.position) for one in found] == rows
    assert {(one.author_id, one.created_at, one.confidential) for one in found} <= {(author_id, MOMENT, False)}
    db.session.execute(delete(Note))
    db.session.commit()


@pytest.mark.parametrize("text", ["\\", "\\N", "\\.", "a\tb", "a\nb", "a\r\nb", "\\t", "", " ", "é\u2028🚀", '"', "'"])
def test_special_characters_in_texts_are_literal(place, text):
    writer = Writer(Milestone, "id", "project_id", "iid", "title", "state", "due_date", "created_at", "updated_at")

    writer.write([(1, place[0], 1, text, "active", dt.date(2026, 2, 28), MOMENT, MOMENT)])

    found = db.session.get_one(Milestone, 1)
    assert (found.title, found.due_date, found.start_date) == (text, dt.date(2026, 2, 28), None)


def test_many_rows_take_one_statement_and_no_rows_take_none(place, count_queries):
    writer = Writer(Milestone, "id", "project_id", "iid", "title", "state", "created_at", "updated_at")
    rows = [(number, place[0], number, f"M{number}", "active", MOMENT, MOMENT) for number in range(1, 20)]

    with count_queries() as none:
        writer.write([])
    with count_queries() as many:
        writer.write(rows)

    # COPY is sent by the driver, where nothing counts it
    statements = [text.split(" (")[0] for text in many if text != "BEGIN IMMEDIATE"]
    assert (none, statements) == ([], ["INSERT INTO milestones"] if db.engine.dialect.name == "sqlite" else [])


def test_reserved_ids_are_unique(place):
    one, other = new_ids(Milestone), new_ids(Milestone)

    taken = [*islice(one, 1500), *islice(other, 1500), *islice(one, 2000)]
    row = Milestone(project_id=place[0], iid=1, title="by itself", state="active")
    db.session.add(row)
    db.session.commit()

    assert len({row.id, *taken}) == 5001


def test_ids_are_reserved_in_growing_ranges(place, count_queries):
    next(new_ids(Milestone))  # SQLite has no number to go on from before

    with count_queries() as few:
        next(new_ids(Milestone))
    with count_queries() as many:
        assert len(set(islice(new_ids(Milestone), 1000 + 2000 + 4000))) == 7000

    assert len(many) == 3 * len(few)


def test_ids_are_sent_as_a_table(place):
    for iid in (1, 2, 2**31 - 1):
        db.session.add(Milestone(project_id=place[0], iid=iid, title=f"M{iid}", state="active"))
    db.session.flush()

    def found(*iids):
        wanted = select(table_of_ids(iids).c.value)
        return list(db.session.scalars(select(Milestone.iid).where(Milestone.iid.in_(wanted)).order_by(Milestone.iid)))

    assert [found(), found(1), found(2**31 - 1, -1, 2, 7)] == [[], [1], [2, 2**31 - 1]]
    db.session.rollback()
