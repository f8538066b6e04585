"""The API's own document is complete, well-formed and true."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from project_service.domain.access_levels import Role
from project_service.kit.http.urls import API_PREFIX
from tests.guards.test_routes import views
from tests.support.sample_data import ADA, MAX, NOBODY, add_member, make_group, make_project, share

METHODS = {"get", "put", "post", "delete", "patch"}
BODIES = {"application/json", "application/x-www-form-urlencoded", "multipart/form-data"}
KINDS = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


@pytest.fixture
def document(app):
    """The document as clients get it."""
    return app.test_client().get(f"{API_PREFIX}/openapi.json").json


@pytest.fixture
def operations(document):
    """All operations by method and path."""
    return {
        (method, path): operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in METHODS
    }


def parts(value):
    """Every object inside nested data."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(inner)


def resolve(document, value):
    while "$ref" in value:
        found = document
        for name in value["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        value = found
    return value


def test_every_operation_is_in_the_document(app, operations):
    routes = {
        (method.lower(), re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule))
        for rule, _ in views(app)
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }

    assert operations.keys() == routes


def test_the_document_has_version_and_title(document):
    assert document["openapi"] == "3.0.3"
    assert document["info"].keys() >= {"title", "version", "description"}


def test_every_reference_has_a_target(document):
    for part in parts(document):
        if "$ref" in part:
            assert isinstance(resolve(document, part), dict)


def test_every_operation_has_a_unique_name_and_a_summary(operations):
    names = Counter(operation["operationId"] for operation in operations.values())

    assert [name for name, count in names.items() if count > 1] == []
    assert [name for name, operation in operations.items() if not operation.get("summary")] == []


def test_every_operation_documents_its_response_and_errors(document, operations):
    for name, operation in operations.items():
        responses = operation["responses"]
        good = [status for status in responses if status.startswith("2")]
        assert (len(good), responses.keys() >= {"401", "403", "404", "default"}) == (1, True), name
        assert ("content" in responses[good[0]]) is (good != ["204"]), name
        assert "content" not in responses.get("304", {}), name
        for status in responses.keys() - {*good, "304"}:
            content = resolve(document, responses[status])["content"]["application/json"]
            assert resolve(document, content["schema"])["properties"].keys() == {
                *("message", "error", "error_description", "scope")
            }


def test_every_part_of_a_path_is_described(document):
    for path, item in document["paths"].items():
        said = {parameter["name"]: parameter for parameter in item.get("parameters", [])}
        assert said.keys() == set(re.findall(r"{(\w+)}", path))
        assert all(each["in"] == "path" and each["required"] and each["description"] for each in said.values())


def test_get_and_delete_take_a_query_and_other_methods_a_body(operations):
    for (method, path), operation in operations.items():
        if method in ("get", "delete"):
            assert "requestBody" not in operation, path
        else:
            assert "parameters" not in operation, path
            assert set(operation.get("requestBody", {"content": BODIES})["content"]) in (
                BODIES,
                {"multipart/form-data"},
            )


def test_documented_queries_are_parsed(document, operations):
    for operation in operations.values():
        names = [parameter["name"] for parameter in operation.get("parameters", [])]
        assert len(names) == len(set(names))
        for parameter in operation.get("parameters", []):
            schema = resolve(document, parameter["schema"])
            expected = {"object": ("deepObject", True), "array": ("form", False)}.get(schema["type"], (None, None))
            assert (parameter.get("style"), parameter.get("explode")) == expected
            assert not parameter["schema"].get("nullable")


def test_documented_forms_are_parsed(document, operations):
    form = operations["put", f"{API_PREFIX}/projects/{{project}}/variables/{{key}}"]["requestBody"]["content"]

    assert form["application/x-www-form-urlencoded"]["encoding"] == {"filter": {"style": "deepObject", "explode": True}}


def test_lists_document_pagination(app, operations):
    paged = {rule.endpoint.partition(".")[2] for rule, view in views(app) if getattr(view, "paged", False)}

    for operation in operations.values():
        names = {parameter["name"] for parameter in operation.get("parameters", [])}
        headers = operation["responses"].get("200", {}).get("headers", {})
        if operation["operationId"] in paged:
            assert (names >= {"page", "per_page"}, headers.keys() >= {"Link", "X-Total"}) == (True, True)
        else:
            assert (names & {"page", "per_page"}, headers) == (set(), {})


def test_operations_without_authentication_are_marked(app, operations):
    needed = {rule.endpoint.partition(".")[2]: getattr(view, "needs_user", False) for rule, view in views(app)}

    told = {operation["operationId"]: {} not in operation.get("security", []) for operation in operations.values()}

    assert told == needed


@pytest.mark.parametrize(
    ("schema", "rules"),
    [
        ("VariableCreate", {"required": ["key", "value"]}),
        (
            "MemberCreate",
            {
                "required": ["access_level"],
                "allOf": [
                    {"anyOf": [{"required": ["user_id"]}, {"required": ["username"]}]},
                    {"not": {"required": ["user_id", "username"]}},
                ],
            },
        ),
        ("ProjectCreate", {"allOf": [{"anyOf": [{"required": ["name"]}, {"required": ["path"]}]}]}),
        ("Variable", {}),
    ],
)
def test_schemas_document_required_parameters(schema, rules, document):
    said = document["components"]["schemas"][schema]

    assert {name: said[name] for name in ("required", "allOf") if name in said} == rules


def test_enumerations_and_defaults_are_documented(document):
    said = document["components"]["schemas"]["VariableCreate"]["properties"]

    assert said["variable_type"] == {
        "type": "string",
        "default": "env_var",
        "enum": ["env_var", "file", None],
        "nullable": True,
    }


def test_every_schema_has_one_name_and_a_description(document):
    schemas = document["components"]["schemas"]

    assert [name for name in schemas if re.search(r"\d$|Schema$", name)] == []
    assert [name for name, schema in schemas.items() if not schema["description"]] == []


def problems(document, schema, value, where=""):
    """Where an answer is not what the document says."""
    schema = resolve(document, schema)
    if "anyOf" in schema:
        found = [list(problems(document, each, value, where)) for each in schema["anyOf"]]
        yield from min(found, key=len)
    elif value is None:
        if "type" in schema and not schema.get("nullable"):
            yield f"{where} is null"
    elif "type" in schema:
        right = isinstance(value, KINDS[schema["type"]]) and not (
            isinstance(value, bool) and schema["type"] == "integer"
        )
        if not right:
            yield f"{where} is no {schema['type']}: {value!r}"
        elif "properties" in schema:
            for name, inner in value.items():
                if name not in schema["properties"]:
                    yield f"{where}.{name} is not in the document"
                else:
                    yield from problems(document, schema["properties"][name], inner, f"{where}.{name}")
        elif schema["type"] == "array":
            for inner in value:
                yield from problems(document, schema.get("items", {}), inner, f"{where}[]")


@pytest.fixture
def filled(project, group, people, as_admin):
    """What the known parts of paths stand for, with something in every list."""
    add_member(group, people["dev"], Role.DEVELOPER)
    for place in (project, group):
        share(place, make_group(), Role.GUEST)
    make_project(namespace=make_group(parent=group))
    make_project(namespace=people["olive"])
    as_admin.post(f"/projects/{project.id}/variables", json={"key": "A", "value": "1"})
    as_admin.post("/features/A", json={"value": "50"})
    return {"project": project.id, "group": group.id, "user": people["dev"].id, "key": "A", "namespace": group.id}


@pytest.mark.parametrize("person", [ADA, MAX, NOBODY])
def test_responses_match_the_document(person, filled, document, operations, as_):
    read, found = 0, set()
    for (method, path), operation in operations.items():
        names = re.findall(r"{(\w+)}", path)
        if method != "get" or not filled.keys() >= set(names):
            continue
        response = as_(person).get(path.format(**filled).removeprefix(API_PREFIX))
        if response.status_code >= 500:
            found.add(f"{path} fails")
        if response.status_code == 200 and response.content_type == "application/json":
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            found |= set(problems(document, schema, response.json, path))
            read += 1

    assert (found, read >= (4 if person is NOBODY else 12)) == (set(), True)
