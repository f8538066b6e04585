"""Uploads in the formats of scanners: parameters, pipelines, identities and dismissals by the report."""

from __future__ import annotations

import html
import io

import orjson
import pytest

from project_service.areas.vulnerabilities.models import Pipeline, SecurityReport
from project_service.kit.db.session import db
from tests.areas.vulnerabilities.findings.test_vulnerability_feedback import ADDRESS, send_feedback
from tests.support.sample_data import DEV
from tests.support.security_reports import bill, findings, ingest, report, send, vulnerability


@pytest.fixture
def dev(as_, project):
    return as_(DEV)


def result(rule="R", line=3, **fields):
    region = {"startLine": line, **fields.pop("region", {})}
    location = {"physicalLocation": {"artifactLocation": {"uri": fields.pop("uri", "a.py")}, "region": region}}
    return {"ruleId": rule, "message": {"text": f"Found by {rule}."}, "locations": [location]} | fields


def sarif(*results, scanner="Scan", **run):
    tool = {"driver": {"name": scanner}}
    return {"version": "2.1.0", "runs": [{"tool": tool, "results": list(results), **run}]}


def listed(client, project, query="scope=all&per_page=100"):
    return client.get(findings(project, query)).json


def names(client, project):
    return sorted(one["identifiers"][0]["external_id"] for one in listed(client, project))


def test_a_dry_run_returns_the_summary_and_stores_nothing(dev, project):
    response = send(dev, project, sarif(result(), result()), "", dry_run="true")

    assert (response.status_code, response.json["pipeline_id"]) == (200, None)
    assert (response.json["found"], response.json["merged"], response.json["dropped"]) == (2, 1, 1)
    assert (db.session.query(Pipeline).count(), db.session.query(SecurityReport).count()) == (0, 0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ref": "main", "branch": "other"}, {"branch": ["is not the ref"]}),
        ({"sha": "ab" * 20, "commit": "cd" * 20}, {"commit": ["is not the sha"]}),
        ({"category": "x" * 256}, {"category": ["is invalid"]}),
        ({"source_root": "src"}, {"source_root": ["is not absolute"]}),
        ({"source_root": "a\nb"}, {"source_root": ["is invalid"]}),
    ],
)
def test_invalid_parameters_are_refused(fields, message, dev, project):
    response = send(dev, project, sarif(), "", **fields)

    assert (response.status_code, response.json) == (400, {"message": message})


def test_branch_and_commit_are_aliases(dev, project):
    pipeline = ingest(dev, project, sarif(), "", branch="feature", commit="AB" * 20)

    stored = db.session.get_one(Pipeline, pipeline)
    assert (stored.ref, stored.sha) == ("feature", "ab" * 20)


@pytest.mark.both_databases
def test_scanners_with_long_names_are_accepted(dev, project):
    name = "".join(chr(0x4E00 + number) for number in range(5_000))
    ingest(dev, project, sarif(result(), scanner=f"{name}abc{'d' * 5_000}"), "")
    ingest(dev, project, report(vulnerability(scanner={"id": name, "name": name})), "sast")

    assert len(listed(dev, project)) == 1


def test_a_given_type_applies_to_all_results(dev, project):
    response = send(dev, project, sarif(result(), scanner="gitleaks"), "dast")

    assert (response.json["report_type"], {one["report_type"] for one in listed(dev, project)}) == ("dast", {"dast"})


@pytest.mark.both_databases
def test_a_repeated_scan_replaces_all_types_of_its_scanner_and_category(dev, project):
    commit = {"commit": "ab" * 20}
    found = {"VulnerabilityID": "CVE-2099-1", "PkgName": "p", "Severity": "LOW"}
    trivy = {
        "SchemaVersion": 2,
        "Results": [{"Target": "lock", "Vulnerabilities": [found], "Secrets": [{"RuleID": "key"}]}],
    }
    first = ingest(dev, project, trivy, "", **commit)
    assert ingest(dev, project, sarif(result("S")), "", **commit) == first
    assert ingest(dev, project, sarif(result("T", uri="b.py")), "", category="web", **commit) == first
    assert ingest(dev, project, report(vulnerability("g")), "sast", **commit) == first
    assert names(dev, project) == ["CVE-2099-1", "S", "T", "g", "key"]

    second = ingest(dev, project, {"SchemaVersion": 2, "Results": []}, "", **commit)
    assert (second != first, names(dev, project)) == (True, ["S", "T", "g"])
    ingest(dev, project, sarif(), "", category="web", **commit)
    assert names(dev, project) == ["S", "g"]


@pytest.mark.both_databases
def test_findings_with_one_key_are_numbered_and_duplicates_of_other_reports_dropped(dev, project):
    same = {"region": {"snippet": {"text": "eval(x)"}}}
    response = send(dev, project, sarif(result(line=9, **same), result(line=2, **same), result(line=2, **same)), "")

    assert (response.json["merged"], response.json["dropped"]) == (2, 1)
    first = {one["location"]["start_line"]: one["uuid"] for one in listed(dev, project)}
    assert len(set(first.values())) == 2

    ingest(dev, project, sarif(result(line=12, **same), result(line=5, **same)), "")
    moved = {one["location"]["start_line"]: one["uuid"] for one in listed(dev, project)}
    assert [moved[5], moved[12]] == [first[2], first[9]]

    other = send(dev, project, sarif(result("R", line=5)), "", category="b", pipeline_id=response.json["pipeline_id"])
    again = send(dev, project, sarif(result("R", line=5)), "", category="c", pipeline_id=response.json["pipeline_id"])
    assert [(one.json["merged"], one.json["dropped"]) for one in (other, again)] == [(1, 0), (0, 1)]


def test_cwe_classes_and_other_versions_do_not_make_duplicates(dev, project):
    tags = {"properties": {"tags": ["cwe-79", "OWASP-A03:2021 - Injection"]}}
    assert send(dev, project, sarif(result("A", **tags), result("B", **tags)), "").json["merged"] == 2

    bom = bill("acme-a")
    other = {"bom-ref": "other", "type": "library", "name": "acme-a", "version": "2.0"}
    both = [{"id": "CVE-2099-1", "affects": [{"ref": "acme-a"}, {"ref": "other"}]}]
    document = bom | {"components": [*bom["components"], other], "vulnerabilities": both}
    assert send(dev, project, document, "").json["merged"] == 2


@pytest.mark.both_databases
def test_a_dismissal_by_the_report_follows_the_report(dev, project):
    dismissed = sarif(result("A", suppressions=[{"kind": "inSource", "justification": "known"}]), result("B"))
    ingest(dev, project, dismissed, "")
    (first,) = [one for one in listed(dev, project) if one["state"] == "dismissed"]
    assert [one["identifiers"][0]["external_id"] for one in listed(dev, project, "")] == ["B"]
    assert (first["suppression"]["justification"], first["dismissal_feedback"]) == ("known", None)

    feedback = {
        "feedback_type": "dismissal",
        "category": "sast",
        "project_fingerprint": first["project_fingerprint"],
        "finding_uuid": first["uuid"],
    }
    created = send_feedback(dev, {"vulnerability_feedback": feedback})
    assert created.status_code == 201, created.text
    assert send_feedback(dev, None, f"{ADDRESS}/{created.json['id']}", "DELETE").status_code == 204
    assert [one["state"] for one in listed(dev, project) if one["uuid"] == first["uuid"]] == ["dismissed"]

    ingest(dev, project, sarif(result("A"), result("B")), "")
    assert {one["state"] for one in listed(dev, project)} == {"detected"}


def test_the_page_shows_the_detected_format(visit, project):
    developer = visit(DEV)
    path = f"/{project.full_path}/-/security/reports/new"
    form = {"csrf_token": developer.csrf_token(), "report_type": "", "ref": "", "sha": "", "category": "nightly"}
    document = sarif(result(kind="pass"), result("B"), result("C", codeFlows=[]), scanner="Some <b>Scan</b>")

    response = developer.open("POST", path, data=form | {"file": (io.BytesIO(orjson.dumps(document)), "r")})

    shown = developer.get(response.location).text
    summary = "Recognised as SARIF 2.1.0 of Some <b>Scan</b>: 3 entries read, 2 listed, 1 left out (pass 1)."
    assert summary in html.unescape(shown)
    assert "Some <b>" not in shown
    refused = developer.open("POST", path, data=form | {"file": (io.BytesIO(b'{"Issues":[]}'), "r")})
    assert (refused.status_code, "gosec -fmt sarif" in refused.text) == (422, True)


def test_a_finding_page_shows_markdown_code_flow_and_dismissal(visit, dev, project):
    flow = [{"threadFlows": [{"locations": [{"location": {"message": {"text": "in"}, **result()["locations"][0]}}]}]}]
    document = sarif(
        result(
            message={"text": "Plain.", "markdown": "**Bold** <script>alert(1)</script>"},
            codeFlows=flow,
            fixes=[{"description": {"text": "Mend it."}}],
            suppressions=[{"kind": "external", "justification": "False positive: it is safe."}],
        ),
        automationDetails={"id": "nightly/1"},
    )
    ingest(dev, project, document, "")
    developer = visit(DEV)
    page = developer.get(f"/{project.full_path}/-/security/dashboard?scope=all").text
    (address,) = {part.split('"')[0] for part in page.split(f"/{project.full_path}/-/security/findings/")[1:]}

    shown = developer.get(f"/{project.full_path}/-/security/findings/{address}").text

    assert "<strong>Bold</strong>" in shown
    assert "<script>alert" not in shown
    for expected in (
        "Code flow",
        "a.py:3",
        "Mend it.",
        "nightly",
        "The report of the scanner dismissed this: False positive",
    ):
        assert expected in shown
