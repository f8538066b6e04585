"""What the web server learns of a request from its view and its headers."""

from __future__ import annotations

import pytest

from project_service.kit.http.clients.admission import READ, SEARCH, WRITE


@pytest.mark.parametrize(
    ("method", "query", "kind"),
    [
        ("GET", "search=x", SEARCH),
        ("GET", "page=2&se%61rch=x", SEARCH),
        ("HEAD", "query=x", SEARCH),
        ("GET", "search=&page=2", READ),
        ("GET", "research=x", READ),
        ("POST", "search=x", WRITE),
    ],
)
def test_searches_of_texts_have_threads_of_their_own(app, method, query, kind):
    environ = {"REQUEST_METHOD": method, "PATH_INFO": "/api/v4/projects/1/issues", "QUERY_STRING": query}

    assert app.admission.work_of(environ).kind == kind
