"""The deadline of searches that compare texts."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from project_service.domain.tracker.labels import Label
from project_service.kit.db import deadlines, searching
from project_service.kit.db.base import table_of
from project_service.kit.db.session import db, insert, reading
from tests.support.sample_data import RITA

ENDLESS = text("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n")


@pytest.fixture
def slow_search(project, monkeypatch):
    """Labels whose search takes longer than searches may."""
    rows = [
        {"project_id": project.id, "title": f"l{n}", "color": "#000000", "description": "a" * 4000} for n in range(5000)
    ]
    db.session.execute(insert(table_of(Label)), rows)
    db.session.commit()
    monkeypatch.setattr(deadlines, "SEARCH_SECONDS", 0)


@pytest.mark.both_databases
def test_a_search_ends_at_its_deadline(as_, project, slow_search):
    path = f"/projects/{project.id}/labels"

    stopped = as_(RITA).get(f"{path}?search=nowhere")
    whole = as_(RITA).get(path)

    assert (stopped.status_code, stopped.headers["Retry-After"], whole.status_code) == (503, "10", 200)
    assert stopped.json["message"].endswith("search for something more specific")


def test_the_page_of_a_search_that_takes_too_long_says_so(visit, project, slow_search):
    page = visit(RITA).get(f"/{project.full_path}/-/labels?search=nowhere")

    assert (page.status_code, page.headers["Retry-After"]) == (503, "10")
    assert "Search for something more specific" in page.text


@pytest.mark.both_databases
def test_statements_of_a_request_share_one_deadline_and_jobs_have_none(app, monkeypatch):
    monkeypatch.setattr(deadlines, "SEARCH_SECONDS", 0.05)
    with app.test_request_context(), pytest.raises(OperationalError) as raised, reading():
        searching.contains("word", Label.title)
        db.session.execute(ENDLESS)

    with app.test_request_context(), reading():
        finite = db.session.scalar(text(f"{ENDLESS.text.replace('FROM n)', 'FROM n WHERE x < 300000)')}"))
    with app.app_context(), reading():
        searching.contains("word", Label.title)
        outside = db.session.scalar(text(f"{ENDLESS.text.replace('FROM n)', 'FROM n WHERE x < 300000)')}"))

    assert deadlines.is_exceeded(raised.value)
    assert (finite, outside) == (300000, 300000)


def test_a_search_for_hundreds_of_words_is_refused(as_, project):
    words = "+".join(f"word{number}" for number in range(65))

    answers = [as_(RITA).get(f"/projects/{project.id}/{name}?search={words}") for name in ("labels", "issues")]

    assert [(one.status_code, one.json["message"]) for one in answers] == [
        (400, "400 Bad request - Search query is too long")
    ] * 2
