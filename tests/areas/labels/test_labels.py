"""Labels of projects through HTTP."""

from __future__ import annotations

import pytest

from project_service.domain.access_levels import Visibility
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.kit.db.session import db
from tests.support.sample_data import (
    ADA,
    DEV,
    GUS,
    MAX,
    NOBODY,
    OLIVE,
    RITA,
    SAM,
    make_label,
    make_merge_request,
    make_project,
)

MISSING = {"message": "404 Label Not Found"}


def labels_path(project, *more):
    return "/".join((f"/projects/{project.id}/labels", *map(str, more)))


def update_project(project, **fields):
    found = db.session.get(Project, project.id)
    for name, value in fields.items():
        setattr(found, name, value)
    db.session.commit()


def make_issue(project, iid, labels, **fields):
    db.session.add(Issue(project_id=project.id, iid=iid, title="x", labels=labels, **fields))
    db.session.commit()


def test_a_label_has_the_documented_keys(project, as_):
    label = make_label(project, "bug", color="#ff0000", description="It does **not** work", priority=3)

    expected = {
        "id": label.id,
        "name": "bug",
        "description": "It does **not** work",
        "description_html": "It does <strong>not</strong> work",
        "text_color": "#FFFFFF",
        "color": "#ff0000",
        "subscribed": False,
        "priority": 3,
        "is_project_label": True,
    }
    assert as_(GUS).get(labels_path(project)).json == [expected]
    assert [as_(GUS).get(labels_path(project, name)).json for name in (label.id, "bug")] == [expected] * 2


@pytest.mark.parametrize(
    ("color", "text_color"),
    [("#ffffff", "#333333"), ("#fff", "#333333"), ("#000", "#FFFFFF"), ("#6699cc", "#FFFFFF"), ("#FFECDB", "#333333")],
)
def test_the_text_color_contrasts_with_the_color(color, text_color, project, as_):
    make_label(project, "a", color=color)

    assert as_(GUS).get(labels_path(project, "a")).json["text_color"] == text_color


@pytest.mark.parametrize("color", ["", "red", "#ff", "#gggggg", "é"])
def test_an_invalid_stored_color_gets_a_white_text_color(color, project, as_):
    make_label(project, "a", color=color)

    assert as_(GUS).get(labels_path(project, "a")).json["text_color"] == "#FFFFFF"


@pytest.mark.both_databases
def test_labels_are_ordered_searched_and_paginated(project, as_):
    for title in ("zebra", "bug", "Bug: slow", "api"):
        make_label(project, title)
    make_label(make_project(), "elsewhere")

    def names(query):
        return [label["name"] for label in as_(GUS).get(f"{labels_path(project)}?{query}").json]

    assert sorted(names("")) == sorted(["Bug: slow", "api", "bug", "zebra"])
    assert names("") == names("per_page=3") + names("per_page=3&page=2")
    assert sorted(names("search=bug")) == ["Bug: slow", "bug"]
    assert names("search=nothing") == []
    assert as_(GUS).get(f"{labels_path(project)}?per_page=1").headers["X-Total"] == "4"


@pytest.mark.both_databases
def test_a_title_of_digits_is_found_unless_it_is_an_id(project, as_):
    first = make_label(project, "first")
    by_title = make_label(project, "98765")
    shadowed = make_label(project, str(first.id))

    found = [as_(GUS).get(labels_path(project, name)).json["id"] for name in ("98765", first.id, shadowed.id)]

    assert found == [by_title.id, first.id, shadowed.id]


def test_a_missing_label_is_not_found(project, as_):
    other_label = make_label(make_project(), "elsewhere")

    responses = [as_(GUS).get(labels_path(project, name)) for name in (other_label.id, "elsewhere", "9" * 30, "a%2Fb")]

    assert [(response.status_code, response.json) for response in responses] == [(404, MISSING)] * 4


@pytest.mark.parametrize(
    ("fields", "statuses"),
    [
        ({}, [200, 200, 200, 200, 200, 200, 404, 401]),
        ({"visibility": Visibility.PUBLIC}, [200, 200, 200, 200, 200, 200, 200, 401]),
        ({"visibility": Visibility.PUBLIC, "issues_access_level": "disabled"}, [200] * 7 + [401]),
        (
            {
                "visibility": Visibility.PUBLIC,
                "issues_access_level": "disabled",
                "merge_requests_access_level": "private",
            },
            [200, 200, 200, 200, 200, 200, 403, 401],
        ),
        ({"issues_access_level": "disabled", "merge_requests_access_level": "disabled"}, [403] * 6 + [404, 401]),
    ],
)
@pytest.mark.parametrize("more", [(), ("a",)])
def test_visibility_and_access_levels_decide_who_reads_labels(more, fields, statuses, project, as_):
    make_label(project, "a")
    update_project(project, **fields)

    callers = (ADA, OLIVE, MAX, DEV, RITA, GUS, SAM, NOBODY)
    assert [as_(person).get(labels_path(project, *more)).status_code for person in callers] == statuses


def test_rows_of_an_unfinished_import_are_hidden(project, as_):
    make_label(project, "a")
    update_project(project, loading=True)

    assert as_(OLIVE).get(labels_path(project)).json == []
    assert as_(OLIVE).get(labels_path(project, "a")).status_code == 404


def test_labels_count_visible_uses_only(project, as_):
    update_project(project, visibility=Visibility.PUBLIC)
    for title in ("bug", "api"):
        make_label(project, title)
    make_issue(project, 1, ["bug", "api"])
    make_issue(project, 2, ["bug"], confidential=True)
    make_issue(project, 3, ["bug"], state="closed")
    make_issue(make_project(), 1, ["bug"])
    make_merge_request(project, labels=["bug"])
    make_merge_request(project, labels=["bug"], state="merged")

    def counts(person):
        keys = ("name", "open_issues_count", "closed_issues_count", "open_merge_requests_count")
        return [
            tuple(row[key] for key in keys) for row in as_(person).get(f"{labels_path(project)}?with_counts=true").json
        ]

    counts_in_public_project = [counts(person) for person in (RITA, GUS)]
    update_project(project, issues_access_level="private", merge_requests_access_level="private")

    assert counts_in_public_project == [[("api", 1, 0, 0), ("bug", 2, 1, 1)], [("api", 1, 0, 0), ("bug", 1, 1, 1)]]
    assert [counts(GUS), as_(SAM).get(labels_path(project)).status_code] == [[("api", 1, 0, 0), ("bug", 1, 1, 0)], 403]
    assert "open_issues_count" not in as_(GUS).get(labels_path(project)).json[0]


@pytest.mark.both_databases
def test_counts_take_a_constant_number_of_statements(project, as_, count_queries):
    client, sizes = as_(RITA), []
    for titles in ("a", "bcdef"):
        for title in titles:
            make_label(project, title)
        with count_queries() as queries:
            client.get(f"{labels_path(project)}?with_counts=true")
        sizes.append(len(queries))

    assert sizes[0] == sizes[1]
