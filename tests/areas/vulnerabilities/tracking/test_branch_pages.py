"""The page of a branch, which shows the findings of all its newest reports, and the list of pipelines."""

from __future__ import annotations

import html
import re

import pytest

from tests.areas.vulnerabilities.findings.test_finding_pages import DASHBOARD, counters, titles
from tests.areas.vulnerabilities.tracking.test_tracking import result, sarif
from tests.support.sample_data import DEV
from tests.support.security_reports import ingest_report

PIPELINES = "/acme/shop/-/pipelines"
BADGES = re.compile(r'<span class="badge[^"]*">(New|Reappeared)</span>')


@pytest.fixture
def developer(visit, project):
    return visit(DEV)


def send(project, rules, scanner="Scan", **fields):
    ingest_report(project, sarif(*(result(rule) for rule in rules), scanner=scanner), None, **fields)


def test_a_second_report_without_a_commit_hides_no_other_scanner(developer, project):
    send(project, "AB", "One")
    send(project, "C", "Two")

    page = developer.get(DASHBOARD)

    assert titles(page) == ["Found by A.", "Found by B.", "Found by C."]
    assert counters(page)["Medium"] == 3


def test_states_and_badges_follow_the_last_run(developer, project):
    for rules in ("ABC", "AB", "ABD", "ABC"):
        send(project, rules)

    page = developer.get(DASHBOARD)
    shown = {query: titles(developer.get(f"{DASHBOARD}?{query}")) for query in ("state=resolved", "new=1", "state=all")}

    assert (titles(page), BADGES.findall(page.text)) == (["Found by A.", "Found by B.", "Found by C."], ["Reappeared"])
    assert shown["state=resolved"] == ["Found by D."]
    assert shown["new=1"] == ["Found by C."]
    assert len(shown["state=all"]) == 4


def test_the_branch_and_the_scanner_are_selected(developer, project):
    send(project, "A", "One")
    send(project, "B", "Two")
    send(project, "AX", "One", ref="feature")

    assert titles(developer.get(f"{DASHBOARD}?scanner=two")) == ["Found by B."]
    assert titles(developer.get(f"{DASHBOARD}?branch=feature")) == ["Found by A.", "Found by X."]
    assert BADGES.findall(developer.get(f"{DASHBOARD}?branch=feature").text) == ["New"]


def test_pipelines_are_listed_with_scanners_and_counts(developer, project):
    send(project, "AB", "One", sha="ab" * 20, category="api")
    send(project, "C", "Two", ref="feature")

    page = html.unescape(developer.get(PIPELINES).text)
    cells = re.findall(r'data-label="(?:Scanners|Findings)"[^>]*>(.*?)</td>', page)

    assert cells == ["two", "1", "one (api)", "2"]
    assert "abababab" in page
    assert "one (api)" not in developer.get(f"{PIPELINES}?branch=feature").text
