"""Sample reports give the findings that their description lists."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from project_service.areas.vulnerabilities.fingerprints import fingerprint
from tests.support import sample_data
from tests.support.sample_data import DEV
from tests.support.security_reports import REPORTS, findings, ingest

README = REPORTS / "README.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="the sample reports are missing")
SECTION = re.compile(r"^### (\S+\.json) \(`(\w+)`\)\n\n(.*?)\n\n", re.MULTILINE | re.DOTALL)
CELLS = re.compile(r"\s*\|\s*")
TEXT = README.read_text() if README.exists() else ""
EXPECTED = {name: (kind, rows.splitlines()[2:]) for name, kind, rows in SECTION.findall(TEXT + "\n\n")}
FILTERS = re.findall(r"^\| `([a-z_=&,]+)` \| (\d+) \|$", TEXT, re.MULTILINE)


@pytest.fixture
def first_project(people):
    """The project for which the description gives identities."""
    created = sample_data.make_project("shop", sample_data.make_group("acme"), id=1)
    sample_data.add_member(created, people[DEV], sample_data.ROLES[DEV])
    return created


def expected_row(row):
    """The values of one row of the description."""
    cells = [cell.replace("\\|", "|") for cell in CELLS.split(row.strip("| "))]
    _, severity, confidence, name, scanner, identifier, place, project_fingerprint, uuid = cells
    return severity, confidence, name, scanner, identifier, place, project_fingerprint.strip("`"), uuid.strip("`")


def actual_row(finding):
    first = finding["identifiers"][0]
    return (
        finding["severity"],
        finding["confidence"],
        finding["name"],
        finding["scanner"]["external_id"],
        f"{first['external_type']}:{first['external_id']}",
        finding["project_fingerprint"],
        finding["uuid"],
    )


def test_the_readme_of_the_data_is_parsed():
    assert (len(EXPECTED), len(FILTERS)) == (7, 10)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_report_gives_its_findings_in_order(name, as_, first_project):
    kind, rows = EXPECTED[name]
    dev = as_(DEV)

    ingest(dev, first_project, (REPORTS / name).read_bytes(), kind)
    listed = dev.get(findings(first_project)).json

    expected = [expected_row(row) for row in rows]
    assert [actual_row(finding) for finding in listed] == [(*row[:5], *row[6:]) for row in expected]
    assert {finding["report_type"] for finding in listed} == {kind}


def test_all_sample_reports_fit_in_one_pipeline(as_, first_project):
    dev, pipeline = as_(DEV), None
    for name, (kind, _) in EXPECTED.items():
        fields = {"pipeline_id": pipeline} if pipeline else {}
        pipeline = ingest(dev, first_project, (REPORTS / name).read_bytes(), kind, **fields)

    listed = dev.get(findings(first_project)).json

    assert len(listed) == 29
    severities = {"critical": 1, "high": 10, "medium": 7, "low": 9, "unknown": 2}
    assert Counter(finding["severity"] for finding in listed) == severities
    assert len({finding["project_fingerprint"] for finding in listed}) == 22
    for query, count in FILTERS:
        assert len(dev.get(findings(first_project, f"scope=all&per_page=100&{query}")).json) == int(count), query


def test_a_sample_report_with_duplicates_gives_two_findings_with_remediations(as_, first_project):
    name = "gl-dependency-scanning-report-14.0.2-remediations.json"
    dev = as_(DEV)

    ingest(dev, first_project, (REPORTS / name).read_bytes(), "dependency_scanning")
    first, second = dev.get(findings(first_project)).json

    assert first["details"].keys() >= {"commit"} or first["details"]
    assert second["details"] == {}
    assert [len(one["remediations"]) for one in (first, second)] == [1, 1]
    assert second["remediations"][0]["summary"] == "this fixes CVE"
    assert first["project_fingerprint"] == fingerprint("")


def test_the_worked_example_of_the_reference_gives_its_finding(as_, first_project):
    dev = as_(DEV)
    sha = "4a1f" * 10
    ingest(dev, first_project, (REPORTS / "gl-sast-report-3.0.0.json").read_bytes(), "sast", sha=sha)

    found = dev.get(findings(first_project, "")).json[0]

    path = "/acme/shop/-/vulnerability_feedback"
    others = {"description", "identifiers", "tracked_id", "first_seen_at", "last_seen_at", "category"}
    assert {name: found[name] for name in found if name not in others} == {
        "id": None,
        "report_type": "sast",
        "name": "Servlet reflected cross site scripting vulnerability",
        "severity": "high",
        "confidence": "medium",
        "scanner": {"external_id": "find_sec_bugs", "name": "Find Security Bugs"},
        "project_fingerprint": "cd4f0b2d07cf4b2235ea8df6f5cdc92107a47f95",
        "uuid": "23697da8-a042-54bc-aa36-45a26e6712b8",
        "create_vulnerability_feedback_issue_path": path,
        "create_vulnerability_feedback_merge_request_path": path,
        "create_vulnerability_feedback_dismissal_path": path,
        "project": {"id": 1, "name": "shop", "full_path": "/acme/shop", "full_name": "Acme / shop"},
        "dismissal_feedback": None,
        "issue_feedback": None,
        "merge_request_feedback": None,
        "links": [],
        "location": {
            "file": "src/main/java/servlets/module/lesson/XssLesson.java",
            "start_line": 96,
            "end_line": 96,
            "class": "servlets.module.lesson.XssLesson",
            "method": "doPost",
        },
        "remediations": None,
        "solution": None,
        "evidence": None,
        "evidence_source": None,
        "supporting_messages": None,
        "request": None,
        "response": None,
        "assets": [],
        "details": {},
        "state": "detected",
        "scan": {
            "type": "sast",
            "status": "success",
            "start_time": "2020-12-21T17:33:58",
            "end_time": "2020-12-21T17:38:43",
        },
        "blob_path": f"/acme/shop/-/blob/{sha}/src/main/java/servlets/module/lesson/XssLesson.java#L96",
    }
    assert found["description"].startswith("HTTP parameter written to Servlet output in")
    assert [one["external_type"] for one in found["identifiers"]] == ["find_sec_bugs_type", "cwe"]
