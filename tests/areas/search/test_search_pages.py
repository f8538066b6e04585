"""The page of the search."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from project_service.access.references.search_scopes import EVERYWHERE, REPOSITORY_SCOPES, SCOPES
from project_service.areas.alerts.models import Alert
from project_service.areas.vulnerabilities.models import TrackedFinding
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support import sample_data
from tests.support.git_repositories import keep_bundle, make_history
from tests.support.sample_data import ADA, DEV, GUS, OLIVE, RITA, make_error
from tests.support.visitors import store


@pytest.fixture
def filled(project, group, people, as_admin):
    sample_data.fill_lists(project, group, people, as_admin, "zebra")
    store(Alert(project_id=project.id, iid=90, title="Zebra slow", hosts=["web-07"], started_at=clock.now()))


def test_the_overview_shows_matches_of_every_scope_that_the_reader_may_see(filled, visit):
    pages = {name: visit(name).get("/search?search=zebra").text for name in (OLIVE, RITA, GUS)}

    shown = {
        name: [scope.name for scope in SCOPES if f'id="found-{scope.name}"' in page] for name, page in pages.items()
    }
    tracked = ["issues", "alerts", "errors", "findings", "merge_requests", "milestones"]
    assert shown[OLIVE] == ["projects", "groups", "users", *tracked]
    assert shown[RITA] == ["users", *(name for name in tracked if name not in ("alerts", "findings"))]
    assert shown[GUS] == [name for name in shown[RITA] if name not in ("errors", "merge_requests")]


def test_an_alert_is_found_by_its_host(filled, visit):
    page = visit(DEV).get("/search?search=web-07").text

    assert 'href="/acme/shop/-/alert_management/90/details"' in page


def test_a_finding_is_found_by_its_name(filled, visit, project):
    name = db.session.scalars(select(TrackedFinding.name).where(TrackedFinding.project_id == project.id)).first()
    page = visit(DEV).get("/search", query_string={"search": name, "scope": "findings"}).text

    assert "/-/security/findings/" in page


@pytest.mark.parametrize("scope", ["blobs", "commits"])
def test_code_and_commits_are_searched_in_a_project(scope, visit, project, tmp_path):
    keep_bundle(project, make_history(tmp_path))
    word = {"blobs": "return", "commits": "feature"}[scope]
    page = visit(RITA).get(f"/search?search={word}&scope={scope}&project_id={project.id}").text

    assert {"blobs": 'href="/acme/shop/-/blob/main/app.py#L1-3"', "commits": "/acme/shop/-/commit/"}[scope] in page


def test_every_scope_has_a_tab_and_answers(filled, visit, project):
    visitor = visit(ADA)
    for scope in [*SCOPES, *REPOSITORY_SCOPES]:
        place = "" if scope.levels == EVERYWHERE or "instance" in scope.levels else f"&project_id={project.id}"
        response = visitor.get(f"/search?search=zebra&scope={scope.name}{place}")
        assert (scope.name, response.status_code, f">{scope.title}</a>" in response.text) == (scope.name, 200, True)


def test_texts_are_escaped(project, visit):
    make_error(project, "<b>zebra</b>")

    assert "&lt;b&gt;zebra" in visit(DEV).get("/search?search=zebra").text


def test_an_empty_search_says_how(visit, people):
    assert "Type what you look for" in visit(DEV).get("/search").text


def test_a_hidden_project_cannot_be_named(visit, project):
    assert visit(sample_data.SAM).get(f"/search?search=x&project_id={project.id}").status_code == 404


def test_too_many_searches_are_refused_with_advice(visit, as_admin, people):
    as_admin.put("/application/settings", json={"search_rate_limit": 1})
    visitor = visit(DEV)
    visitor.get("/search?search=x")
    refused = visitor.get("/search?search=x")

    assert (refused.status_code, "You have searched very often" in refused.text) == (429, True)
