"""People who look at pages: a browser without scripts, reduced to what a form needs."""

from __future__ import annotations

import contextvars
import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from project_service.access.identity import SESSION_SECRET
from project_service.core.projects import Project
from project_service.core.tokens import SESSION_LENGTH, BrowserSession, digest_of
from project_service.core.users import User
from project_service.kit import clock, secrets
from project_service.kit.database import db
from project_service.protected_tags.models import ProtectedTag
from project_service.variables.models import Variable
from tests import worlds
from tests.worlds import MAX, PASSWORD

CSRF = re.compile(r'name="csrf_token"[^>]* value="([^"]+)"')


class Visitor:
    """Somebody with a browser."""

    def __init__(self, app: Flask) -> None:
        self.cookies: FlaskClient = app.test_client()

    def open(self, method: str, address: str, **options: Any) -> TestResponse:
        """Send one request, in a context of its own as the server would."""
        db.session.remove()
        try:
            return contextvars.Context().run(self.cookies.open, address, method=method, buffered=True, **options)
        finally:
            db.session.remove()

    def get(self, address: str, **options: Any) -> TestResponse:
        return self.open("GET", address, **options)

    def send(self, address: str, **fields: Any) -> TestResponse:
        """Send a form with its token."""
        return self.open("POST", address, data={"csrf_token": self.csrf_token(), **fields})

    def csrf_token(self) -> str:
        """The token of this browser's session, from a page that everybody has."""
        text = self.get("/users/sign_in", follow_redirects=True).text
        return html.unescape(CSRF.search(text).group(1))  # type: ignore[union-attr]  # every page has a form


@pytest.fixture
def visitor(app: Flask) -> Visitor:
    """Somebody who is not signed in."""
    return Visitor(app)


@pytest.fixture
def visit(app: Flask, people: dict[str, User]) -> Callable[[str | None], Visitor]:
    """Makes one of the people sit at a browser, signed in: ``visit(MAX)``."""

    def begin(name: str | None) -> Visitor:
        made = Visitor(app)
        if name is not None:
            secret = secrets.new_token()
            expires_at = clock.now() + SESSION_LENGTH
            db.session.add(BrowserSession(user_id=people[name].id, digest=digest_of(secret), expires_at=expires_at))
            db.session.commit()
            with made.cookies.session_transaction() as session:
                session[SESSION_SECRET] = secret
        return made

    return begin


@pytest.fixture
def maintainer(visit: Callable[[str | None], Visitor]) -> Visitor:
    return visit(MAX)


@pytest.fixture
def paula(app: Flask) -> User:
    """Somebody with a password."""
    return worlds.make_user("paula", password_hash=secrets.hash_password(PASSWORD))


@pytest.fixture
def variable(project: Project) -> Variable:
    """A variable of the shop."""
    return store(Variable(project_id=project.id, key="REGION", value="eu-central-1"))


@pytest.fixture
def hidden_variable(project: Project) -> Variable:
    """A variable whose value nobody may read again."""
    return store(Variable(project_id=project.id, key="SIGNING", value="never-to-be-seen", masked=True, hidden=True))


@pytest.fixture
def protected_tag(project: Project) -> ProtectedTag:
    """The wildcard ``v*`` for maintainers."""
    return store(ProtectedTag(project_id=project.id, name="v*", create_access_levels=[40]))


def store(row: Any) -> Any:
    db.session.add(row)
    db.session.commit()
    return row
