"""What people do with the list of a branch: dismiss many findings, export, see the trend; and the page of a finding."""

from __future__ import annotations

import csv
import datetime as dt
import io
import re

import pytest

from project_service.areas.vulnerabilities.findings import bulk
from project_service.areas.vulnerabilities.levels import FindingSeverity
from project_service.areas.vulnerabilities.models import Feedback
from project_service.areas.vulnerabilities.tracking import trend
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.areas.vulnerabilities.findings.test_finding_pages import DASHBOARD, titles
from tests.areas.vulnerabilities.tracking.test_tracking import result, sarif
from tests.support.git_repositories import keep_repository
from tests.support.sample_data import DEV
from tests.support.security_reports import bill, ingest_report

DISMISSALS = "/acme/shop/-/security/dismissals"
REASON = {"dismissal_reason": "used_in_tests", "comment": "Only in tests."}


@pytest.fixture
def developer(visit, project):
    return visit(DEV)


def send(project, rules, **fields):
    levels = {"A": "error"}
    return ingest_report(
        project, sarif(*(result(rule, level=levels.get(rule, "note")) for rule in rules)), None, **fields
    )


def select(page, *names):
    """The values of the checkboxes of findings."""
    return [
        re.search(rf'value="(\d+)" form="bulk" aria-label="Select Found by {name}\."', page.text)[1] for name in names
    ]


def test_selected_findings_are_dismissed_with_a_reason(developer, project):
    send(project, "ABC")
    chosen = select(developer.get(DASHBOARD), "A", "C")

    response = developer.send(DISMISSALS, **REASON, findings=chosen)

    assert response.status_code == 302
    assert titles(developer.get(DASHBOARD)) == ["Found by B."]
    assert titles(developer.get(f"{DASHBOARD}?state=dismissed")) == ["Found by A.", "Found by C."]
    rows = db.session.query(Feedback).all()
    assert {(row.author.username, row.dismissal_reason, row.comment) for row in rows} == {(DEV, *REASON.values())}


def test_all_that_the_filters_match_are_dismissed_up_to_a_limit(developer, project, monkeypatch):
    monkeypatch.setattr(bulk, "MAX_FINDINGS", 2)
    send(project, "ABCD")

    address = f"{DISMISSALS}?severity=low"
    pages = [developer.get(developer.send(address, **REASON, all="1").location) for _ in range(2)]

    assert (pages[0].request.path, pages[0].request.args["severity"]) == (DASHBOARD, "low")
    assert "2 findings were dismissed. At most 2 are dismissed at a time" in pages[0].text
    assert "1 finding was dismissed." in pages[1].text
    assert titles(developer.get(DASHBOARD)) == ["Found by A."]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"all": "1"}, "Choose a reason for the dismissal."),
        (REASON, "Select findings that are not dismissed yet."),
        ({"all": "1", "dismissal_reason": "because"}, "is not a valid dismissal_reason"),
    ],
    ids=["reason", "none", "unknown reason"],
)
def test_a_dismissal_of_many_needs_a_reason_and_findings(data, told, developer, project):
    send(project, "AB")

    response = developer.send(DISMISSALS, **data)

    assert (response.status_code, told in response.text.replace("&#39;", "'")) == (422, True)
    assert db.session.query(Feedback).count() == 0


def test_the_page_exports_what_it_shows(developer, project):
    send(project, "AB")
    page = developer.get(f"{DASHBOARD}?severity=low")
    (address,) = re.findall(r'href="([^"]+)" download>Export CSV', page.text)

    lines = list(csv.DictReader(io.StringIO(developer.get(address.replace("&amp;", "&")).text, newline="")))

    assert [line["Vulnerability"] for line in lines] == ["Found by B."]
    assert developer.get("/acme/shop/-/security/export?format=pdf").status_code == 404


@pytest.mark.both_databases
def test_the_trend_counts_open_findings_at_the_end_of_each_day(developer, project, monkeypatch):
    today = clock.now()

    def on(day):
        monkeypatch.setattr(clock, "now", lambda: today + dt.timedelta(days=day - 4))

    for day, rules in ((0, "AB"), (1, "ABC"), (3, "B")):
        on(day)
        send(project, rules)
    on(4)
    developer.send(DISMISSALS, **REASON, all="1")
    columns = trend.open_by_day(project.id, "main").columns
    page = developer.get(f"{DASHBOARD}?state=all").text
    on(90)
    later = trend.open_by_day(project.id, "main").columns

    assert [sum(counts.values()) for _, counts in columns] == [2, 3, 3, 1, 0]
    assert [(today.date() - day).days for day, _ in columns] == [4, 3, 2, 1, 0]
    assert (columns[0][1][FindingSeverity.HIGH], columns[0][1][FindingSeverity.LOW]) == (1, 1)
    assert "Open findings of the last 5 days" in page
    assert [sum(counts.values()) for _, counts in later] == [0] * trend.MAX_DAYS


def test_the_line_is_linked_where_the_repository_has_it(developer, project, tmp_path):
    keep_repository(project, tmp_path / "code", files={"a.py": b"1\n2\n3\n"})
    send(project, "A")
    ingest_report(project, sarif(result("B", uri="gone.py")), None, category="other")

    pages = {}
    for name in "AB":
        number = re.search(rf'/findings/(\d+)">Found by {name}', developer.get(DASHBOARD).text)[1]
        pages[name] = developer.get(f"/acme/shop/-/security/findings/{number}").text

    assert 'href="/acme/shop/-/blob/main/a.py#L3"' in pages["A"]
    assert "gone.py:3" in pages["B"]
    assert "/-/blob/" not in pages["B"]


def test_a_finding_is_decided_beside_its_title(developer, project):
    send(project, "A")
    number = re.search(r'/findings/(\d+)">Found', developer.get(DASHBOARD).text)[1]
    address = f"/acme/shop/-/security/findings/{number}"

    before = developer.get(address).text
    developer.send(f"{address}/dismiss", **REASON)
    after = developer.get(address).text

    assert before.index('action="' + address + "/dismiss") < before.index("<dt>Severity")
    assert after.index("Undo dismissal") < after.index("Only in tests.") < after.index("<dt>Severity")


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("license_name", "names"), [("MIT", ["a"]), ("A_%", ["b"]), ("unknown", ["c"]), ("MI", [])], ids=str
)
def test_dependencies_are_filtered_by_license(license_name, names, developer, as_, project):
    document = bill("a", "b", "c")
    licenses = {"a": "MIT", "b": "A_%"}
    for one in document["components"]:
        if one["name"] in licenses:
            one["licenses"] = [{"license": {"name": licenses[one["name"]]}}]
    ingest_report(project, document, None)
    query = {"license": license_name}

    listed = as_(DEV).get(f"/projects/{project.id}/dependencies", query_string=query).json
    page = developer.get("/acme/shop/-/security/dependencies", query_string=query).text

    assert [one["name"] for one in listed] == names
    assert re.findall(r'<td class="long"><strong>(\w+)', page) == names
    assert "<option>A_%</option>" in page or "selected>A_%</option>" in page
