"""The choice of a project of a Sentry server in the settings."""

from __future__ import annotations

import datetime as dt
import html
import re

import pytest
from sqlalchemy import delete, select

from project_service.areas.error_tracking import sentry_projects
from project_service.areas.error_tracking.models import ErrorTrackingSetting
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from tests.areas.error_tracking.test_sentry import asked, sentry, sets
from tests.support.remote_servers import serving
from tests.support.sample_data import MAX

__all__ = ["sentry"]
PAGE = "/acme/shop/-/settings/operations/error_tracking"
PROJECTS = "/api/0/projects/"


@pytest.fixture
def unset(sentry):
    """A Sentry server that the project has no settings for."""
    with unit_of_work():
        db.session.execute(delete(ErrorTrackingSetting))
    return sentry


def stored():
    db.session.remove()
    return db.session.scalar(select(ErrorTrackingSetting))


def choices(page):
    """The addresses and names to choose from."""
    select_ = re.search(r'<select[^>]*id="chosen".*?</select>', page.text, re.DOTALL)
    found = re.findall(r'value="([^"]*)">([^<]*)<', select_[0].replace(" selected", "")) if select_ else []
    return [(html.unescape(value), html.unescape(title)) for value, title in found]


def sealed(page):
    return html.unescape(re.search(r'name="sealed_token" type="hidden" value="([^"]*)"', page.text)[1])


def listed(visitor, url, **fields):
    """Use the button that lists projects."""
    return visitor.send(PAGE, choose="1", enabled="y", backend="sentry", api_url=url, **fields)


def test_a_project_is_chosen_among_those_of_the_token(unset, visit):
    maintainer = visit(MAX)

    page = listed(maintainer, unset.url(), token="secret")

    shop, front = unset.url(f"{PROJECTS}acme/shop"), unset.url(f"{PROJECTS}acme/shop-front")
    assert choices(page) == [(shop, "Acme / Shop"), (front, "Acme / Shop Front")]
    assert ("secret" in page.text, stored()) == (False, None)
    assert unset.received[-1].headers["Authorization"] == "Bearer secret"
    fields = {"enabled": "y", "backend": "sentry", "api_url": unset.url(), "chosen": front}
    assert maintainer.send(PAGE, sealed_token=sealed(page), **fields).status_code == 302
    assert (stored().api_url, stored().token, stored().enabled) == (front, "secret", True)


def test_the_stored_token_lists_projects_of_its_server_only(sentry, visit):
    maintainer = visit(MAX)

    page = listed(maintainer, stored().api_url)
    chosen = choices(page)[1][0]
    maintainer.send(PAGE, sealed_token=sealed(page), enabled="y", backend="sentry", api_url="", chosen=chosen)

    assert (stored().api_url, stored().token) == (chosen, "secret")
    with serving() as other:
        assert "is a required field" in listed(maintainer, other.url()).text
        again = listed(maintainer, other.url(), sealed_token=sealed(page))
        assert ("is a required field" in again.text, other.received) == (True, [])


def test_pages_of_projects_are_followed(unset, visit):
    first = [{"slug": "a", "organization": {"slug": "z"}}, {"slug": "no organisation"}, 5]
    link = f'<{unset.url()}>; rel="next"; results="true"; cursor="0:100:0"'
    sets(unset, PROJECTS, first, {"Link": link})
    asked(unset)

    page = listed(visit(MAX), unset.url("/whatever"), token="secret")

    assert choices(page) == [(unset.url(f"{PROJECTS}z/a"), "z / a")]
    queries = [query for _, _, query in asked(unset)]
    assert queries == [{}] + [{"cursor": "0:100:0"}] * (sentry_projects.MAX_PAGES - 1)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ([], 200, "The token reaches no project"),
        ({}, 200, "Error when connecting to Sentry"),
        ([], 401, "Sentry refuses the token"),
        (b"no JSON", 200, "Error when connecting to Sentry"),
    ],
)
def test_errors_of_sentry_are_shown(unset, visit, body, status, said):
    sets(unset, PROJECTS, body, status=status)

    page = listed(visit(MAX), unset.url(), token="secret")

    assert (page.status_code, said in page.text, choices(page)) == (200, True, [])


@pytest.mark.parametrize("url", ["", "http://[", "ftp://sentry.example.org", "https://a:b@sentry.example.org", "x"])
def test_an_invalid_url_is_not_requested(unset, visit, url):
    page = listed(visit(MAX), url, token="secret")

    assert (page.status_code, stored()) == (422, None)


def test_an_encrypted_token_is_valid_for_one_project_one_server_and_an_hour(app, project, monkeypatch):
    text = sentry_projects.seal("secret", project, "https://a.example")

    assert sentry_projects.unseal(text, project, "https://a.example") == "secret"
    assert sentry_projects.unseal(text, project, "https://b.example") is None
    assert sentry_projects.unseal("nonsense", project, "https://a.example") is None
    later = clock.now() + dt.timedelta(hours=1)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert sentry_projects.unseal(text, project, "https://a.example") is None
