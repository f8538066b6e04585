"""The go command asks pages for the repository of an import path."""

from __future__ import annotations

import base64
import re

import pytest

from project_service.domain.access_levels import Visibility
from project_service.domain.projects import Project, RedirectRoute
from project_service.kit.db.session import db
from tests.support.sample_data import GUS, MAX, make_token
from tests.support.visitors import store


@pytest.fixture
def ask(app):
    """Asks for a path as the go command does, with a token as password or without."""

    def asked(path, token=None):
        headers = {}
        if token is not None:
            headers["Authorization"] = f"Basic {base64.b64encode(f'me:{token}'.encode()).decode()}"
        return app.test_client(use_cookies=False).get(f"{path}?go-get=1", headers=headers)

    return asked


def imported(response):
    assert response.status_code == 200, response.text
    return re.findall(r'content="(.+?) git (.+?)"', response.text)


SHOP = [("localhost/acme/shop", "http://localhost/acme/shop.git")]


def test_a_package_below_a_public_project_is_in_its_repository(ask, project):
    db.session.get(Project, project.id).visibility = Visibility.PUBLIC
    db.session.commit()
    store(RedirectRoute(path="old/shop", project_id=project.id))

    answers = [ask(path) for path in ("/acme/shop/pkg/v2", "/ACME/shop", "/old/shop/pkg")]

    assert [imported(answer) for answer in answers] == [SHOP] * 3


def test_private_and_missing_projects_look_alike_without_credentials(ask, project):
    answers = [ask("/acme/shop/pkg"), ask("/acme/none/pkg")]

    assert [imported(answer) for answer in answers] == [
        SHOP,
        [("localhost/acme/none", "http://localhost/acme/none.git")],
    ]
    assert ask("/acme").status_code == 404


def test_a_private_project_takes_credentials_that_may_read_it(ask, project, people):
    tokens = {name: make_token(people[name], "read_repository") for name in (MAX, GUS)}

    member, guest, wrong = (ask("/acme/shop/pkg", token) for token in (tokens[MAX], tokens[GUS], "wrong"))

    assert imported(member) == SHOP
    assert [(one.status_code, one.mimetype, "~/.netrc" in one.text) for one in (guest, wrong)] == [
        (404, "text/plain", True)
    ] * 2
