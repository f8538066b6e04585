"""Menus that fit in a line, initials, durations, and what a saved form says."""

from __future__ import annotations

import datetime as dt

import pytest
from flask import render_template_string

from project_service.access.page_parts.navigation import NavigationLink, divided, initials
from project_service.access.page_parts.reader_times import duration
from tests.support.sample_data import MAX


def titles(links):
    return " ".join(link.title for link in links)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("a b c d e f g h", ("a b c d e f g h", "", "")),
        ("a b c d e f g h i", ("a b c d e f g h", "i", "")),
        ("a b c d e f g h i Settings", ("a b c d e f g", "h i", "Settings")),
    ],
    ids=["eight", "nine", "settings"],
)
def test_at_most_eight_links_stand_in_a_line(names, expected):
    menu = divided([NavigationLink(name, f"/{name}", current=name == "h") for name in names.split()])

    assert (titles(menu.first), titles(menu.more), titles(menu.last)) == expected


def test_initials_are_letters_of_the_first_and_the_last_word():
    names = ["Ada Augusta Lovelace", "shop", "web-hooks", "(System)", "", "!"]

    assert [initials(name) for name in names] == ["AL", "S", "WH", "?", "?", "?"]


def test_durations_have_their_two_largest_units():
    lengths = [dt.timedelta(seconds=5), dt.timedelta(minutes=61), dt.timedelta(days=2, minutes=3)]

    assert [duration(length) for length in lengths] == ["less than a minute", "1 hour 1 minute", "2 days 3 minutes"]


def test_a_saved_form_says_so(visit, project):
    visitor = visit(MAX)
    visitor.send("/acme/shop/-/milestones/new", title="Opening day")

    assert 'role="status">The milestone was created.</div>' in visitor.get("/acme/shop/-/milestones").text


def test_times_are_elements_with_utc_in_the_title_and_dates_are_text(app):
    noon = dt.datetime(2030, 1, 2, 12, tzinfo=dt.UTC)
    template = "{{ noon | day }} {{ day | day }} {{ noon | day_text }}"
    with app.test_request_context():
        shown = render_template_string(template, noon=noon, day=noon.date())

    element = '<time datetime="2030-01-02T12:00:00+00:00" title="2 Jan 2030 12:00:00 UTC">2 Jan 2030</time>'
    assert shown == f"{element} 2 Jan 2030 2 Jan 2030"
