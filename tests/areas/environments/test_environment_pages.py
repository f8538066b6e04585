"""Pages of environments."""

from __future__ import annotations

import datetime as dt
import html
import re

import pytest

from project_service.areas.alerts.models import Alert, Status
from project_service.domain.tracker.environments import Environment
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support import sample_data
from tests.support.sample_data import ADA, DEV, GUS, MAX, OLIVE, RITA, SAM
from tests.support.visitors import store

LIST = "/acme/shop/-/environments"
NEW = f"{LIST}/new"


@pytest.fixture
def production(project):
    fields = {"name": "production", "slug": "production", "external_url": "https://shop.example"}
    return store(Environment(project_id=project.id, **fields))


@pytest.fixture
def developer(visit, project):
    return visit(DEV)


def page_of(environment, name):
    return f"{LIST}/{environment.id}/{name}"


def stored():
    db.session.remove()
    return [(one.name, one.slug, one.external_url) for one in db.session.query(Environment).order_by(Environment.id)]


def make_alert(environment, iid, **fields):
    fields = {"title": f"Trouble {iid}", "started_at": clock.now() - dt.timedelta(hours=iid)} | fields
    return store(Alert(project_id=environment.project_id, environment_id=environment.id, iid=iid, **fields))


def test_an_empty_list_has_an_empty_state(developer):
    page = developer.get(LIST)

    assert (page.status_code, "There are no environments yet." in page.text) == (200, True)


def test_an_environment_is_created_and_listed(developer):
    form = developer.get(NEW)
    response = developer.send(NEW, name="production", external_url="https://shop.example")
    page = developer.get(response.location).text

    assert ("New environment" in form.text, response.location) == (True, LIST)
    assert stored() == [("production", "production", "https://shop.example")]
    assert ("<strong>production</strong>" in page, 'href="https://shop.example"' in page) == (True, True)
    assert "No open alerts" in page


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "production"}, "Name has already been taken"),
        ({"name": ""}, "Name can't be blank"),
        ({"name": "sh@p"}, "Name can contain only letters"),
        ({"name": "staging", "external_url": "javascript:alert(1)"}, "External URL is blocked"),
    ],
)
def test_a_refused_environment_keeps_the_form_values(fields, message, developer, production):
    other = store(Environment(project_id=production.project_id, name="other", slug="other"))
    before = stored()

    responses = [developer.send(address, **fields) for address in (NEW, page_of(other, "edit"))]

    assert [response.status_code for response in responses] == [422, 422]
    assert all(message in html.unescape(response.text) for response in responses)
    assert all(f'value="{fields["name"]}"' in response.text for response in responses)
    assert stored() == before


def test_an_environment_is_edited_and_keeps_its_slug(developer, production):
    form = developer.get(page_of(production, "edit"))

    response = developer.send(page_of(production, "edit"), name="live", external_url="")

    assert ('value="production"' in form.text, 'value="https://shop.example"' in form.text) == (True, True)
    assert (response.location, stored()) == (LIST, [("live", "production", None)])


def test_a_deleted_environment_leaves_its_alerts(developer, production):
    make_alert(production, 1)
    confirmation = developer.get(page_of(production, "delete"))

    response = developer.send(page_of(production, "delete"))

    assert "Delete the environment production?" in confirmation.text
    assert (response.location, stored()) == (LIST, [])
    assert [(alert.title, alert.environment_id) for alert in db.session.query(Alert)] == [("Trouble 1", None)]


def test_the_list_shows_the_newest_open_alerts_of_each_environment(developer, production):
    states = {6: Status.ACKNOWLEDGED, 8: Status.RESOLVED, 9: Status.IGNORED}
    for iid in range(1, 10):
        make_alert(production, iid, status=states.get(iid, Status.TRIGGERED))

    page = developer.get(LIST).text

    assert re.findall(r"/alert_management/(\d+)/details", page) == ["1", "2", "3", "4", "5"]
    assert "and 2 more open alerts" in page


def test_environments_are_paginated(developer, project):
    fields = {"project_id": project.id}
    db.session.add_all(Environment(name=f"review-{number}", slug=f"review-{number}", **fields) for number in range(21))
    db.session.commit()

    first, second = developer.get(LIST).text, developer.get(f"{LIST}?page=2").text

    assert ("review-19" in first, "review-20" in first, 'rel="next" href="?page=2"' in first) == (True, False, True)
    assert ("review-19" in second, "review-20" in second, 'rel="prev"' in second) == (False, True, True)


@pytest.mark.parametrize(
    ("person", "status"), [(ADA, 200), (OLIVE, 200), (MAX, 200), (DEV, 200), (RITA, 403), (GUS, 403), (SAM, 404)]
)
def test_roles_that_see_the_pages_of_environments(person, status, visit, production):
    visitor = visit(person)
    addresses = (LIST, NEW, page_of(production, "edit"), page_of(production, "delete"))

    assert [visitor.get(address).status_code for address in addresses] == [status] * 4


@pytest.mark.parametrize(("person", "status"), [(RITA, 403), (SAM, 404)])
def test_roles_that_cannot_change_environments(person, status, visit, production):
    visitor, before = visit(person), stored()
    addresses = (NEW, page_of(production, "edit"), page_of(production, "delete"))

    assert [visitor.send(address, name="mine").status_code for address in addresses] == [status] * 3
    assert stored() == before


def test_an_environment_of_another_project_has_no_page(visit, project):
    elsewhere = store(Environment(project_id=sample_data.make_project().id, name="theirs", slug="theirs"))
    admin = visit(ADA)

    assert [admin.get(page_of(elsewhere, name)).status_code for name in ("edit", "delete")] == [404, 404]
    assert admin.send(page_of(elsewhere, "delete")).status_code == 404
    assert [name for name, *_ in stored()] == ["theirs"]
