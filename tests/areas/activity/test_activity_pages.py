"""Activity feeds on pages."""

from __future__ import annotations

import re

from tests.support.sample_data import DEV, make_merge_request


def filters_of(page):
    return re.findall(r"activity=(\w+)#activity", page)


def test_a_project_offers_filters_for_its_kinds_of_events(visit, as_, project):
    visitor = visit(DEV)

    assert filters_of(visitor.get("/acme/shop").text) == ["team"]
    as_(DEV).post(f"/projects/{project.id}/issues", json={"title": "Till"})
    make_merge_request(project)
    assert filters_of(visitor.get("/acme/shop").text) == ["issue", "merged", "team"]
    assert filters_of(visitor.get("/acme/shop?activity=wiki").text) == ["issue", "merged", "wiki", "team"]
    assert "push" in filters_of(visitor.get("/dashboard/projects").text)
