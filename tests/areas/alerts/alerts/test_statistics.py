"""Statistics of alerts: counts per hour, mean times to acknowledge and resolve."""

from __future__ import annotations

import datetime as dt

import pytest
from sqlalchemy import true

from project_service.areas.alerts.alerts import service
from project_service.areas.alerts.models import Alert, Status
from project_service.areas.alerts.statistics.statistics import statistics_of
from project_service.kit import clock
from tests.support.sample_data import DEV, MAX, RITA
from tests.support.visitors import store


@pytest.fixture
def alert(project):
    """An alert that started an hour ago."""
    start = clock.now() - dt.timedelta(hours=1)
    return store(Alert(project_id=project.id, iid=1, title="Stuck", started_at=start, created_at=start))


def test_mean_times_are_those_from_the_start(alert, people):
    service.change_status(people[MAX], alert, Status.ACKNOWLEDGED)
    service.change_status(people[MAX], alert, Status.RESOLVED)

    found = statistics_of(true())

    means = [round(length.total_seconds() / 3600) for length in (found.mean_to_acknowledge, found.mean_to_resolve)]
    assert (found.count, found.chart.total, means) == (1, 1, [1, 1])


def test_an_alert_that_is_triggered_again_is_not_acknowledged(alert, people):
    service.change_status(people[MAX], alert, Status.ACKNOWLEDGED)
    service.change_status(people[MAX], alert, Status.TRIGGERED)

    assert statistics_of(true()).mean_to_acknowledge is None


@pytest.mark.parametrize(("person", "shown"), [(DEV, True), (RITA, False)])
def test_the_page_of_a_group_counts_alerts_that_the_reader_may_see(person, shown, visit, alert):
    text = visit(person).get("/groups/acme/-/alert_statistics").text

    assert ("Mean time to acknowledge" in text) == shown
