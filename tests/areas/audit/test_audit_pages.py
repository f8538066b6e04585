"""Pages of audit events: permissions, filters, and the CSV file."""

from __future__ import annotations

import csv
import datetime as dt
import io

import pytest

from project_service.access import audit
from project_service.areas.audit import pages as audit_pages
from project_service.domain.audit import recording
from project_service.domain.audit.recording import Author
from project_service.kit import clock
from project_service.kit.db.session import unit_of_work
from project_service.kit.http.csv_files import safe_cell
from tests.support.sample_data import ADA, MAX, OLIVE, SAM

OF_INSTANCE, OF_PROJECT, OF_GROUP = "/admin/audit_logs", "/acme/shop/-/audit_events", "/groups/acme/-/audit_events"


def add_event(entity, message, author=None, days_ago=0):
    with unit_of_work():
        known = Author(author.id, author.name, author.email, "10.0.0.1") if author else recording.SYSTEM
        event = recording.record("test", entity, message, author=known)
        event.created_at = clock.now() - dt.timedelta(days=days_ago)
    return event


def rows_of(response):
    return list(csv.DictReader(io.StringIO(response.get_data(as_text=True), newline="")))


@pytest.fixture
def _events(project, group, people):
    add_event(project, "Something old", people[MAX], days_ago=9)
    add_event(project, "Something new", people[OLIVE])
    add_event(group, "Of the group", people[OLIVE])
    add_event(None, "Of the instance", people[ADA])


@pytest.mark.usefixtures("_events")
@pytest.mark.parametrize(
    ("person", "address", "shown"),
    [
        (ADA, OF_INSTANCE, ["Of the instance", "Of the group", "Something new", "Something old"]),
        (OLIVE, OF_PROJECT, ["Something new", "Something old"]),
        (OLIVE, OF_GROUP, ["Of the group"]),
    ],
)
def test_a_page_and_its_csv_file_show_the_events_of_their_scope(person, address, shown, visit):
    visitor = visit(person)
    page, file = visitor.get(address), visitor.get(f"{address}.csv")

    assert [row["Action"] for row in rows_of(file)] == shown
    assert all(text.lower() in page.text.lower() for text in shown)
    assert (file.mimetype, file.headers["Content-Disposition"].split(";")[0]) == ("text/csv", "attachment")


@pytest.mark.usefixtures("_events")
@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("author=max", ["Something old"]),
        ("author=@olive", ["Something new"]),
        ("author=somebody", []),
        ("to={week_ago}", ["Something old"]),
        ("from={week_ago}", ["Something new"]),
        ("from=2026-99-99&to=rubbish", ["Something new", "Something old"]),
    ],
)
def test_events_are_filtered(query, shown, visit):
    week_ago = (clock.today() - dt.timedelta(days=7)).isoformat()

    file = visit(OLIVE).get(f"{OF_PROJECT}.csv?{query.format(week_ago=week_ago)}")

    assert [row["Action"] for row in rows_of(file)] == shown


@pytest.mark.usefixtures("_events")
@pytest.mark.parametrize(("person", "status"), [(MAX, 403), (SAM, 404)])
def test_other_roles_are_refused(person, status, visit):
    visitor = visit(person)

    assert {visitor.get(path).status_code for path in (OF_PROJECT, f"{OF_PROJECT}.csv", OF_GROUP)} == {status}
    assert visitor.get(f"{OF_INSTANCE}.csv").status_code == 403


@pytest.mark.both_databases
def test_a_csv_file_of_several_batches_has_each_event_once(visit, project, monkeypatch):
    monkeypatch.setattr(audit_pages, "CSV_BATCH_SIZE", 2)
    with unit_of_work():
        for number in range(5):
            audit.record("test", project, f"Event {number}")

    file = visit(OLIVE).get(f"{OF_PROJECT}.csv")

    assert [row["Action"] for row in rows_of(file)] == [f"Event {number}" for number in (4, 3, 2, 1, 0)]


def test_texts_are_escaped_in_csv_and_html(visit, project):
    add_event(project, '=HYPERLINK("http://evil.example","<b>x</b>")')
    visitor = visit(OLIVE)

    assert [row["Action"] for row in rows_of(visitor.get(f"{OF_PROJECT}.csv"))] == [
        '\'=HYPERLINK("http://evil.example","<b>x</b>")'
    ]
    assert "<b>x</b>" not in visitor.get(OF_PROJECT).text


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "  =1"])
def test_formulas_in_csv_get_an_apostrophe(text):
    assert safe_cell(text) == f"'{text}"
    assert [safe_cell(value) for value in ("plain 1=2", -1, None)] == ["plain 1=2", -1, None]
