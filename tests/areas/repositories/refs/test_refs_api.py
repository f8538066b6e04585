"""Branches and tags, read through the API."""

from __future__ import annotations

import pytest

from tests.support.sample_data import DEV, MAX, RITA


def names(response):
    return [row["name"] for row in response.json]


def test_branches_are_listed_and_shown(as_maintainer, code, project):
    response = as_maintainer.get(f"{code}/branches")
    feature, main, other = response.json

    assert (names(response), response.headers["X-Total"]) == (["feature/x", "main", "other"], "3")
    assert [(row["merged"], row["default"], row["protected"]) for row in (feature, main, other)] == [
        (True, False, False),
        (False, True, False),
        (False, False, False),
    ]
    assert feature["web_url"] == f"http://localhost/{project.full_path}/-/tree/feature/x"
    assert as_maintainer.get(f"{code}/branches/feature%2Fx").json == feature
    assert as_maintainer.head(f"{code}/branches/nothing").status_code == 404
    assert names(as_maintainer.get(f"{code}/branches?sort=updated_desc")) == ["other", "main", "feature/x"]


def test_a_branch_is_protected_by_all_matching_rules(as_, as_maintainer, code, project):
    for name, push, merge in (("feature/*", 0, 40), ("*/x", 30, 30), ("ma*", 40, 40), ("other", 0, 0)):
        fields = {"name": name, "push_access_level": push, "merge_access_level": merge}
        as_maintainer.post(f"/projects/{project.id}/protected_branches", json=fields)

    shown = {person: as_(person).get(f"{code}/branches").json for person in (MAX, DEV, RITA)}

    keys = ("protected", "developers_can_push", "developers_can_merge")
    assert [tuple(row[key] for key in keys) for row in shown[DEV]] == [
        (True, True, True),
        (True, False, False),
        (True, False, False),
    ]
    assert {person: [row["can_push"] for row in rows] for person, rows in shown.items()} == {
        MAX: [True, True, False],
        DEV: [True, False, False],
        RITA: [False, False, False],
    }
    assert as_(DEV).get(f"{code}/branches/main").json == shown[DEV][1]


def test_the_old_routes_protect_and_unprotect_one_branch(as_maintainer, code, project):
    rules = f"/projects/{project.id}/protected_branches"
    as_maintainer.post(rules, json={"name": "other", "allow_force_push": True})
    asked = [
        ("main/protect", {"developers_can_push": True}),
        ("other/protect", {"developers_can_merge": True}),
        ("feature%2Fx/protect", None),
        ("main/unprotect", None),
        ("main/unprotect", None),
    ]

    answers = [as_maintainer.put(f"{code}/branches/{path}", json=fields) for path, fields in asked]

    keys = ("name", "protected", "developers_can_push", "developers_can_merge")
    assert [tuple(answer.json[key] for key in keys) for answer in answers] == [
        ("main", True, True, False),
        ("other", True, False, True),
        ("feature/x", True, False, False),
        ("main", False, False, False),
        ("main", False, False, False),
    ]
    assert [(rule["name"], rule["allow_force_push"]) for rule in as_maintainer.get(rules).json] == [
        ("feature/x", False),
        ("other", True),
    ]


def test_the_old_routes_need_a_maintainer_and_an_existing_branch(as_, as_maintainer, code):
    paths = [f"{code}/branches/{path}" for path in ("main/protect", "main/unprotect")]

    assert [as_(DEV).put(path).status_code for path in paths] == [403, 403]
    assert as_maintainer.put(f"{code}/branches/nothing/protect").json == {"message": "404 Branch Not Found"}


@pytest.mark.parametrize(
    ("search", "expected"),
    [("a", ["feature/x", "main"]), ("^F", ["feature/x"]), ("R$", ["other"]), ("^main$", ["main"])],
)
def test_branches_are_searched(search, expected, as_maintainer, code):
    assert names(as_maintainer.get(f"{code}/branches", query_string={"search": search})) == expected


def test_the_regex_filter_is_refused(as_maintainer, code):
    response = as_maintainer.get(f"{code}/branches?regex=^main")

    assert (response.status_code, response.json) == (400, {"error": "regex is not supported"})


def test_tags_are_listed_and_shown(as_maintainer, code, project):
    as_maintainer.post(f"/projects/{project.id}/protected_tags", json={"name": "v1.1*"})
    annotated, light = as_maintainer.get(f"{code}/tags").json

    assert (annotated["name"], annotated["message"], annotated["protected"]) == ("v1.1", "Release 1.1", True)
    assert annotated["created_at"] == "2021-02-04T04:05:06.000+01:00"
    assert annotated["target"] != annotated["commit"]["id"]
    assert (light["name"], light["message"], light["created_at"], light["protected"]) == ("v1.0", None, None, False)
    assert light["target"] == light["commit"]["id"]
    assert as_maintainer.get(f"{code}/tags/v1.1").json == annotated
    assert names(as_maintainer.get(f"{code}/tags?order_by=version&sort=asc")) == ["v1.0", "v1.1"]


def test_unknown_branches_and_tags_are_not_found(as_maintainer, code):
    assert as_maintainer.get(f"{code}/branches/nothing").json == {"message": "404 Branch Not Found"}
    assert as_maintainer.get(f"{code}/branches/a..b").json == {"message": "The branch refname is invalid"}
    assert as_maintainer.get(f"{code}/tags/nothing").json == {"message": "404 Tag Not Found"}
    assert as_maintainer.get(f"{code}/tags/v1.1/signature").json == {"message": "404 Signature Not Found"}


def test_an_empty_project_has_no_refs(as_maintainer, project):
    for kind in ("branches", "tags"):
        assert as_maintainer.get(f"/projects/{project.id}/repository/{kind}").json == []
