"""Lists inside one entry of a report: bounded, or read in linear time, in every format."""

from __future__ import annotations

import io
import json
import time

import pytest

from project_service.areas.vulnerabilities.formats.detection import format_of
from project_service.areas.vulnerabilities.formats.documents import report_json
from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.areas.vulnerabilities.formats.documents.splitting import Document
from project_service.areas.vulnerabilities.formats.gitlab.reports import open_report
from project_service.areas.vulnerabilities.formats.identifying import MAX_IDENTIFIERS
from project_service.areas.vulnerabilities.formats.shapes import MAX_AFFECTED, MAX_LINKS, Options, Reading
from project_service.areas.vulnerabilities.ingestion.gathering import gathered
from project_service.areas.vulnerabilities.ingestion.ingestion import ROW

DATA = 1 + ROW.index("data")  # after the index of the part
MANY = 4_000
LONG = "A long text. " * 80_000  # 1 MB
IDS = [f"CVE-2024-{number}" for number in range(MANY)]
URLS = [f"https://example.org/{number}" for number in range(MANY)]
REFERENCES = [{"id": one, "url": url} for one, url in zip(IDS, URLS, strict=True)]
SARIF = {"version": "2.1.0"}


def sarif(rule=None, results=(), **run):
    driver = {"name": "x", "rules": [{"id": "r", **(rule or {})}]}
    return SARIF | {"runs": [{"tool": {"driver": driver}, "results": list(results), **run}]}


def cyclonedx(*vulnerabilities, **top):
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "vulnerabilities": list(vulnerabilities), **top}


def npm(**advisory):
    return {"advisories": {"1": {"id": 1, "module_name": "a", "severity": "high", **advisory}}, "metadata": {}}


def osv(package):
    return {"results": [{"source": {"path": "a"}, "packages": [{"package": {"name": "a"}, **package}]}]}


LOCATION = {"physicalLocation": {"artifactLocation": {"uri": "a.py"}, "region": {"startLine": 1}}}
STEPS = [{"threadFlows": [{"locations": [{"location": LOCATION}] * MANY}]}]
PROPERTIES = {"tags": [f"cwe-{number}" for number in range(MANY)], "cwe": IDS}
# the document, and the most findings that it may become
DOCUMENTS = {
    "affects": (cyclonedx({"id": "CVE-1", "affects": [{"ref": f"c{n}"} for n in range(50 * MANY)]}), MAX_AFFECTED),
    "the same component": (cyclonedx({"id": "CVE-1", "affects": [{"ref": "c"}] * 100_000}), 1),
    "affects times lists": (
        cyclonedx(
            {
                "id": "CVE-1",
                "description": LONG,
                "detail": LONG,
                "references": REFERENCES,
                "advisories": REFERENCES,
                "cwes": list(range(1, MANY)),
                "ratings": [{"severity": "unknown"}] * MANY,
                "affects": [{"ref": f"c{n}"} for n in range(200)],
            }
        ),
        200,
    ),
    "nested components": (
        cyclonedx(
            {"id": "CVE-1", "affects": [{"ref": "c"}]},
            components=[{"name": "a", "components": [{"name": "b", "licenses": [{"expression": "MIT"}] * MANY}] * 20}]
            * 3,
        ),
        1,
    ),
    "results of a large rule": (
        sarif(
            {"help": {"text": LONG}, "fullDescription": {"text": LONG}, "properties": PROPERTIES},
            [{"ruleId": "r", "message": {"text": f"m{n}"}, "properties": {"a": 1}} for n in range(200)],
        ),
        200,
    ),
    "arguments of a message": (
        sarif(
            {"messageStrings": {"m": {"text": "{0}" * 300_000}}},
            [{"ruleId": "r", "message": {"id": "m", "arguments": [LONG]}}] * 20,
        ),
        20,
    ),
    "locations times flows": (
        sarif(
            None,
            [
                {
                    "ruleId": "r",
                    "message": {"text": "m"},
                    "locations": [LOCATION] * MANY,
                    "relatedLocations": [LOCATION] * MANY,
                    "codeFlows": STEPS,
                    "fixes": [{"description": {"text": "f"}}] * MANY,
                    "suppressions": [{"kind": "inSource"}] * MANY,
                    "taxa": [{"id": "1", "toolComponent": {"name": "CWE"}}] * MANY,
                    "partialFingerprints": {f"p{n}": "x" for n in range(MANY)},
                    "properties": PROPERTIES,
                }
            ],
        ),
        100,
    ),
    "groups of one advisory": (
        osv(
            {
                "groups": [{"ids": ["A"], "aliases": IDS[:100]}] * 1_000,
                "vulnerabilities": [
                    {
                        "id": "A",
                        "details": LONG,
                        "references": REFERENCES,
                        "affected": [{"database_specific": {"cwes": [{"cweId": "CWE-1"}] * 50}}] * 50,
                    }
                ],
            }
        ),
        1_000,
    ),
    "groups and advisories": (
        osv({"groups": [{"ids": [one]} for one in IDS], "vulnerabilities": [{"id": one} for one in IDS]}),
        MANY,
    ),
    "versions times lists": (
        npm(findings=[{"version": str(n)} for n in range(200)], cves=IDS, cwe=IDS, overview=LONG),
        200,
    ),
    "aliases": (
        {"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "P", "aliases": IDS, "fix_versions": IDS}]}]},
        1,
    ),
    "related": (
        {
            "matches": [
                {
                    "vulnerability": {"id": "CVE-1", "urls": URLS, "fix": {"versions": IDS}},
                    "relatedVulnerabilities": REFERENCES,
                    "artifact": {"name": "a", "locations": [{"path": "/a"}] * MANY},
                }
            ]
        },
        1,
    ),
    "references": (
        {
            "SchemaVersion": 2,
            "Results": [
                {"Target": "a", "Vulnerabilities": [{"VulnerabilityID": "C", "PkgName": "a", "References": URLS}]}
            ],
        },
        1,
    ),
    "lines": (
        {
            "metrics": {},
            "generated_at": "x",
            "results": [
                {"test_id": "B1", "issue_text": LONG, "line_number": 1, "line_range": [1] * MANY, "code": LONG}
            ],
        },
        1,
    ),
    "names": (
        {"report_meta": {}, "vulnerabilities": [{"package_name": "a", "vulnerability_id": "1", "CVE": IDS}]},
        1,
    ),
}


def findings_of(document, tmp_path):
    top = Document(io.BytesIO(json.dumps(document).encode())).top
    reading = Reading(Options())
    with gathered(format_of(top, None).reader(top, reading), reading, tmp_path) as gathering:
        return [row[DATA] for row in gathering.rows(1)], reading


@pytest.mark.parametrize("name", DOCUMENTS)
def test_lists_inside_an_entry_are_bounded(name, tmp_path):
    document, most = DOCUMENTS[name]
    start = time.process_time()

    findings, _ = findings_of(document, tmp_path)

    assert 0 < len(findings) <= most
    assert max(len(finding["identifiers"]) for finding in findings) <= MAX_IDENTIFIERS
    assert max(len(finding["links"]) for finding in findings) <= MAX_LINKS
    assert time.process_time() - start < 5  # a product of two of the lists takes minutes


def test_affected_components_above_the_limit_are_left_out_visibly(tmp_path):
    document = cyclonedx({"id": "CVE-1", "affects": [{"ref": f"c{n}"} for n in range(MAX_AFFECTED + 7)]})
    top = Document(io.BytesIO(json.dumps(document).encode())).top
    reading = Reading(Options())

    with gathered(format_of(top, None).reader(top, reading), reading, tmp_path) as gathering:
        (group,) = gathering.groups

    assert (group.left, group.complete) == ({"limit": 7}, False)
    assert reading.warnings["over_limit"]["pointer"] == "/vulnerabilities/0"


def test_a_report_whose_findings_repeat_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(report_json, "MAX_SPOOL_BYTES", 1 << 20)
    results = [{"ruleId": "r", "message": {"text": f"m{n}"}} for n in range(100)]

    with pytest.raises(BrokenReport, match="larger than 1 MB together"):
        findings_of(sarif({"help": {"text": LONG}}, results), tmp_path)


def test_instances_of_an_alert_share_their_texts_and_are_bounded(tmp_path):
    alert = {"name": "a", "pluginid": "1", "desc": LONG, "reference": "<p>x</p>" * MANY}
    start = time.process_time()

    def read(count):
        document = {"site": [{"@name": "h", "alerts": [alert | {"instances": [{"uri": "h/a"}] * count}]}]}
        with open_report(io.BytesIO(json.dumps(document).encode()), "dast", tmp_path) as report:
            return list(report.vulnerabilities)

    found = read(10_000)
    assert (len(found), found[0]["description"] is found[-1]["description"]) == (10_000, True)
    assert len(found[0]["description"]) <= 50_000
    with pytest.raises(BrokenReport, match="has more than 10000 instances"):
        read(10_001)
    assert time.process_time() - start < 5
