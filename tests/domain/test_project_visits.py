"""The projects that a user visited last."""

from __future__ import annotations

import datetime as dt

from project_service.domain import project_visits
from project_service.domain.project_visits import ProjectVisit, visited_by
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import MAX, make_project


def test_a_page_of_a_project_is_a_visit_and_others_are_not(maintainer, people, project):
    maintainer.get("/acme/shop/-/issues")
    maintainer.get("/acme/shop")
    maintainer.get("/acme")

    assert [visit.project_id for visit in db.session.query(ProjectVisit).all()] == [project.id]


def test_only_the_last_twenty_visits_are_stored(people, monkeypatch):
    projects = [make_project(f"p{number}") for number in range(22)]
    start = clock.now()

    for minute, project in enumerate([*projects, projects[5]]):
        monkeypatch.setattr(clock, "now", lambda minute=minute: start + dt.timedelta(minutes=minute))
        project_visits.note_visit(people[MAX].id, project.id)

    visited = [project.path for project in db.session.scalars(visited_by(people[MAX].id))]
    assert visited == ["p5", *(f"p{number}" for number in range(21, 1, -1) if number != 5)]
