"""Addresses on the way in and out (common reference, sections 1 and 8)."""

from __future__ import annotations

import pytest
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st

from project_service.kit.http import urls
from project_service.kit.http.requests import Request
from project_service.kit.http.urls import RawPaths, Segment


@pytest.fixture(scope="module")
def segments():
    """Answers the segments that a path is cut into."""
    app = Flask("segments")
    app.url_map.converters["default"] = Segment
    app.url_map.merge_slashes = False
    app.wsgi_app = RawPaths(app.wsgi_app)

    @app.get("/api/<one>")
    def one(one):
        return [one]

    @app.get("/api/<one>/<two>")
    def two(one, two):
        return [one, two]

    return app.test_client()


@pytest.mark.parametrize("path", ["/" + "a" * 4096, "/a" * 257], ids=["bytes", "segments"])
def test_no_route_is_looked_for_with_a_very_long_path(path, segments):
    response = segments.get(path)

    assert (response.status_code, response.text) == (414, "URI Too Long")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/api/a", ["a"]),
        ("/api/a/b", ["a", "b"]),
        ("/api/a%2Fb%2fc", ["a/b/c"]),
        ("/api/a%2Fb/c%2Fd", ["a/b", "c/d"]),
        ("/api/a%252Fb", ["a%2Fb"]),
        ("/api/a%25b", ["a%b"]),
        ("/api/50%", ["50%"]),
        ("/api/%2%46", ["%2F"]),
        ("/api/%C3%A4%20%2B+", ["ä ++"]),
        ("/api/with%2Edot", ["with.dot"]),
        ("/api/a%3Fb%23c", ["a?b#c"]),
        ("/api/*-stable", ["*-stable"]),
        ("/api//a//b//", ["a", "b"]),
        ("//api/a", ["a"]),
        ("/api/a/", ["a"]),
        ("/api/a.json", ["a.json"]),
        ("/api/a.json/", ["a.json"]),
        ("/api/a%2Ejson", ["a.json"]),
        ("/api/v1.0", ["v1.0"]),
        ("/api/1.json?b=1", ["1"]),
    ],
)
def test_a_path_is_split_at_unencoded_slashes_only(path, found, segments):
    response = segments.get("/", environ_overrides={"RAW_URI": path, "REQUEST_URI": path})

    assert response.json == found


def test_an_absolute_request_target_is_split_alike(segments):
    response = segments.get("/", environ_overrides={"RAW_URI": "http://host/api/a%2Fb?c=d"})

    assert response.json == ["a/b"]


def test_unencoded_bytes_in_paths_are_decoded(segments):
    response = segments.get("/", environ_overrides={"RAW_URI": "/api/" + "ä".encode().decode("latin-1")})

    assert response.json == ["ä"]


@pytest.mark.parametrize("path", ["/api/%ff", "/api/a%00b", "/api/\xff", "/%00", "/api/%C3%28"])
def test_a_path_with_invalid_utf8_is_a_plain_400(path, segments):
    response = segments.get("/", environ_overrides={"RAW_URI": path})

    assert (response.status_code, response.content_type, response.data) == (400, "text/plain", b"Bad Request")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20))
def test_any_text_is_kept_as_one_segment(segments, text):
    path = f"/api/{urls.encode(text)}/end"

    response = segments.get("/", environ_overrides={"RAW_URI": path})

    assert response.json == [text, "end"]


@pytest.mark.parametrize(
    ("configured", "found"),
    [(None, "http://asked.example:8080/x"), ("https://set.example", "https://set.example/x")],
)
def test_absolute_urls_start_with_the_configured_url(configured, found):
    app = Flask("addresses")
    app.request_class = Request
    app.config["EXTERNAL_URL"] = configured

    with app.test_request_context(base_url="http://asked.example:8080"):
        assert urls.absolute("/x") == found
