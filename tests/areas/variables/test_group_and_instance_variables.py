"""CI/CD variables of groups and of the instance through HTTP (group and instance variables reference, 1 to 3 and 8)."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor, wait
from email.utils import format_datetime

import pytest

from project_service.areas.variables import service
from project_service.areas.variables.models import GroupVariable, InstanceVariable, Variable
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.http.errors import Invalid
from tests.support.sample_data import ADA, DEV, NOBODY, OLIVE, SAM, add_member, make_user

INSTANCE = "/admin/ci/variables"
OPERATIONS = [("GET", ""), ("POST", ""), ("GET", "/FOO"), ("PUT", "/FOO"), ("DELETE", "/FOO")]
GROUP_KEYS = [
    "variable_type",
    "key",
    "value",
    "hidden",
    "protected",
    "masked",
    "raw",
    "environment_scope",
    "description",
]
INSTANCE_KEYS = ["variable_type", "key", "value", "protected", "masked", "raw", "description"]


@pytest.fixture
def group_path(group):
    return f"/groups/{group.id}/variables"


def all_operations(client, path):
    return [client.open(method, f"{path}{key}", json={"key": "BAR", "value": "v"}) for method, key in OPERATIONS]


@pytest.mark.parametrize(
    ("person", "group_refusal", "instance_refusal"),
    [(ADA, 0, 0), (OLIVE, 0, 403), (DEV, 403, 403), (SAM, 404, 403), (NOBODY, 401, 401)],
)
def test_owners_manage_variables_of_a_group_and_administrators_those_of_the_instance(
    person, group_refusal, instance_refusal, as_, as_admin, project, group_path
):
    for path, refusal in ((group_path, group_refusal), (INSTANCE, instance_refusal)):
        as_admin.post(path, json={"key": "FOO", "value": "a"})

        statuses = [response.status_code for response in all_operations(as_(person), path)]

        assert statuses == ([refusal] * 5 if refusal else [200, 201, 200, 200, 204])


def test_group_maintainers_are_refused_and_read_only_tokens_read(group, group_path, people, client_of):
    maintainer = make_user()
    add_member(group, maintainer, 40)

    assert {response.status_code for response in all_operations(client_of(maintainer, "api"), group_path)} == {403}
    assert [response.status_code for response in all_operations(client_of(people[OLIVE], "read_api"), group_path)] == [
        200,
        403,
        404,
        403,
        403,
    ]


def test_responses_have_the_keys_of_their_level(as_admin, group_path):
    fields = {"key": "A", "value": "hidden-value", "masked_and_hidden": True, "environment_scope": "prod/*"}

    group_variable, instance_variable = (as_admin.post(path, json=fields).json for path in (group_path, INSTANCE))

    assert (list(group_variable), group_variable["value"], group_variable["hidden"]) == (GROUP_KEYS, None, True)
    assert (list(instance_variable), instance_variable["value"]) == (INSTANCE_KEYS, "hidden-value")
    assert (as_admin.get(group_path).json, as_admin.get(INSTANCE).json) == ([group_variable], [instance_variable])


@pytest.mark.parametrize(
    ("path", "name"), [("/groups/acme/variables", "GroupVariable"), (INSTANCE, "InstanceVariable")]
)
def test_missing_and_duplicate_keys_are_reported(path, name, as_admin, group):
    as_admin.post(path, json={"key": "A", "value": "1"})

    assert as_admin.get(f"{path}/B").json == {"message": f"404 {name} Not Found"}
    assert as_admin.post(path, json={"key": "A", "value": "2"}).json == {
        "message": {"key": ["(A) has already been taken"]}
    }


def test_a_filter_selects_a_group_variable_for_every_operation(as_admin, group_path):
    for scope in ("*", "production"):
        as_admin.post(group_path, json={"key": "A", "value": scope, "environment_scope": scope})
    only = {"filter": {"environment_scope": "production"}}

    assert as_admin.put(f"{group_path}/A", json={"value": "new"}).status_code == 409
    assert as_admin.put(f"{group_path}/A", json={"filter": {"environment_scope": "x"}}).status_code == 404
    assert as_admin.put(f"{group_path}/A", json={"value": "new"} | only).json["value"] == "new"
    assert as_admin.delete(f"{group_path}/A?filter[environment_scope]=production").status_code == 204
    assert [row["value"] for row in as_admin.get(group_path).json] == ["*"]


def test_an_update_changes_only_what_is_sent(as_admin, group_path):
    for path in (group_path, INSTANCE):
        before = as_admin.post(path, json={"key": "A", "value": "long-enough", "description": "what for"}).json

        assert as_admin.put(f"{path}/A", json={}).json == before
        assert as_admin.put(f"{path}/A", json={"masked": True}).json == before | {"masked": True}


def test_hidden_group_variables_stay_hidden(as_admin, group_path):
    as_admin.post(group_path, json={"key": "A", "value": "long-enough", "masked_and_hidden": True})

    response = as_admin.put(f"{group_path}/A", json={"masked": False})

    assert (response.status_code, list(response.json["message"])) == (400, ["base"])


def test_deleting_a_group_variable_honours_if_unmodified_since(as_admin, group_path):
    as_admin.post(group_path, json={"key": "A", "value": "1"})
    old = {"If-Unmodified-Since": format_datetime(clock.now() - dt.timedelta(days=1))}

    assert as_admin.delete(f"{group_path}/A", headers=old).status_code == 412
    assert as_admin.get(f"{group_path}/A").status_code == 200


def test_instance_values_have_a_length_limit(as_admin):
    def create(length, **fields):
        return as_admin.post(INSTANCE, json={"key": f"A{length}", "value": "x" * length} | fields)

    assert create(10_000).status_code == create(50_000, variable_type="file").status_code == 201
    assert create(10_001).json == {
        "message": {"value": ["The value of the provided variable exceeds the 10000 character limit"]}
    }
    assert "50000" in create(50_001, variable_type="file").json["message"]["value"][0]


@pytest.mark.parametrize(
    ("model", "path", "text"),
    [
        (Variable, "/projects/acme%2Fshop/variables", "project ci variables"),
        (GroupVariable, "/groups/acme/variables", "group ci variables"),
        (InstanceVariable, INSTANCE, "ci instance level variables"),
    ],
)
def test_the_number_of_variables_is_limited(model, path, text, as_admin, project, monkeypatch):
    monkeypatch.setitem(service.LIMITS, model, (1, text))
    as_admin.post(path, json={"key": "A", "value": "1"})

    response = as_admin.post(path, json={"key": "B", "value": "1"})

    assert (response.status_code, response.json) == (
        400,
        {"message": {"base": [f"Maximum number of {text} (1) exceeded"]}},
    )


@pytest.mark.both_databases
@pytest.mark.parametrize("model", [Variable, GroupVariable, InstanceVariable])
def test_concurrent_creations_do_not_exceed_the_limit(model, app, project, group, monkeypatch):
    monkeypatch.setitem(service.LIMITS, model, (1, "ci variables"))
    kind, number = {Variable: (type(project), project.id), GroupVariable: (type(group), group.id)}.get(model, (None, 0))

    def create(key):
        owner = None if kind is None else db.session.get_one(kind, number)
        service.create_variable(owner, key=key, value="1")

    def create_later():
        with app.app_context(), unit_of_work():
            create("B")

    with ThreadPoolExecutor(1) as thread:
        with unit_of_work():
            create("A")
            second = thread.submit(create_later)
            assert not wait([second], timeout=0.3).done  # until the first transaction ends
        with pytest.raises(Invalid, match="exceeded"):
            second.result(timeout=20)

    assert db.session.query(model).count() == 1
