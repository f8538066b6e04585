"""The pages of errors, without JavaScript."""

from __future__ import annotations

import html
import re

import pytest

from project_service.areas.error_tracking.settings.models import ErrorTrackingSetting
from project_service.kit.db.session import db, unit_of_work
from tests.areas.error_tracking.errors.test_errors import CRASH, ago
from tests.support.sample_data import DEV, GUS, MAX, RITA
from tests.support.sentry_requests import Sender, track_errors

LIST = "/acme/shop/-/error_tracking"
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def sender(app, project):
    """A client that sends events to the project."""
    return Sender(app, track_errors(project))


def rows(page):
    """Return the titles of a list."""
    return [html.unescape(title) for title in re.findall(r"<strong>(.*?)</strong></a>", page.text)]


def first_error(visitor):
    return re.search(rf"{LIST}/(\d+)/details", visitor.get(f"{LIST}?status=all").text)[0].removesuffix("/details")


def test_a_project_without_settings_explains_the_setup(visit, project):
    maintainer, reporter = visit(MAX).get(LIST), visit(RITA).get(LIST)

    assert "/acme/shop/-/settings/operations#error-tracking" in maintainer.text
    assert "A maintainer can enable error tracking" in reporter.text
    assert visit(GUS).get(LIST).status_code == 403


def test_before_the_first_event_the_page_shows_the_dsn_to_maintainers(visit, sender):
    maintainer, developer = visit(MAX).get(LIST).text, visit(DEV).get(LIST).text

    assert maintainer.count(f"{sender.key}@localhost/api/v4/error_tracking/collector/{sender.project_id}") == 6
    assert (sender.key in developer, "sentry_sdk.init" in developer) == (False, True)


def test_the_list_is_searched_filtered_and_sorted(visit, sender):
    sender.event(message="low stock", environment="staging", level="warning", timestamp=ago(hours=30))
    sender.event(message="no price", timestamp=ago(hours=3))
    sender.event(message="no price", timestamp=ago(hours=1))
    visitor = visit(RITA)

    shown = visitor.get(LIST)

    assert rows(shown) == ["no price", "low stock"]
    assert 'aria-label="2 events in the last 24 hours, at most 1 from' in shown.text
    assert rows(visitor.get(f"{LIST}?period=24h")) == ["no price"]
    assert "3 events" not in shown.text
    assert rows(visitor.get(f"{LIST}?search_term=STOCK")) == ["low stock"]
    assert rows(visitor.get(f"{LIST}?environment=staging")) == ["low stock"]
    assert rows(visitor.get(f"{LIST}?level=warning&sort=frequency&status=all")) == ["low stock"]
    assert "No errors to display" in visitor.get(f"{LIST}?search_term=zzz").text
    assert rows(visitor.get(f"{LIST}?status=x&sort=x&level=x&period=x&page=x")) == ["no price", "low stock"]


def test_long_lists_are_paginated(visit, sender):
    for number in range(21):
        sender.event(message=f"error {chr(65 + number)}", timestamp=ago(minutes=number))

    first, second = visit(RITA).get(LIST), visit(RITA).get(f"{LIST}?page=2")

    assert (len(rows(first)), rows(second)) == (20, ["error U"])
    assert ("1–20 of 21" in first.text, "21–21 of 21" in second.text) == (True, True)
    assert ("page=2" in first.text, 'rel="prev"' in second.text, 'rel="next"' in second.text) == (True, True, False)


def test_errors_are_resolved_ignored_and_reopened_on_both_pages(visit, sender):
    sender.event(message="low")
    developer = visit(DEV)
    one = first_error(developer)

    ignored = developer.send(f"{one}/status", status="ignored", back="?status=all")

    assert ignored.headers["Location"] == f"{LIST}?status=all"
    assert "Undo ignore" in developer.get(f"{one}/details").text
    resolved = developer.send(f"{one}/status", status="resolved", back="?\r\nSet-Cookie: a=b")
    assert resolved.headers["Location"] == f"{one}/details"
    assert rows(developer.get(LIST)) == []
    assert rows(developer.get(f"{LIST}?status=resolved")) == ["low"]
    sender.event(message="low")
    assert "Regression" in developer.get(LIST).text
    assert "Came back" in developer.get(f"{one}/details").text
    assert developer.send(f"{one}/status", status="open").status_code == 422
    assert "<button" not in visit(RITA).get(LIST).text.partition("<tbody>")[2].partition("</tbody>")[0]


def test_an_error_shows_its_newest_event_with_links_to_others(visit, sender):
    first = sender.event(**CRASH, timestamp=ago(hours=2), tags={"shop": "north"}).json["id"]
    cause = {"type": "KeyError", "value": "'price'"}
    chain = {"exception": {"values": [cause, *CRASH["exception"]["values"]]}}
    sender.event(**CRASH, timestamp=ago(hours=1), user={"id": 42}, request={"url": "https://shop.example.org/cart"})
    visitor = visit(RITA)
    one = first_error(visitor)

    newest = visitor.get(f"{one}/details").text
    oldest = visitor.get(f"{one}/details?event={first}").text

    assert f"event={first}" in newest
    assert 'rel="next"' not in newest.partition("event-title")[2]
    assert 'rel="next"' in oldest.partition("event-title")[2]
    assert "shop: north" in oldest
    assert '<mark class="line"><span class="number">12</span>    return 1 / x  # ```' in newest
    assert newest.count('<details class="frame" open>') == 1
    assert "1 frame of libraries" in newest
    assert 'href="https://shop.example.org/cart" rel="noreferrer noopener nofollow"' in newest
    sender.event(**chain)
    last = visitor.get(f"{first_error(visitor)}/details").text
    assert last.index("ZeroDivisionError") < last.index("caused by") < last.index("KeyError")


def test_issues_are_created_linked_and_removed(visit, sender):
    sender.event(message="low")
    developer = visit(DEV)
    one = first_error(developer)

    created = developer.send(f"{one}/issue", create="1")

    assert created.headers["Location"] == "/acme/shop/-/issues/1"
    assert "View issue #1" in developer.get(f"{one}/details").text
    assert f"{one}/details" in developer.get("/acme/shop/-/issues/1").text
    assert developer.send(f"{one}/issue", create="1").status_code == 422
    assert developer.send(f"{one}/unlink").status_code == 302
    assert developer.send(f"{one}/unlink").status_code == 302
    assert developer.send(f"{one}/issue", issue_iid="x").status_code == 422
    assert "is that of no issue" in developer.send(f"{one}/issue", issue_iid="9").text
    assert developer.send(f"{one}/issue", issue_iid="#1").status_code == 302
    assert "View issue #1" in developer.get(f"{one}/details").text


def test_an_error_is_removed_after_confirmation(visit, sender):
    sender.event(message="low")
    one = first_error(visit(MAX))

    assert "Delete error?" in visit(MAX).get(f"{one}/delete").text
    assert visit(DEV).get(f"{one}/delete").status_code == 403
    assert visit(MAX).send(f"{one}/delete").headers["Location"] == LIST
    assert visit(MAX).get(f"{one}/details").status_code == 404


def with_script(value):
    """Return a copy of an event in which every text and an additional key of every object is a script."""
    if isinstance(value, dict):
        return {key: with_script(inner) for key, inner in value.items()} | {SCRIPT: SCRIPT}
    return (
        [with_script(inner) for inner in value]
        if isinstance(value, list)
        else SCRIPT
        if isinstance(value, str)
        else value
    )


def test_values_of_events_are_escaped(visit, sender):
    long = "ä" * 10_000
    texts = ("transaction", "logger", "server_name", "release", "environment", "dist", "platform", "message")
    event = (
        dict.fromkeys(texts, "x")
        | CRASH
        | {
            "user": {"id": "x"},
            "request": {"url": "javascript:alert(1)", "headers": {"A": "b"}, "data": ["x"]},
            "tags": {"a": "b"},
            "breadcrumbs": [{"message": "m", "category": "c", "level": "l", "data": {"a": "b"}}],
            "contexts": {"a": {"b": "c"}},
            "extra": {"a": long},
            "modules": {"a": "b"},
        }
    )
    sender.event(**{name: with_script(value) for name, value in event.items()})
    sender.event(exception={"type": long, "value": f"{SCRIPT}{long}"})
    visitor = visit(DEV)

    listed = visitor.get(LIST).text
    pages = [visitor.get(path).text for path in set(re.findall(rf"{LIST}/\d+/details", listed))]
    texts = [listed, *pages]

    assert len(pages) == 2
    assert all("<script>alert" not in text for text in texts)
    assert sum(text.count("&lt;script&gt;alert(1)") for text in texts) > 20
    assert all('href="javascript' not in text for text in texts)


def test_pages_show_no_secret_of_recorded_requests(visit, sender):
    sender.replay_all("python-flask")
    visitor = visit(MAX)
    listed = visitor.get(LIST).text
    texts = [listed, *(visitor.get(leaked).text for leaked in re.findall(rf"{LIST}/\d+/details", listed))]

    leaked = [secret for secret in ("4111 1111 1111 1111", "token=abc", "hunter2") for text in texts if secret in text]
    assert (leaked, len(texts)) == ([], 3)


@pytest.mark.parametrize("name", ["python", "node", "browser", "ruby", "legacy-store"])
def test_every_recorded_event_has_its_page(visit, sender, name):
    sender.replay_all(name)
    visitor = visit(RITA)

    for path in set(re.findall(rf"{LIST}/\d+/details", visitor.get(LIST).text)):
        assert visitor.get(path).status_code == 200


def test_errors_are_readable_while_tracking_is_off(visit, sender, project):
    sender.event(message="low")
    with unit_of_work():
        db.session.query(ErrorTrackingSetting).update({"enabled": False})

    shown = visit(RITA).get(LIST)

    assert ("Error tracking is switched off" in shown.text, rows(shown)) == (True, ["low"])
