"""The security dashboard and the pages of findings."""

from __future__ import annotations

import html
import io
import re

import orjson
import pytest

from project_service.areas.vulnerabilities.models import Feedback, Finding, Pipeline
from project_service.domain.projects import DISABLED
from project_service.domain.tracker.issues import Issue
from project_service.kit.db.session import db
from tests.support import sample_data
from tests.support.sample_data import DEV, RITA
from tests.support.security_reports import ingest_report, report, vulnerability

DASHBOARD = "/acme/shop/-/security/dashboard"
UPLOAD = "/acme/shop/-/security/reports/new"
TITLES = re.compile(r'<td class="long"><a href="/acme/shop/-/security/findings/\d+">(.*?)</a>')
COUNTERS = re.compile(r"</span> (\w+) <strong>(\d+)</strong>")


@pytest.fixture
def developer(visit, project):
    return visit(DEV)


def titles(page):
    return [html.unescape(title) for title in TITLES.findall(page.text)]


def counters(page):
    return {name: int(count) for name, count in COUNTERS.findall(page.text)}


def finding_page(name="Finding a"):
    db.session.remove()
    found = db.session.query(Finding).order_by(Finding.id.desc())
    finding = next(one for one in found if one.data["name"] == name)
    return f"/acme/shop/-/security/findings/{finding.id}"


def test_without_reports_the_page_explains_the_upload(developer):
    page = developer.get(DASHBOARD)

    assert ("No security reports yet" in page.text, UPLOAD in page.text) == (True, True)


def test_a_pipeline_without_findings_shows_a_message(developer, project):
    ingest_report(project, report())

    assert "The scanners found nothing" in developer.get(DASHBOARD).text


def test_the_dashboard_lists_and_counts_findings(developer, project):
    entries = [vulnerability(key, severity=level) for key, level in (("a", "Low"), ("b", "Critical"), ("c", "Low"))]
    ingest_report(project, report(*entries), sha="abcdef12" * 5)

    page = developer.get(DASHBOARD)

    assert titles(page) == ["Finding b", "Finding a", "Finding c"]
    assert counters(page) == {"Critical": 1, "High": 0, "Medium": 0, "Low": 2, "Unknown": 0, "Info": 0}
    for part in ("app/b.py:3", "Rule b", "SAST", "3 findings", "abcdef12"):
        assert part in page.text


def test_a_long_name_is_truncated_on_the_dashboard_only(developer, project):
    name = "overflow" * 60
    ingest_report(project, report(vulnerability("a", name=name)))

    (shown,) = titles(developer.get(DASHBOARD))

    assert (len(shown), shown[-1], name.startswith(shown[:-1])) == (200, "…", True)
    assert f"<h1>{name}</h1>" in developer.get(finding_page(name)).text


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("severity=low", ["Finding a"]),
        ("severity=low&severity=high", ["Finding b", "Finding a"]),
        ("confidence=high&report_type=sast", ["Finding b", "Finding a"]),
        ("report_type=dast", []),
        ("severity=nonsense&page=x", ["Finding b", "Finding a"]),
        ("pipeline_id=999", []),
    ],
)
def test_the_dashboard_is_filtered(query, shown, developer, project):
    ingest_report(project, report(vulnerability("a", severity="Low"), vulnerability("b")))

    assert titles(developer.get(f"{DASHBOARD}?{query}")) == shown


def test_the_dashboard_is_paginated(developer, project):
    ingest_report(project, report(*(vulnerability(f"{number:02}") for number in range(25))))

    first, second = (developer.get(f"{DASHBOARD}?severity=high&page={number}") for number in (1, 2))

    assert (len(titles(first)), titles(second)[0]) == (20, "Finding 20")
    assert "severity=high&amp;page=2" in first.text


def test_the_chart_shows_the_last_pipelines(developer, project):
    for count in (1, 3):
        ingest_report(project, report(*(vulnerability(str(number)) for number in range(count))))

    page = developer.get(DASHBOARD).text

    assert [
        round(float(height)) for height in re.findall(r'<rect [^>]*height="([\d.]+)" class="severity-high"', page)
    ] == [
        27,
        80,
    ]
    assert "Findings of the last 2 pipelines by severity" in page


def test_a_finding_shows_all_fields(developer, project):
    entry = vulnerability(
        "a",
        description="It <is> bad",
        solution="Upgrade",
        links=[{"url": "https://l.example", "name": "Advisory"}, {"url": "javascript:alert(1)"}],
        evidence={
            "summary": "Seen",
            "request": {"method": "GET", "url": "https://x", "headers": [{"name": "A", "value": "B"}], "body": "q"},
            "response": {"status_code": 500, "reason_phrase": "No", "headers": []},
        },
        details={
            "list": {"name": "L", "type": "list", "items": [{"type": "text", "value": "in a list"}]},
            "named": {
                "name": "N",
                "type": "named-list",
                "items": {"x": {"name": "Inner", "type": "value", "value": 5}},
            },
            "table": {
                "name": "T",
                "type": "table",
                "header": [{"type": "text", "value": "Head"}],
                "rows": [[{"type": "text", "value": "Cell"}], "nonsense"],
            },
            "url": {"name": "U", "type": "url", "href": "https://u.example", "text": "There"},
            "code": {"name": "C", "type": "code", "value": "x = <1>", "lang": "python"},
            "diff": {"name": "D", "type": "diff", "before": "old", "after": "new"},
            "markdown": {"name": "M", "type": "markdown", "value": "**strong**"},
            "commit": {"name": "S", "type": "commit", "value": "abc123"},
            "file": {"name": "F", "type": "file-location", "file_name": "f.c", "line_start": 1, "line_end": 4},
            "module": {"name": "O", "type": "module-location", "module_name": "m.so", "offset": 100},
            "new": {"name": "X", "type": "unheard-of", "value": 1},
            "odd": 7,
        },
    )
    ingest_report(project, report(entry), sha="ab" * 20)

    page = developer.get(finding_page()).text

    for part in (
        *(
            "It &lt;is&gt; bad",
            "Upgrade",
            '<a href="https://l.example"',
            ">Advisory</a>",
            "<li>javascript:alert(1)</li>",
        ),
        '<a href="https://rules.example/a"',
        *("GET https://x", "A: B", "500 No", "in a list", "Inner", "Head", "Cell", ">There</a>", "x = &lt;1&gt;"),
        *(
            "<del>old</del>",
            "<ins>new</ins>",
            "<strong>strong</strong>",
            "abc123",
            "f.c:1-4",
            "m.so:100",
            "unheard-of",
            ">7<",
        ),
    ):
        assert part in page, part
    assert "<p><code>app/a.py:3-5</code></p>" in page  # there is no repository to link to


def test_details_nested_deeply_are_shown(developer, project):
    deep = {"type": "text", "name": "T", "value": "bottom"}
    for _ in range(100):
        deep = {"type": "list", "name": "L", "items": [deep]}
    ingest_report(project, report(vulnerability("a", details={"x": deep})))

    assert "bottom" in developer.get(finding_page()).text


@pytest.mark.parametrize("location", [None, {"image": "i", "dependency": {"package": {"name": "p"}, "version": "1"}}])
def test_a_finding_with_few_fields_is_shown(location, developer, project):
    entry = {"name": "A", "location": location, "details": {"x": {"type": "list"}, "y": {"type": "table", "rows": {}}}}
    ingest_report(project, report(entry), "container_scanning")

    assert developer.get(finding_page("A")).status_code == 200


def test_the_url_of_a_pipeline_shows_its_findings(developer, project, people):
    finding = report(vulnerability("Old"))
    pipeline = ingest_report(project, finding)
    ingest_report(project, report(vulnerability("New")))
    other = sample_data.make_project()
    foreign = ingest_report(other, finding)
    home = f"/{project.full_path}/-/pipelines"

    page = developer.get(f"{home}/{pipeline}")
    missing = [developer.get(f"{home}/{number}").status_code for number in (foreign, 0, 10**20)]

    assert (page.status_code, "Old" in page.text, "New" in page.text) == (200, True, False)
    assert missing == [404] * 3


def test_a_finding_is_dismissed_and_restored(developer, project):
    ingest_report(project, report(vulnerability("a"), vulnerability("b")))

    response = developer.send(f"{finding_page()}/dismiss", dismissal_reason="false_positive", comment="Not <reached>")
    page, undismissed = developer.get(response.location).text, titles(developer.get(DASHBOARD))
    all_findings = titles(developer.get(f"{DASHBOARD}?scope=all"))
    undone = developer.send(f"{finding_page()}/undo")

    assert (response.status_code, response.location, undone.status_code) == (302, finding_page(), 302)
    assert "False positive" in page
    assert "Not &lt;reached&gt;" in page
    assert (undismissed, all_findings) == (["Finding b"], ["Finding a", "Finding b"])
    assert db.session.query(Feedback).count() == 0
    assert len(titles(developer.get(DASHBOARD))) == 2


def test_an_invalid_dismissal_shows_an_error(developer, project):
    ingest_report(project, report(vulnerability("a", cve=None, identifiers=None)))

    response = developer.send(f"{finding_page()}/dismiss", dismissal_reason="", comment="x" * 50_001)

    assert response.status_code == 422
    assert "too long" in response.text
    assert db.session.query(Feedback).count() == 0


def test_an_issue_is_created_from_a_finding(developer, project):
    ingest_report(project, report(vulnerability("a")))

    response = developer.send(f"{finding_page()}/issue")
    page = developer.get(response.location).text

    assert (response.status_code, db.session.query(Issue).one().title) == (302, "Investigate vulnerability: Finding a")
    assert ("View issue #1" in page, "Create issue" in page) == (True, False)
    assert '<a href="/acme/shop/-/issues/1">#1</a>' in developer.get(DASHBOARD).text


def test_issues_cannot_be_created_if_issues_are_disabled(developer, project):
    ingest_report(project, report(vulnerability("a")))
    db.session.merge(project).issues_access_level = DISABLED
    db.session.commit()

    assert "Create issue" not in developer.get(finding_page()).text
    assert developer.send(f"{finding_page()}/issue").status_code == 403


def test_a_finding_of_another_project_is_not_found(developer, project, people):
    assert developer.get("/acme/shop/-/security/findings/999").status_code == 404


def upload(visitor, raw, **fields):
    form = {"csrf_token": visitor.csrf_token(), "report_type": "sast", "ref": "", "sha": ""} | fields
    return visitor.open("POST", UPLOAD, data=form | {"file": (io.BytesIO(raw), "r.json")})


def test_a_report_is_uploaded(developer, project):
    response = upload(developer, orjson.dumps(report(vulnerability("a"))), ref="feature", sha="ab" * 20)

    stored = db.session.query(Pipeline).one()
    assert (response.status_code, response.location) == (302, f"{DASHBOARD}?pipeline_id={stored.id}")
    assert (stored.ref, stored.sha) == ("feature", "ab" * 20)
    assert titles(developer.get(response.location)) == ["Finding a"]


@pytest.mark.parametrize(
    ("raw", "fields", "message"),
    [
        (b"{", {}, "JSON parsing failed"),
        (b'{"vulnerabilities":[{}]}', {}, "/vulnerabilities/0 has no message, no name and no identifiers"),
        (b"{}", {"sha": "nonsense"}, "Commit is invalid"),
        (b"{}", {"report_type": "lint"}, "Not a valid choice"),
    ],
)
def test_a_refused_report_shows_the_error_on_the_form(raw, fields, message, developer, project):
    response = upload(developer, raw, **fields)

    assert (response.status_code, message in html.unescape(response.text)) == (422, True)
    assert db.session.query(Pipeline).count() == 0


def test_a_form_without_a_file_shows_an_error(developer, project):
    response = developer.send(UPLOAD, report_type="sast", ref="", sha="")

    assert (response.status_code, "Report can&#39;t be blank" in response.text) == (422, True)


def test_security_is_in_the_navigation_of_permitted_users(visit, project):
    assert [DASHBOARD in visit(person).get("/acme/shop").text for person in (DEV, RITA)] == [True, False]


def test_the_navigation_marks_the_current_page(developer, project):
    ingest_report(project, report(vulnerability("a")))

    assert f'href="{DASHBOARD}" aria-current="page"' in developer.get(finding_page()).text


def test_feedback_with_a_session_needs_the_form_token(developer, project):
    ingest_report(project, report(vulnerability("a")))
    fields = {
        f"vulnerability_feedback[{name}]": value
        for name, value in {
            "feedback_type": "dismissal",
            "category": "sast",
            "project_fingerprint": "ab" * 20,
        }.items()
    }
    path = "/acme/shop/-/vulnerability_feedback"

    without = developer.open("POST", path, data=fields)
    response = developer.send(path, **fields)

    assert (without.status_code, response.status_code, response.json["author"]["username"]) == (400, 201, "dev")


UNEXPECTED_LOCATION = {
    "file": {"a": 1},
    "start_line": ["3"],
    "dependency": {"package": {"name": {"z": 1}}, "version": True},
}
UNEXPECTED_DETAILS = {
    "list": {"name": "List", "type": "list", "items": {"seven": 7}},
    "table": {"name": "Table", "type": "table", "header": {"eight": 8}, "rows": [{"nine": 9}, [10]]},
    "code": {"name": "Code", "type": "code", "value": ["eleven"]},
    "url": {"name": "Address", "type": "url", "href": {"twelve": 12}},
    "file": {"name": "File", "type": "file-location", "file_name": "f.c"},
    "nothing": {"name": "Nothing", "type": "url"},
    **{
        f"bare {kind}": {"type": kind}
        for kind in ("text", "code", "commit", "diff", "markdown", "module-location", "list")
    },
    "named": {"name": {"thirteen": 13}, "description": ["fourteen"], "type": "text", "value": None},
}


def test_unexpected_values_are_shown_as_json(developer, project):
    """Values of unexpected types appear as the JSON of the report, not as Python literals."""
    entry = vulnerability(
        "a",
        location=UNEXPECTED_LOCATION,
        details=UNEXPECTED_DETAILS,
        links=[{"url": None}, {}],
        identifiers=[{}, {"a": 1}],
    )
    ingest_report(project, report(entry))

    for page in (html.unescape(developer.get(address).text) for address in (finding_page(), DASHBOARD)):
        assert "{'" not in page
        assert "['" not in page
        assert ">None<" not in page.replace('class="long">None<', "")
    shown = html.unescape(developer.get(finding_page()).text)
    for part in (
        '{"a":1}',
        '"seven"',
        '"eight"',
        '"nine"',
        ">10<",
        '"eleven"',
        '"twelve"',
        "<code>f.c</code>",
        "thirteen",
        "fourteen",
    ):
        assert part in shown, part


def test_an_unknown_pipeline_is_not_found(developer, project):
    ingest_report(project, report(vulnerability()))

    assert developer.get(f"{DASHBOARD}?pipeline_id=999999").status_code == 404


def test_a_page_past_the_end_shows_the_last_page(developer, project):
    ingest_report(project, report(vulnerability()))

    page = developer.get(f"{DASHBOARD}?page=99").text

    assert page.count('<td data-label="Severity"') == 1
    assert "found nothing" not in page
