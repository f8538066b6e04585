"""Pages of a new instance: first steps, and where the first password is."""

from __future__ import annotations

from tests.areas.accounts.sign_in.test_sessions import sign_in
from tests.support.sample_data import ADA


def test_an_empty_instance_shows_first_steps(visit):
    text = visit(ADA).get("/").text

    for address in ("/projects/new", "/projects/new/import", "/api/docs", "/admin/users/new"):
        assert f'<li><a href="{address}"' in text or f'<a href="{address}"' in text
    assert "no projects yet" in text


def test_an_instance_with_projects_shows_no_first_steps(visit, project):
    assert "no projects yet" not in visit(ADA).get("/").text


def test_the_sign_in_page_explains_where_the_first_password_is(app, visitor, paula):
    before = visitor.get("/users/sign_in").text
    sign_in(visitor)
    visitor.send("/users/sign_out")

    assert "initial_credentials" in before
    assert "initial_credentials" not in visitor.get("/users/sign_in").text
