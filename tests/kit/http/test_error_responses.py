"""How errors look (common reference, section 9), and what is never told."""

from __future__ import annotations

import errno
import sqlite3
from contextlib import closing

import psycopg
import pytest
import redis.exceptions
from sqlalchemy.exc import OperationalError
from werkzeug import exceptions

from project_service.kit.http import errors, responses

NO_ROOM = "507 Insufficient Storage: there is no room left on the disk of this server"


def full_database():
    """What SQLite raises when there is no room for a page more."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA max_page_count = 1")
        with pytest.raises(sqlite3.OperationalError) as told:
            connection.execute("CREATE TABLE a (b)")
    return told.value


@pytest.mark.parametrize(
    ("error", "status", "body"),
    [
        (errors.BadParameters("a is missing", "b is invalid"), 400, {"error": "a is missing, b is invalid"}),
        (errors.BadRequest("400 Bad request - no"), 400, {"message": "400 Bad request - no"}),
        (errors.Invalid(value="is invalid"), 400, {"message": {"value": ["is invalid"]}}),
        (errors.Invalid(key=["a", "b"]), 400, {"message": {"key": ["a", "b"]}}),
        (errors.Unauthorized(), 401, {"message": "401 Unauthorized"}),
        (errors.InvalidToken("Gone."), 401, {"error": "invalid_token", "error_description": "Gone."}),
        (errors.Forbidden(), 403, {"message": "403 Forbidden"}),
        (errors.Forbidden("why"), 403, {"message": "403 Forbidden - why"}),
        (errors.NotFound(), 404, {"message": "404 Not Found"}),
        (errors.NotFound("Project"), 404, {"message": "404 Project Not Found"}),
        (errors.RecordNotFound(), 404, {"message": "404 Not found"}),
        (errors.UnknownRoute(), 404, {"error": "404 Not Found"}),
        (errors.MethodNotAllowed(), 405, {"error": "405 Not Allowed"}),
        (errors.Conflict("Member already exists"), 409, {"message": "Member already exists"}),
        (errors.PreconditionFailed(), 412, {"message": "412 Precondition Failed"}),
        (errors.BodyTooLarge(), 413, {"message": "413 Request Entity Too Large"}),
        (errors.UnsupportedContentType("a/b"), 415, {"error": "The provided content-type 'a/b' is not supported."}),
        (errors.Unprocessable(["Name is too long"]), 422, {"message": ["Name is too long"]}),
        (
            errors.TooManyRequests(),
            429,
            {"message": {"error": "This endpoint has been requested too many times. Try again later."}},
        ),
        (errors.ServiceError(), 500, {"message": "500 Internal Server Error"}),
        (errors.Unavailable(), 503, {"message": "503 Service Unavailable"}),
        (errors.InsufficientStorage(), 507, {"message": NO_ROOM}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)  # fmt: skip
def test_each_error_has_its_status_and_body(error, status, body):
    response = responses.render(error)

    assert (response.status_code, response.content_type, response.json) == (status, "application/json", body)


def test_malformed_requests_get_plain_text_responses():
    response = responses.render(errors.Malformed())

    assert (response.status_code, response.mimetype, response.data) == (400, "text/plain", b"Bad Request")


@pytest.mark.parametrize(
    ("error", "name", "value"),
    [
        (errors.TooManyRequests(30), "Retry-After", "30"),
        (errors.MethodNotAllowed(allow="GET, OPTIONS"), "Allow", "GET, OPTIONS"),
        (
            errors.InvalidToken("Gone."),
            "WWW-Authenticate",
            'Bearer realm="Protected by OAuth 2.0", error="invalid_token", error_description="Gone."',
        ),
    ],
)
def test_some_errors_have_a_header(error, name, value):
    assert responses.render(error).headers[name] == value


@pytest.mark.parametrize("error", [errors.Unauthorized(), errors.Forbidden(), errors.InsufficientScope("api")])
def test_other_errors_have_no_www_authenticate_header(error):
    assert "WWW-Authenticate" not in responses.render(error).headers


@pytest.mark.parametrize(
    ("raised", "status", "body"),
    [
        (exceptions.NotFound(), 404, {"error": "404 Not Found"}),
        (exceptions.RequestEntityTooLarge(), 413, {"message": "413 Request Entity Too Large"}),
        (exceptions.ImATeapot(), 418, {"message": "418 I'm a teapot"}),
        (OperationalError("SELECT secret", {}, OSError("/var/lib")), 503, {"message": "503 Service Unavailable"}),
        (redis.exceptions.ConnectionError("/run/redis.sock"), 503, {"message": "503 Service Unavailable"}),
        (OSError(errno.ENOSPC, "No space left", "/var/lib"), 507, {"message": NO_ROOM}),
        (OSError(errno.EDQUOT, "Quota exceeded", "/var/lib"), 507, {"message": NO_ROOM}),
        (OperationalError("INSERT secret", {}, full_database()), 507, {"message": NO_ROOM}),
        (OperationalError("INSERT secret", {}, psycopg.errors.DiskFull()), 507, {"message": NO_ROOM}),
        (OSError(errno.EIO, "Input/output error", "/var/lib"), 500, {"message": "500 Internal Server Error"}),
        (KeyError("secret"), 500, {"message": "500 Internal Server Error"}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_exceptions_of_libraries_are_mapped_to_our_bodies(raised, status, body):
    response = responses.render(responses.as_service_error(raised))

    assert (response.status_code, response.json) == (status, body)
