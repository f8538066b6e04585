"""Rules for every view of the API."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from project_service.access.abilities import RULES
from project_service.domain.access_levels import Role
from project_service.kit.http.urls import API_PREFIX
from tests.support.git_repositories import keep_repository
from tests.support.route_survey import NEEDED_QUERIES
from tests.support.sample_data import (
    add_member,
    make_error,
    make_group,
    make_label,
    make_merge_request,
    make_note,
    make_project,
    make_token,
    make_user,
    share,
)
from tests.support.sentry_requests import track_errors

# answered by hand or by a library, before or beside the views of areas; the collector knows keys of its own
BESIDE = {"document", "api-docs", "static", "error_collector"}


def views(app):
    """Every rule of the API with its view."""
    return [
        (rule, app.view_functions[rule.endpoint])
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith(API_PREFIX) and rule.endpoint.partition(".")[0] not in BESIDE
    ]


def test_every_view_names_an_ability_that_has_rules(app):
    unknown = [rule.endpoint for rule, view in views(app) if getattr(view, "ability", None) not in RULES]

    assert (unknown, len(views(app)) > 40) == ([], True)


def test_every_view_has_a_summary(app):
    silent = [rule.endpoint for rule, view in views(app) if not re.match(r"[A-Z].*\.", view.__doc__ or "")]

    assert silent == []


def test_every_writing_view_needs_authentication(app):
    writing = [(rule, view) for rule, view in views(app) if rule.methods & {"POST", "PUT", "PATCH", "DELETE"}]

    assert [rule.endpoint for rule, view in writing if not getattr(view, "needs_user", False)] == []


def test_no_page_has_an_api_path(app):
    adapter = app.url_map.bind("localhost")

    for path in ("/api/v4/a", "/api/v4/a/b/-/settings/ci_cd/variables", "/api/v5/user", "/api/"):
        assert not [method for method in ("GET", "POST", "DELETE") if adapter.test(path, method)]


@pytest.fixture
def world(people, tmp_path):
    """Grows all that lists show: each call adds one of everything below one project, one group and one user."""
    owner, group = people["olive"], make_group("world")
    project = make_project("world", group)
    add_member(group, owner, Role.OWNER)
    keep_repository(project, tmp_path / "repository", "v1.0", files={"README.md": b"# World"})
    track_errors(project)

    def grow():
        newcomer = make_user()
        make_token(owner)
        for place in (project, group):
            add_member(place, newcomer, Role.DEVELOPER)
            share(place, make_group(), Role.GUEST)
        add_member(make_group(parent=group), newcomer, Role.GUEST)
        make_project(namespace=group)
        make_project(namespace=owner)
        change = make_merge_request(project, author_id=newcomer.id, labels=[newcomer.username])
        make_note(change, author_id=newcomer.id)
        make_label(project, newcomer.username)
        make_error(project, newcomer.username)
        return project, group, owner

    return grow


def paths(app, project, group, user):
    """The addresses of all lists whose places are known here."""
    known = {"project": project.id, "group": group.id, "user": user.id}
    for rule, view in views(app):
        if getattr(view, "paged", False) and rule.arguments <= known.keys():
            yield re.sub(r"<(\w+)>", lambda found: quote(str(known[found[1]])), rule.rule).removeprefix(API_PREFIX)


def test_every_list_is_paginated(app, world, as_admin):
    places = world()
    for _ in range(2):
        world()

    for path in paths(app, *places):
        needed = next((query for end, query in NEEDED_QUERIES.items() if path.endswith(end)), "?")
        response = as_admin.get(f"{path}{needed}&per_page=1")
        assert len(response.json) <= 1, path
        assert response.headers["X-Per-Page"] == "1", path
