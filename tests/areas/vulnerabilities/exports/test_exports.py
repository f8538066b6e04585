"""Exports of tracked findings: CSV, SARIF that can be uploaded again, CycloneDX with analyses."""

from __future__ import annotations

import csv
import io
from collections import Counter

import orjson
import pytest

from project_service.areas.vulnerabilities.exports import rows as export_rows
from tests.areas.vulnerabilities.tracking.test_tracking import (
    SAMPLES,
    feedback_on,
    needs_samples,
    result,
    sarif,
    send_feedback,
    tracked,
    upload,
)
from tests.support import sample_data
from tests.support.sample_data import DEV, ROLES
from tests.support.security_reports import bill, findings, report, send, vulnerability


@pytest.fixture
def dev(as_, project):
    return as_(DEV)


@pytest.fixture
def other_project(people, group, project):
    made = sample_data.make_project("till", group)
    sample_data.add_member(made, people[DEV], ROLES[DEV])
    return made


def export(client, project, export_format, query=""):
    response = client.get(f"/projects/{project.id}/tracked_findings/export?format={export_format}&{query}")
    assert response.status_code == 200, response.json
    return response


def rows_of(response):
    lines = csv.reader(io.StringIO(response.text, newline=""))
    header = next(lines)
    return [dict(zip(header, line, strict=True)) for line in lines]


def counts(client, project):
    listed = tracked(client, project, "per_page=100&state=detected,dismissed,resolved")
    return Counter((one["severity"], one["confidence"], one["report_type"], one["state"]) for one in listed)


def dismiss(client, project, name, **fields):
    (one,) = (one for one in client.get(findings(project)).json if one["name"] == name)
    body = feedback_on(one, "dismissal")
    body["vulnerability_feedback"] |= fields
    assert send_feedback(client, body).status_code == 201


def test_a_csv_file_has_a_line_for_each_finding(dev, project):
    upload(dev, project, sarif(result("A", properties={"tags": ["cwe-79"]}), result("B")), category="api")
    dismiss(dev, project, "Found by B.", comment="no\ncare", dismissal_reason="used_in_tests")

    response = export(dev, project, "csv")
    first, second = rows_of(response)

    assert response.content_type == "text/csv; charset=utf-8"
    assert response.headers["Content-Disposition"] == 'attachment; filename="shop-findings.csv"'
    assert response.text.count("\r\n") == 3
    assert (first["Status"], first["CWE"], first["Location"]) == ("detected", "CWE-79", "a.py:3")
    assert (second["Status"], second["Comments"], second["Dismissal Reason"]) == (
        "dismissed",
        "no care",
        "used_in_tests",
    )
    assert (first["Activity"], first["Category"], first["Full Path"]) == ("false", "api", project.full_path)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", " ="])
def test_cells_of_csv_are_no_formulas(start, dev, project):
    upload(dev, project, report(vulnerability(name=f"{start}cmd()", description=f"{start}cmd()")), "sast")

    (row,) = rows_of(export(dev, project, "csv"))

    assert row["Vulnerability"].startswith("'")
    assert row["Details"].startswith("'")


@pytest.mark.both_databases
def test_an_export_is_filtered_and_has_open_findings_by_default(dev, project):
    for rules in ("ABC", "AB"):
        upload(dev, project, sarif(*(result(rule, level={"A": "note"}.get(rule, "error")) for rule in rules)))

    def named(query):
        return [row["Vulnerability"] for row in rows_of(export(dev, project, "csv", query))]

    assert named("") == ["Found by B.", "Found by A."]
    assert named("severity=low") == ["Found by A."]
    assert named("state=resolved,detected") == ["Found by B.", "Found by A.", "Found by C."]
    assert named("branch=other") == []
    refused = dev.get(f"/projects/{project.id}/tracked_findings/export?format=pdf")
    assert (refused.status_code, refused.json) == (400, {"error": "format does not have a valid value"})


@pytest.mark.both_databases
def test_an_export_is_read_in_batches(dev, project, monkeypatch):
    monkeypatch.setattr(export_rows, "BATCH_SIZE", 2)
    upload(dev, project, sarif(*(result(rule, level={"E": "error"}.get(rule, "note")) for rule in "ABCDE")))

    found = [row["Vulnerability"] for row in rows_of(export(dev, project, "csv"))]
    monkeypatch.setattr(export_rows, "BATCH_BYTES", 1)

    assert found == [f"Found by {rule}." for rule in "EABCD"]
    assert [row["Vulnerability"] for row in rows_of(export(dev, project, "csv"))] == found


DAST = {"hostname": "https://shop.example", "path": "/a?b=1", "method": "GET", "param": "b"}
OTHERS = [
    report(
        vulnerability(
            "a", confidence="Experimental", severity="Unknown", location={"file": "/opt/x [1].py", "start_line": 2}
        ),
        vulnerability("b", confidence="Ignore", severity="Info", name="Package: [x](1)", location={"file": "../b%.py"}),
    ),
    report(*(vulnerability("c", location=DAST | {"param": param}) for param in "xy")),
    bill("acme", "other"),
]


def send_everything(client, project):
    upload(client, project, OTHERS[0], "sast")
    upload(client, project, OTHERS[1], "dast")
    upload(client, project, OTHERS[2])
    upload(
        client, project, sarif(result("A"), result("B", code="b()"), result("S", suppressions=[{"kind": "inSource"}]))
    )
    dismiss(client, project, "Found by A.", comment="ok", dismissal_reason="mitigating_control")


@pytest.mark.both_databases
def test_sarif_that_is_uploaded_again_changes_nothing(dev, project):
    send_everything(dev, project)
    before, document = counts(dev, project), export(dev, project, "sarif").data

    again = upload(dev, project, document)

    assert again == (0, 0, sum(before.values()), 0, 0)
    assert counts(dev, project) == before
    assert {run["tool"]["driver"]["name"] for run in orjson.loads(document)["runs"]} >= {"Scan", "CycloneDX"}
    assert upload(dev, project, sarif(result("A"), result("B", line=90, code="b()")))[:4] == (0, 0, 2, 1)


def test_sarif_gives_an_empty_project_the_same_findings(dev, project, other_project):
    send_everything(dev, project)

    upload(dev, other_project, export(dev, project, "sarif").data)

    assert counts(dev, other_project) == counts(dev, project)
    reasons = {one["name"]: one["dismissal_reason"] for one in tracked(dev, other_project, "per_page=100")}
    assert reasons["Found by A."] == "mitigating_control"


@pytest.mark.both_databases
def test_sarif_keeps_the_same_finding_of_several_categories_and_scanners(dev, project, other_project):
    for fields in ({"category": "a"}, {"category": "b"}, {}):
        upload(dev, project, sarif(result("A"), result("B")), **fields)
    upload(dev, project, report(vulnerability("c")), "sast")
    document = export(dev, project, "sarif").data

    first = upload(dev, other_project, document)
    again = upload(dev, other_project, document)

    assert counts(dev, other_project) == counts(dev, project)
    assert (first[0], again[2]) == (7, 7)


def test_sarif_repeats_nothing_in_the_pipeline_that_it_is_of(dev, project):
    pipeline = send(dev, project, sarif(result("A"), result("B")), "").json["pipeline_id"]

    again = send(dev, project, export(dev, project, "sarif").data, "", pipeline_id=pipeline).json

    assert (again["merged"], again["dropped"]) == (0, 2)


@needs_samples
@pytest.mark.parametrize("name", ["semgrep.sarif", "trivy.json", "bandit.json", "every-rule.sarif", "grype.json"])
def test_sarif_of_a_sample_gives_the_same_findings(name, dev, project, other_project):
    upload(dev, project, (SAMPLES / name).read_bytes())

    upload(dev, other_project, export(dev, project, "sarif").data)

    assert counts(dev, other_project) == counts(dev, project)


def test_results_tell_what_is_new_gone_and_dismissed(dev, project):
    for rules in ("AC", "ABCD", "AB"):
        upload(dev, project, sarif(*map(result, rules)))
    dismiss(dev, project, "Found by A.", comment="Only in tests.", dismissal_reason="used_in_tests")

    (run,) = orjson.loads(export(dev, project, "sarif", "state=detected,dismissed,resolved").data)["runs"]
    results = {one["ruleId"]: one for one in run["results"]}

    assert [results[rule]["baselineState"] for rule in "ABCD"] == ["unchanged", "unchanged", "absent", "absent"]
    assert results["A"]["suppressions"][0]["justification"] == "Only in tests."
    assert run["versionControlProvenance"][0]["branch"] == "main"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["A", "B", "C", "D"]


@pytest.mark.parametrize(
    ("reason", "analysis"),
    [
        ("false_positive", {"state": "false_positive"}),
        ("mitigating_control", {"state": "not_affected", "justification": "protected_by_mitigating_control"}),
        ("acceptable_risk", {"state": "exploitable", "response": ["will_not_fix"]}),
        ("", {"state": "in_triage"}),
    ],
)
def test_cyclonedx_has_the_analysis_of_packages(reason, analysis, dev, project):
    upload(dev, project, sarif(result("A")))
    upload(dev, project, bill("acme", "other"))
    dismiss(dev, project, "CVE-2099-1 in acme 1.0", comment="why", dismissal_reason=reason)

    document = orjson.loads(export(dev, project, "cyclonedx").data)
    first, second = sorted(document["vulnerabilities"], key=lambda one: one["id"])

    assert (first["id"], first["analysis"]) == ("CVE-2099-1", analysis | {"detail": "why"})
    assert second["analysis"] == {"state": "in_triage"}
    components = {one["bom-ref"]: one["name"] for one in document["components"]}
    assert [components[one["affects"][0]["ref"]] for one in (first, second)] == ["acme", "other"]
