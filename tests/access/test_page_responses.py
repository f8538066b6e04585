"""Headers of page responses, and error pages."""

from __future__ import annotations

import re

import pytest

from project_service.kit.db.session import db
from tests.support.sample_data import MAX

POLICY = {
    "default-src": "'self'",
    "script-src": "'self'",
    "style-src": "'self'",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'self'",
}
INLINE = re.compile(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", re.IGNORECASE)


@pytest.mark.parametrize(
    ("address", "status"),
    [("/", 200), ("/users/sign_in", 302), ("/acme/shop", 200), ("/none", 404), ("/acme/shop/-/issues/1/delete", 403)],
)
def test_every_response_has_security_headers(address, status, maintainer, project):
    response = maintainer.get(address)
    policy = dict(part.strip().split(" ", 1) for part in response.headers["Content-Security-Policy"].split(";"))

    assert response.status_code == status
    assert policy | POLICY == policy
    assert "unsafe" not in response.headers["Content-Security-Policy"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["X-Frame-Options"] == "SAMEORIGIN"
    assert response.headers["Referrer-Policy"] == "strict-origin-when-cross-origin"
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("address", ["/", "/projects/new", "/acme/shop/-/settings/ci_cd", "/none", "/api/docs"])
def test_no_page_violates_the_content_security_policy(address, maintainer, variable):
    assert not INLINE.search(maintainer.get(address).text)


@pytest.mark.parametrize("name", ["style.css", "pages.js", "icon.svg"])
def test_static_files_are_public(name, visitor):
    response = visitor.get(f"/static/{name}")

    assert (response.status_code, response.headers["X-Content-Type-Options"]) == (200, "nosniff")


@pytest.mark.parametrize("address", ["/static/none.css", "/static/../app.py", "/api/docs/none.js"])
def test_a_missing_static_file_is_404_for_all_callers(address, visitor, maintainer):
    assert [one.get(address).status_code for one in (visitor, maintainer)] == [404, 404]


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example.org"])
@pytest.mark.parametrize("address", ["/", "/users/sign_in", "/api/v4/version", "/static/none.css"])
def test_an_invalid_host_is_a_bad_request(address, host, app):
    response = app.test_client().get(address, environ_overrides={"HTTP_HOST": host})

    assert (response.status_code, response.json) == (400, {"message": "400 Bad Request"})
    assert response.headers["X-Frame-Options"] == "SAMEORIGIN"


def test_a_missing_page_shows_404_with_a_link_home(maintainer):
    response = maintainer.get("/acme/none", headers={"X-Request-Id": "a-number-1"})

    assert (response.status_code, response.headers["X-Request-Id"]) == (404, "a-number-1")
    assert "<h1>Page not found</h1>" in response.text
    assert "Request a-number-1" in response.text
    assert 'href="/"' in response.text


@pytest.mark.parametrize(
    ("method", "address", "status", "title"),
    [
        ("GET", "/acme/shop/-/issues/1/delete", 403, "You may not do that"),
        ("DELETE", "/acme/shop", 405, "That cannot be done here"),
        ("POST", "/", 405, "That cannot be done here"),
        ("POST", "/projects/new", 400, "That cannot be read"),
    ],
)
def test_error_pages_keep_the_session(method, address, status, title, maintainer, project):
    response = maintainer.open(method, address)

    assert (response.status_code, response.mimetype) == (status, "text/html")
    assert f"<h1>{title}</h1>" in response.text
    assert "Sign out" in response.text


def test_an_oversized_body_is_refused(maintainer, project):
    body = b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\n' + b"a" * (11 << 20) + b"\r\n--x--\r\n"

    response = maintainer.open("POST", "/projects/new", data=body, content_type="multipart/form-data; boundary=x")

    assert response.status_code == 413
    assert "<h1>Too large</h1>" in response.text


def test_an_internal_error_page_shows_no_details(maintainer, project, variable):
    db.session.execute(db.text("UPDATE variables SET value = 'not what encryption makes'"))
    db.session.commit()

    response = maintainer.get("/acme/shop/-/settings/ci_cd?reveal=1")

    assert response.status_code == 500
    assert "<h1>Something went wrong</h1>" in response.text
    assert "Traceback" not in response.text
    assert f"Request {response.headers['X-Request-Id']}" in response.text


def test_an_unknown_api_path_is_not_a_page(visitor):
    response = visitor.get("/api/v4/none")

    assert (response.status_code, response.json) == (404, {"error": "404 Not Found"})


def test_the_api_page_is_public_and_loads_nothing_external(visitor):
    response = visitor.get("/api/docs")
    assets = re.findall(r'(?:src|href)="([^"]+)"', response.text)

    assert response.status_code == 200
    assert len(assets) > 3
    assert all(visitor.get(asset).status_code == 200 for asset in assets)
    assert "https:" not in response.headers["Content-Security-Policy"]


def test_every_page_names_the_signed_in_user(visit, project):
    assert ">max</a>" in visit(MAX).get("/acme/shop").text
