"""The choice of a project of a Sentry server in the settings."""

from __future__ import annotations

import datetime as dt
import html
import re

import pytest
from sqlalchemy import delete, select

from project_service.areas.error_tracking.sentry import projects
from project_service.areas.error_tracking.settings.models import ErrorTrackingSetting
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from tests.areas.error_tracking.sentry.test_sentry import received_requests, respond_with, sentry
from tests.support.remote_servers import serving
from tests.support.sample_data import MAX

__all__ = ["sentry"]
PAGE = "/acme/shop/-/settings/operations/error_tracking"
PROJECTS = "/api/0/projects/"


@pytest.fixture
def sentry_without_settings(sentry):
    """A Sentry server to which no settings of the project refer."""
    with unit_of_work():
        db.session.execute(delete(ErrorTrackingSetting))
    return sentry


def stored():
    db.session.remove()
    return db.session.scalar(select(ErrorTrackingSetting))


def choices(page):
    """Return the URLs and names of the projects in the select."""
    match = re.search(r'<select[^>]*id="chosen".*?</select>', page.text, re.DOTALL)
    options = re.findall(r'value="([^"]*)">([^<]*)<', match[0].replace(" selected", "")) if match else []
    return [(html.unescape(value), html.unescape(title)) for value, title in options]


def sealed(page):
    return html.unescape(re.search(r'name="sealed_token" type="hidden" value="([^"]*)"', page.text)[1])


def list_projects(visitor, url, **fields):
    """Submit the form with the button that lists projects."""
    return visitor.send(PAGE, choose="1", enabled="y", backend="sentry", api_url=url, **fields)


def test_a_project_is_chosen_among_those_of_the_token(sentry_without_settings, visit):
    maintainer = visit(MAX)

    page = list_projects(maintainer, sentry_without_settings.url(), token="secret")

    shop, shop_front = (
        sentry_without_settings.url(f"{PROJECTS}acme/shop"),
        sentry_without_settings.url(f"{PROJECTS}acme/shop-front"),
    )
    assert choices(page) == [(shop, "Acme / Shop"), (shop_front, "Acme / Shop Front")]
    assert ("secret" in page.text, stored()) == (False, None)
    assert sentry_without_settings.received[-1].headers["Authorization"] == "Bearer secret"
    fields = {"enabled": "y", "backend": "sentry", "api_url": sentry_without_settings.url(), "chosen": shop_front}
    assert maintainer.send(PAGE, sealed_token=sealed(page), **fields).status_code == 302
    assert (stored().api_url, stored().token, stored().enabled) == (shop_front, "secret", True)


def test_the_stored_token_lists_projects_of_its_server_only(sentry, visit):
    maintainer = visit(MAX)

    page = list_projects(maintainer, stored().api_url)
    chosen = choices(page)[1][0]
    maintainer.send(PAGE, sealed_token=sealed(page), enabled="y", backend="sentry", api_url="", chosen=chosen)

    assert (stored().api_url, stored().token) == (chosen, "secret")
    with serving() as other:
        assert "is a required field" in list_projects(maintainer, other.url()).text
        page_of_other = list_projects(maintainer, other.url(), sealed_token=sealed(page))
        assert ("is a required field" in page_of_other.text, other.received) == (True, [])


def test_pages_of_projects_are_followed(sentry_without_settings, visit):
    first = [{"slug": "a", "organization": {"slug": "z"}}, {"slug": "no organisation"}, 5]
    link = f'<{sentry_without_settings.url()}>; rel="next"; results="true"; cursor="0:100:0"'
    respond_with(sentry_without_settings, PROJECTS, first, {"Link": link})
    received_requests(sentry_without_settings)

    page = list_projects(visit(MAX), sentry_without_settings.url("/whatever"), token="secret")

    assert choices(page) == [(sentry_without_settings.url(f"{PROJECTS}z/a"), "z / a")]
    queries = [query for _, _, query in received_requests(sentry_without_settings)]
    assert queries == [{}] + [{"cursor": "0:100:0"}] * (projects.MAX_PAGES - 1)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ([], 200, "The token reaches no project"),
        ({}, 200, "Error when connecting to Sentry"),
        ([], 401, "Sentry refuses the token"),
        (b"no JSON", 200, "Error when connecting to Sentry"),
    ],
)
def test_errors_of_sentry_are_shown(sentry_without_settings, visit, body, status, message):
    respond_with(sentry_without_settings, PROJECTS, body, status=status)

    page = list_projects(visit(MAX), sentry_without_settings.url(), token="secret")

    assert (page.status_code, message in page.text, choices(page)) == (200, True, [])


@pytest.mark.parametrize("url", ["", "http://[", "ftp://sentry.example.org", "https://a:b@sentry.example.org", "x"])
def test_an_invalid_url_is_not_requested(sentry_without_settings, visit, url):
    page = list_projects(visit(MAX), url, token="secret")

    assert (page.status_code, stored()) == (422, None)


def test_an_encrypted_token_is_valid_for_one_project_one_server_and_an_hour(app, project, monkeypatch):
    text = projects.seal("secret", project, "https://a.example")

    assert projects.unseal(text, project, "https://a.example") == "secret"
    assert projects.unseal(text, project, "https://b.example") is None
    assert projects.unseal("nonsense", project, "https://a.example") is None
    later = clock.now() + dt.timedelta(hours=1)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert projects.unseal(text, project, "https://a.example") is None
