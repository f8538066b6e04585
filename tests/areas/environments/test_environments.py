"""Environments through HTTP."""

from __future__ import annotations

import pytest

from project_service.areas.alerts.models import Alert
from project_service.domain.tracker.environments import Environment
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support import sample_data
from tests.support.sample_data import ADA, DEV, GUS, MAX, NOBODY, OLIVE, RITA, SAM

NAME = (
    "can contain only letters, digits, '-', '_', '/', '$', '{', '}', '.', and spaces, "
    "but it cannot start or end with '/'"
)
BLOCKED = "is blocked: Only allowed schemes are http, https"


def environments(project, environment_id=None):
    path = f"/projects/{project.id}/environments"
    return path if environment_id is None else f"{path}/{environment_id}"


@pytest.fixture
def as_developer(as_):
    return as_(DEV)


@pytest.fixture
def production(as_developer, project):
    return as_developer.post(environments(project), json={"name": "production"}).json


def everything(client, project, environment_id):
    """Return the responses of all operations, reads first."""
    one, fields = environments(project, environment_id), {"name": "other"}
    responses = [client.get(environments(project)), client.get(one), client.post(environments(project), json=fields)]
    return [*responses, client.put(one, json={}), client.delete(one)]


def test_an_environment_is_created_shown_and_listed(as_developer, project):
    fields = {"name": "production", "external_url": "https://shop.example"}

    created = as_developer.post(environments(project), json=fields)

    assert created.status_code == 201
    assert list(created.json) == ["id", "name", "slug", "external_url", "state", "created_at", "updated_at"]
    assert created.json | fields | {"slug": "production", "state": "available"} == created.json
    assert as_developer.get(environments(project, created.json["id"])).json == created.json
    assert as_developer.get(environments(project)).json == [created.json]


@pytest.mark.parametrize(
    ("person", "statuses"),
    [
        (ADA, [200, 200, 201, 200, 204]),
        (OLIVE, [200, 200, 201, 200, 204]),
        (MAX, [200, 200, 201, 200, 204]),
        (DEV, [200, 200, 201, 200, 204]),
        (RITA, [403] * 5),
        (GUS, [403] * 5),
        (SAM, [404] * 5),
        (NOBODY, [401] * 5),
    ],
)
def test_developers_and_higher_roles_manage_environments(person, statuses, as_, project, production):
    assert [response.status_code for response in everything(as_(person), project, production["id"])] == statuses


def test_an_environment_of_another_project_is_not_found(as_admin, project, production):
    other = sample_data.make_project()

    responses = everything(as_admin, other, production["id"])

    assert [response.status_code for response in responses] == [200, 404, 201, 404, 404]
    assert responses[1].json == {"message": "404 Environment Not Found"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": ""}, {"name": ["can't be blank"]}),
        ({"name": "  "}, {"name": ["can't be blank"]}),
        ({"name": "x" * 256}, {"name": ["is too long (maximum is 255 characters)"]}),
        ({"name": "pr@duction"}, {"name": [NAME]}),
        ({"name": "/production"}, {"name": [NAME]}),
        ({"name": "production/"}, {"name": [NAME]}),
        ({"name": "production"}, {"name": ["has already been taken"]}),
        ({"name": "a", "external_url": "ftp://shop.example"}, {"external_url": [BLOCKED]}),
        ({"name": "a", "external_url": "javascript:alert(1)"}, {"external_url": [BLOCKED]}),
        ({"name": "a", "external_url": "https://"}, {"external_url": [BLOCKED]}),
        ({"name": "a", "external_url": "https://[half"}, {"external_url": [BLOCKED]}),
        ({"name": "", "external_url": "x"}, {"name": ["can't be blank"], "external_url": [BLOCKED]}),
    ],
)
def test_invalid_environments_are_refused_with_reasons(fields, message, as_developer, project, production):
    response = as_developer.post(environments(project), json=fields)

    assert (response.status_code, response.json) == (400, {"message": message})
    assert db.session.query(Environment).count() == 1


def test_a_name_is_required(as_developer, project):
    response = as_developer.post(environments(project), json={})

    assert (response.status_code, response.json) == (400, {"error": "name is missing"})


@pytest.mark.both_databases
def test_names_are_unique_in_a_project_only(as_admin, project, production):
    other = sample_data.make_project()

    assert as_admin.post(environments(other), json={"name": "production"}).status_code == 201


@pytest.mark.parametrize("name", ["review/feature-1", "$ENV {1}", "a.b_c-d", "Production", "PRODUCTION", "x" * 255])
def test_valid_names_are_accepted(name, as_developer, project):
    assert as_developer.post(environments(project), json={"name": name}).json["name"] == name


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("staging", "staging"),
        ("Review/Feature 1", "review-feature-1-"),
        ("1st", "env-1st-"),
        ("...", "env-"),
        ("x" * 40, "x" * 17 + "-"),
    ],
)
def test_a_slug_is_derived_from_the_name(name, pattern, as_developer, project):
    slug = as_developer.post(environments(project), json={"name": name}).json["slug"]

    assert slug == pattern or (slug.startswith(pattern) and len(slug) == len(pattern) + 6)
    assert len(slug) <= 24


def test_an_update_changes_the_sent_fields_and_never_the_slug(as_developer, project, production):
    one = environments(project, production["id"])

    renamed = as_developer.put(one, json={"name": "live"}).json
    with_url = as_developer.put(one, json={"external_url": "https://shop.example"}).json
    without = as_developer.put(one, json={"external_url": ""}).json

    assert (renamed["name"], renamed["slug"], renamed["external_url"]) == ("live", "production", None)
    assert (with_url["name"], with_url["external_url"]) == ("live", "https://shop.example")
    assert without["external_url"] is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"name": ""}, {"name": ["can't be blank"]}), ({"name": "staging"}, {"name": ["has already been taken"]})],
)
def test_a_refused_update_changes_nothing(fields, message, as_developer, project, production):
    as_developer.post(environments(project), json={"name": "staging"})

    response = as_developer.put(environments(project, production["id"]), json=fields)

    assert (response.status_code, response.json) == (400, {"message": message})
    assert as_developer.get(environments(project, production["id"])).json["name"] == "production"


def test_an_update_may_repeat_the_name(as_developer, project, production):
    assert as_developer.put(environments(project, production["id"]), json={"name": "production"}).status_code == 200


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["production", "Staging", "review/1"]),
        ("?name=production", ["production"]),
        ("?name=prod", []),
        ("?search=STAG", ["Staging"]),
        ("?search=%25", []),
        ("?search=_", []),
        ("?search=++", ["production", "Staging", "review/1"]),
        ("?states=available", ["production", "Staging", "review/1"]),
        ("?states=stopped", []),
    ],
)
def test_the_list_is_filtered(query, names, as_developer, project, production):
    for name in ("Staging", "review/1"):
        as_developer.post(environments(project), json={"name": name})

    assert [one["name"] for one in as_developer.get(environments(project) + query).json] == names


@pytest.mark.parametrize("query", ["?name=a&search=b", "?states=sleeping"])
def test_contradictory_filters_are_refused(query, as_developer, project):
    assert as_developer.get(environments(project) + query).status_code == 400


@pytest.mark.both_databases
def test_the_list_has_pages(as_developer, project, production):
    as_developer.post(environments(project), json={"name": "staging"})

    response = as_developer.get(f"{environments(project)}?per_page=1&page=2")

    assert ([one["name"] for one in response.json], response.headers["X-Total"]) == (["staging"], "2")


@pytest.mark.both_databases
def test_deleting_an_environment_keeps_its_alerts(as_developer, project, production):
    alert = Alert(project_id=project.id, iid=1, title="A", started_at=clock.now(), environment_id=production["id"])
    db.session.add(alert)
    db.session.commit()

    response = as_developer.delete(environments(project, production["id"]))

    assert (response.status_code, response.data) == (204, b"")
    assert sample_data.reload(alert).environment_id is None


@pytest.mark.parametrize("number", ["0", "x", "99999999999999999999999"])
def test_unknown_environments_are_not_found(number, as_developer, project):
    assert as_developer.get(environments(project, number)).status_code in (400, 404)
