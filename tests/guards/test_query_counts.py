"""Every address that is read takes as many statements for twenty rows of everything as for two."""

from __future__ import annotations

import re

import pytest

from project_service.areas.notifications.channels import service as channels
from tests.guards.places import page_addresses, places_of, refused
from tests.support import many_rows, sample_data
from tests.support.sample_data import ADA, OLIVE

FEW, MANY = 2, 20
LARGEST_PAGE, LARGEST_PAGE_OF_LOG = 100, 20
# a page that holds all there is knows how many that are; any other has it counted
COUNTED = re.compile(r"SELECT count\(\*\) AS count_1\s+FROM \(SELECT 1\b")


@pytest.fixture
def statements(as_, visit, count_queries):
    """Tells what is sent to answer each address: to an owner, and outside of projects to an administrator too."""
    clients = {name: (as_(name).get, visit(name).get) for name in (OLIVE, ADA)}

    def sent(places, pages, run):
        found, seen = {}, set()
        for name, (get, get_page) in clients.items():
            asked = [(get, rule, f"{address}?per_page={page_size(rule)}") for rule, address in places.items()]
            asked += [(get_page, rule, f"{address}?") for rule, address in pages.items()]
            for ask, rule, address in asked:
                if name is ADA and "project>" in rule:
                    continue
                if run == 1:
                    ask(f"{address}&run=0")  # what a process keeps for a while is there from then on
                with count_queries() as queries:
                    response = ask(f"{address}&run={run}")
                found[name, rule] = [one for one in queries if not COUNTED.match(one)]
                seen |= set() if refused(response, rule, "") else {rule}
        return found, {*places, *pages} - seen

    return sent


def test_lists_take_a_constant_number_of_statements(app, filled, project, group, people, statements, monkeypatch):
    monkeypatch.setattr(channels, "MAX_CHANNELS", dict.fromkeys(channels.MAX_CHANNELS, 1000))
    grow(filled, project, group, people, FEW - 1, FEW)
    places, pages = places_of(app, filled, project, group), page_addresses(app, project, people)
    few, _ = statements(places, pages, 1)

    grow(filled, project, group, people, MANY - FEW, MANY)
    many, unseen = statements(places, pages, 2)

    grown = {
        f"{rule} ({name}): {' | '.join(added(few[name, rule], sent))}"
        for (name, rule), sent in many.items()
        if len(sent) > len(few[name, rule])
    }
    assert grown == set()
    assert (unseen, len(many) > 150) == (set(), True)


def grow(client, project, group, people, times, rows):
    """Furnish so many times more, and have so many rows under single things; all of them lead elsewhere."""
    for time in range(times):
        sample_data.fill_lists(project, group, people, client, mark=f"x{rows}x{time}")
    many_rows.fill(client, project, people, rows)
    many_rows.scatter(project.id)


def page_size(rule):
    """The rows of the largest page that a list has."""
    return LARGEST_PAGE_OF_LOG if rule.endswith("/hooks/<hook_id>/events") else LARGEST_PAGE


def added(before, after):
    """The statements that are sent more often than before, each once."""
    return sorted({one for one in after if after.count(one) > before.count(one)})
