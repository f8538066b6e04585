"""Variables of a job: precedence, sources, expansion, endpoint (group and instance variables reference, 4 and 5)."""

from __future__ import annotations

import itertools

import pytest

from project_service.domain.access_levels import Role
from project_service.domain.audit.models import AuditEvent
from project_service.domain.projects import Project
from project_service.kit.db.session import db, unit_of_work
from tests.support.sample_data import DEV, MAX, NOBODY, SAM, make_group, make_project, share

INSTANCE = "/admin/ci/variables"
SCOPES = ("*", "prod*", "production")


@pytest.fixture
def nested(as_admin):
    """A project two groups deep, and the addresses of the variables that its jobs get, lowest precedence first."""
    outer = make_group("outer")
    inner = make_group("inner", outer)
    project = make_project("app", inner)
    return project, [INSTANCE, *(f"/groups/{one.id}/variables" for one in (outer, inner)), path_of(project)]


def path_of(project):
    return f"/projects/{project.id}/variables"


def effective(client, project, environment="production", **query):
    return client.get(f"{path_of(project)}/effective", query_string={"environment": environment} | query)


def values(response):
    return {row["key"]: row["value"] for row in response.json}


def test_variables_override_each_other_by_level_and_then_by_scope(nested, as_admin):
    project, paths = nested
    levels = [(INSTANCE, "*"), *itertools.product(paths[1:], SCOPES)]

    for number, (path, scope) in enumerate(levels):
        response = as_admin.post(path, json={"key": "A", "value": str(number), "environment_scope": scope})
        assert response.status_code == 201
        row = effective(as_admin, project).json[0]
        assert (row["value"], row["environment_scope"]) == (str(number), scope)

    assert row == {
        "key": "A",
        "value": str(len(levels) - 1),
        "variable_type": "env_var",
        "protected": False,
        "masked": False,
        "hidden": False,
        "raw": False,
        "environment_scope": "production",
        "source": "project",
        "source_path": "outer/inner/app",
    }


def test_a_project_wildcard_overrides_an_exact_group_scope(nested, as_admin):
    project, paths = nested
    as_admin.post(paths[3], json={"key": "A", "value": "project"})
    as_admin.post(paths[2], json={"key": "A", "value": "group", "environment_scope": "production"})

    assert values(effective(as_admin, project)) == {"A": "project"}


def test_longer_wildcards_override_shorter_and_later_ones_earlier(project, as_maintainer):
    for value, scope in (("1", "*duction"), ("2", "produc*"), ("3", "*oducti*"), ("4", "*r*")):
        as_maintainer.post(path_of(project), json={"key": "A", "value": value, "environment_scope": scope})

    assert values(effective(as_maintainer, project)) == {"A": "2" if len("produc") > len("duction") else "1"}


def test_without_an_environment_only_scope_star_applies(nested, as_admin):
    project, paths = nested
    for path, scope in itertools.product(paths[1:], ("pro*", "production", "**")):
        as_admin.post(path, json={"key": "A", "value": "no", "environment_scope": scope})
    as_admin.post(paths[1], json={"key": "B", "value": "yes"})

    assert values(effective(as_admin, project, "")) == {"B": "yes"}


def test_protected_variables_apply_to_protected_refs_only(nested, as_admin):
    project, paths = nested
    for key, path in zip("ABC", (paths[0], paths[1], paths[3]), strict=True):
        as_admin.post(path, json={"key": key, "value": "v", "protected": True})

    assert values(effective(as_admin, project)) == {}
    assert set(values(effective(as_admin, project, protected="true"))) == set("ABC")


def test_a_moved_project_inherits_from_its_new_groups_but_not_from_shares(nested, as_admin):
    project, paths = nested
    as_admin.post(paths[2], json={"key": "A", "value": "old"})
    new_group, invited = make_group(), make_group()
    for group in (new_group, invited):
        as_admin.post(f"/groups/{group.id}/variables", json={"key": "B", "value": group.path})
    share(project, invited, Role.MAINTAINER)
    assert values(effective(as_admin, project)) == {"A": "old"}

    with unit_of_work():
        db.session.get_one(Project, project.id).namespace_id = new_group.id

    assert values(effective(as_admin, project)) == {"B": new_group.path}


def test_hidden_values_and_values_that_contain_them_are_not_shown(project, as_maintainer):
    as_maintainer.post(path_of(project), json={"key": "A", "value": "secret-value", "masked_and_hidden": True})
    as_maintainer.post(path_of(project), json={"key": "B", "value": "x$A"})

    response = effective(as_maintainer, project, expand="1")

    assert values(response) == {"A": None, "B": None}
    assert response.json[1]["note"] == "refers to A, which is hidden"
    text = effective(as_maintainer, project, expand="1", format="dotenv").text
    assert text == "# A: hidden\n# B: refers to A, which is hidden\n"


def test_references_are_expanded_on_request(project, as_maintainer):
    fields = {"A": "1", "B": "${A}2$$A$UNKNOWN", "C": "$B|$A", "R": "$A"}
    for key, value in fields.items():
        as_maintainer.post(path_of(project), json={"key": key, "value": value, "raw": key == "R"})

    assert values(effective(as_maintainer, project)) == fields
    assert values(effective(as_maintainer, project, expand="true")) == fields | {
        "B": "12$A$UNKNOWN",
        "C": "12$A$UNKNOWN|1",
    }


def test_a_cycle_of_references_is_left_unexpanded_and_reported(project, as_maintainer):
    for key, value in {"A": "a$B", "B": "b$A", "C": "c$A", "S": "$S"}.items():
        as_maintainer.post(path_of(project), json={"key": key, "value": value})

    response = effective(as_maintainer, project, expand="true")

    assert values(response) == {"A": "a$B", "B": "b$A", "C": "ca$B", "S": "$S"}
    assert [row.get("note") for row in response.json] == [
        "refers to itself through B; left as it is",
        "refers to itself through A; left as it is",
        None,
        "refers to itself; left as it is",
    ]
    text = effective(as_maintainer, project, expand="true", format="shell", key="S").text
    assert text == "# S: refers to itself; left as it is\nexport S='$S'\n"


def test_a_variable_may_have_the_key_effective(project, as_maintainer):
    as_maintainer.post(path_of(project), json={"key": "effective", "value": "v"})
    one = f"{path_of(project)}/effective"

    assert as_maintainer.get(one).json["value"] == "v"
    assert as_maintainer.get(f"{one}?filter[environment_scope]=x").status_code == 404
    assert as_maintainer.put(one, json={"value": "w"}).json["value"] == "w"
    assert values(effective(as_maintainer, project)) == {"effective": "w"}
    assert as_maintainer.delete(one).status_code == 204


def test_the_response_is_not_cached_and_may_be_text(project, as_maintainer):
    as_maintainer.post(path_of(project), json={"key": "A", "value": "1"})
    as_maintainer.post(path_of(project), json={"key": "B", "value": "2"})

    response = as_maintainer.get(f"{path_of(project)}/effective?environment=&key=B", headers={"Accept": "text/plain"})

    assert (response.text, response.content_type) == ("B=2\n", "text/plain; charset=utf-8")
    assert response.headers["Cache-Control"] == "no-store"
    assert effective(as_maintainer, project).headers["Cache-Control"] == "no-store"
    assert effective(as_maintainer, project, key="X", format="docker").text == ""
    assert effective(as_maintainer, project, format="xml").json == {"error": "format does not have a valid value"}
    assert effective(as_maintainer, project, "x" * 256).json == {"error": "environment is invalid"}


@pytest.mark.parametrize(("person", "status"), [(MAX, 200), (DEV, 403), (SAM, 404), (NOBODY, 401)])
def test_maintainers_see_the_variables_of_a_job(person, status, project, as_):
    assert effective(as_(person), project).status_code == status


def test_reading_masked_values_is_audited_without_the_values(project, people, as_maintainer, client_of):
    as_maintainer.post(path_of(project), json={"key": "A", "value": "secret-value", "masked": True})
    as_maintainer.post(path_of(project), json={"key": "B", "value": "plain"})
    effective(as_maintainer, project, key="B")
    assert effective(client_of(people[MAX], "read_api"), project).status_code == 200

    events = db.session.query(AuditEvent).filter_by(event_name="variable_viewed_api").all()

    assert [(event.author_id, event.entity_id, event.details["variables"]) for event in events] == [
        (people[MAX].id, project.id, "A")
    ]
    assert "secret-value" not in str(events[0].details)


def test_effective_variables_take_a_constant_number_of_statements(nested, as_admin, count_queries):
    project, paths = nested
    counts = []
    for amount in (2, 20):
        for number, path in itertools.product(range(amount), paths):
            as_admin.post(path, json={"key": f"K{number}", "value": "long-enough", "masked": True})
        with count_queries() as queries:
            assert len(effective(as_admin, project).json) == amount
        counts.append(len(queries))

    assert counts[0] == counts[1]
