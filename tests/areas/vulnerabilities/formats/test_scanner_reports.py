"""Reports of real scanners give the findings that their description lists."""

from __future__ import annotations

import re
from collections import Counter

import orjson
import pytest

from tests.support import sample_data
from tests.support.sample_data import DEV
from tests.support.security_reports import DATA, findings, send

REPORTS = DATA / "scanner-reports"
README = REPORTS / "README.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="the reports of scanners are missing")
TEXT = README.read_text() if README.exists() else ""
CELL = re.compile(r"\s*\|\s*")
ROWS = re.findall(r"^\| (\S+\.(?:json|sarif))(?: ✎)? \| (\d.*) \|$", TEXT, re.MULTILINE)
COUNTED = {name: CELL.split(cells) for name, cells in ROWS if len(CELL.split(cells)) == 9}
SOURCE_ROOTS = {"eslint.sarif": "/builds/acme/shop"}
VERSIONS = {
    **dict.fromkeys((name for name in COUNTED if name.endswith(".sarif")), "2.1.0"),
    "cyclonedx-inventory.json": "1.6",
    "cyclonedx-vulnerabilities.json": "1.5",
    "npm-audit.json": "2",
    "trivy.json": "2",
}
COMPONENTS = {"cyclonedx-inventory.json": 4, "cyclonedx-vulnerabilities.json": 5}


@pytest.fixture
def first_project(people):
    """The project for which the description gives identities."""
    created = sample_data.make_project("store", sample_data.make_group("acme"), id=1)
    sample_data.add_member(created, people[DEV], sample_data.ROLES[DEV])
    return created


def counts(cell):
    """``high 2, low 1`` as a dictionary; a dash means no counts."""
    return {} if cell == "–" else {part.rpartition(" ")[0]: int(part.rpartition(" ")[2]) for part in cell.split(", ")}


def upload(client, project, name, **fields):
    """Send a file without its type; returns the response and the listed findings."""
    fields = {"source_root": SOURCE_ROOTS[name]} | fields if name in SOURCE_ROOTS else fields
    response = send(client, project, (REPORTS / name).read_bytes(), "", **fields)
    assert response.status_code == 201, response.json
    return response.json, client.get(findings(project)).json


def with_identifier(listed, name):
    """The findings whose first identifier has a value."""
    return [one for one in listed if one["identifiers"][0]["external_id"] == name]


def identifiers_of(finding):
    return [f"{one['external_type']}:{one['external_id']}" for one in finding["identifiers"]]


def lines_of(finding):
    location = finding["location"]
    return location.get("file"), location.get("start_line"), location.get("end_line")


def test_the_readme_of_the_data_is_parsed():
    assert len(COUNTED) == 14


@pytest.mark.parametrize("name", COUNTED)
def test_a_report_gives_the_described_findings(name, as_, first_project):
    found, merged, dropped, left, suppressed, types, severity, confidence, warnings = COUNTED[name]

    response, listed = upload(as_(DEV), first_project, name)

    assert (response["found"], response["merged"], response["dropped"]) == (int(found), int(merged), int(dropped))
    assert response["left"] == {"total": sum(counts(left).values()), "reasons": counts(left)}
    assert response["suppressed"] == int(suppressed) == sum(one["state"] == "dismissed" for one in listed)
    assert Counter(one["report_type"] for one in listed) == counts(types)
    assert Counter(one["severity"] for one in listed) == counts(severity)
    assert Counter(one["confidence"] for one in listed) == counts(confidence)
    assert {one["code"]: one["count"] for one in response["warnings"]} == counts(warnings)
    assert (response["format_version"], response["components"]) == (VERSIONS.get(name), COMPONENTS.get(name, 0))
    assert len(listed) == response["merged"]
    sections = [
        (one["category"], one["complete"], one["found"] - one["merged"] - one["dropped"]) for one in response["reports"]
    ]
    if name != "every-rule.sarif":
        assert sections == [("", name != "cyclonedx-inventory.json", response["left"]["total"])]


def test_absolute_paths_are_reported(as_, first_project):
    response, _ = upload(as_(DEV), first_project, "eslint.sarif", source_root="/other")
    moved = (REPORTS / "eslint.sarif").read_bytes().replace(b"/builds/acme/shop", b"/opt/shop")
    other = send(as_(DEV), first_project, moved, "").json

    assert response["warnings"] == []  # the folder of a runner
    assert [(one["code"], one["count"]) for one in other["warnings"]] == [("absolute_path", 6)]


def test_the_runs_of_a_file_are_distinguished(as_, first_project):
    response, _ = upload(as_(DEV), first_project, "every-rule.sarif")

    runs = [
        (one["scanner"]["external_id"], one["category"], one["found"], one["merged"], one["dropped"], one["complete"])
        for one in response["reports"]
    ]
    assert runs == [
        ("acme-scan", "nightly/backend", 16, 10, 1, False),
        ("acme-licences", "", 0, 0, 0, False),
        ("gitleaks", "", 1, 1, 0, True),
    ]


def test_rules_of_sarif_are_applied(as_, first_project):
    _, listed = upload(as_(DEV), first_project, "every-rule.sarif")

    (first,) = with_identifier(listed, "AS100")
    assert first["name"] == "A query is built from `name` that comes in here."
    assert (first["severity"], first["confidence"]) == ("critical", "high")
    location = {"file": "src/db/query.py", "start_line": 12, "end_line": 12, "method": "db.query.find"}
    assert first["location"] == location
    assert identifiers_of(first) == ["acme-scan_rule_id:AS100", "cwe:89", "owasp:A03:2021"]
    assert first["solution"] == "Give the name as a parameter of the statement."
    assert len(first["details"]["code_flow"]["items"]) == 3
    assert len(first["details"]["related_locations"]["items"]) == 1
    (second,) = with_identifier(listed, "AS200")
    assert (second["severity"], second["confidence"], identifiers_of(second)[1]) == ("medium", "medium", "cwe:79")
    assert lines_of(second) == ("web/café menu.html", 3, 5)
    third = with_identifier(listed, "AS300")
    assert [(one["severity"], one["state"], one["location"].get("start_line")) for one in third] == [
        ("low", "dismissed", 8),
        ("unknown", "detected", None),
        ("info", "detected", None),
    ]
    assert third[0]["suppression"]["dismissal_reason"] == "false_positive"
    assert third[0]["dismissal_feedback"] is None
    (cipher,), (door,) = with_identifier(listed, "AS400"), with_identifier(listed, "AS500")
    assert (cipher["severity"], lines_of(cipher), identifiers_of(cipher)[1]) == (
        "high",
        ("src/tls.py", 21, 21),
        "cwe:327",
    )
    assert (door["severity"], door["location"]["file"], door["state"]) == ("high", "src/deploy/door.yml", "detected")
    both = with_identifier(listed, "AC1/md5")
    assert [(one["severity"], identifiers_of(one)[1], one["identifiers"][0]["url"]) for one in both] == [
        ("high", "cwe:328", "https://scan.example.com/AC1")
    ] * 2
    (unknown,), (secret,) = with_identifier(listed, "ZZ9"), with_identifier(listed, "aws-access-token")
    assert (unknown["severity"], unknown["location"]) == ("medium", {})
    assert unknown["name"] == "Unknown rule, with {} and {0} in its text."
    assert (secret["report_type"], lines_of(secret)) == ("secret_detection", (".env", 4, 4))
    shown = orjson.dumps(listed)
    assert b"AKIAEXAMPLE" not in shown
    assert b"somebody@" not in shown


def test_findings_of_semgrep_are_mapped(as_, first_project):
    _, listed = upload(as_(DEV), first_project, "semgrep.sarif")

    (sql,) = with_identifier(listed, "rules.name-into-sql")
    assert (sql["severity"], identifiers_of(sql)[1:]) == ("critical", ["cwe:564", "cwe:89"])
    assert sql["name"] == "Input of `find` reaches a statement."
    shell = {lines_of(one)[1]: one for one in with_identifier(listed, "rules.shell-call")}
    assert (shell[13]["severity"], shell[13]["confidence"]) == ("high", "high")
    assert identifiers_of(shell[13])[-2:] == ["owasp:A01:2017", "owasp:A03:2021"]
    assert shell[13]["scanner"] == {"external_id": "semgrep", "name": "Semgrep OSS", "version": "1.185.0"}
    assert shell[33]["suppression"] == {
        "kind": "inSource",
        "status": None,
        "justification": None,
        "dismissal_reason": "acceptable_risk",
    }


def test_identities_survive_moved_lines(as_, first_project):
    dev = as_(DEV)
    _, before = upload(dev, first_project, "semgrep.sarif")
    _, after = upload(dev, first_project, "semgrep-moved.sarif")

    assert len({one["uuid"] for one in before} & {one["uuid"] for one in after}) == 4


def test_findings_of_ruff_and_eslint_are_mapped(as_, first_project):
    _, listed = upload(as_(DEV), first_project, "ruff.sarif")

    (random,) = with_identifier(listed, "S311")
    assert lines_of(random) == ("src/häuser und straßen.py", 5, 5)
    (password,) = with_identifier(listed, "S105")
    assert password["project_fingerprint"] == "3351bba768512a14c73d2c52ef982250bf408c5c"
    assert password["uuid"] == "c683a824-09cc-5b8e-98c6-fb5a80955894"

    _, listed = upload(as_(DEV), first_project, "eslint.sarif")
    dismissed = [one for one in listed if one["state"] == "dismissed"]
    assert [(identifiers_of(one)[0], lines_of(one)) for one in dismissed] == [
        ("eslint_rule_id:no-eval", ("web/cart.js", 18, 18))
    ]
    assert dismissed[0]["suppression"]["justification"] == "the console is for operators only"


def test_both_formats_of_bandit_have_the_same_findings(as_, first_project):
    dev = as_(DEV)
    _, from_json = upload(dev, first_project, "bandit.json")
    _, from_sarif = upload(dev, first_project, "bandit.sarif")

    assert [one["uuid"] for one in from_json] == [one["uuid"] for one in from_sarif]
    (pickle,) = with_identifier(from_json, "B403")
    assert pickle["project_fingerprint"] == "0dfebd45fbc283dd19675917def97bf09b2e7918"
    assert pickle["uuid"] == "bbdd049e-6ea9-597b-a58c-30701bd0873a"
    (shell,) = with_identifier(from_json, "B602")
    assert shell["name"] == "subprocess call with shell=True identified, security issue."
    assert (lines_of(shell), identifiers_of(shell)) == (("src/app.py", 13, 13), ["bandit_rule_id:B602", "cwe:78"])
    assert shell["scanner"] == {"external_id": "bandit", "name": "Bandit", "version": None}
    assert [with_identifier(found, "B311")[0]["location"]["file"] for found in (from_json, from_sarif)] == [
        "src/häuser und straßen.py"
    ] * 2


def test_both_formats_of_bandit_are_merged_in_a_pipeline(as_, first_project):
    dev = as_(DEV)
    response, _ = upload(dev, first_project, "bandit.json")
    again, listed = upload(dev, first_project, "bandit.sarif", pipeline_id=response["pipeline_id"])

    assert (again["found"], again["merged"], again["dropped"], len(listed)) == (10, 0, 10, 10)


def package_of(finding):
    dependency = finding["location"]["dependency"]
    return dependency["package"]["name"], dependency["version"]


def test_vulnerabilities_of_an_sbom_are_mapped(as_, first_project):
    _, listed = upload(as_(DEV), first_project, "cyclonedx-vulnerabilities.json")

    dates = with_identifier(listed, "CVE-2099-0001")
    assert sorted(package_of(one) for one in dates) == [("acme-date", "1.0.0"), ("acme-date", "2.0.0")]
    assert {(one["severity"], one["location"]["file"]) for one in dates} == {("low", "web/package-lock.json")}
    assert identifiers_of(dates[0])[1:] == ["ghsa:GHSA-aaaa-bbbb-0001", "cwe:400", "cwe:1333"]
    by_identifier = {
        one["identifiers"][0]["external_id"]: (one["severity"], package_of(one), (one.get("suppression") or {}))
        for one in listed
    }
    assert by_identifier["GHSA-aaaa-bbbb-0002"][:2] == ("critical", ("acme-xml", "3.0.1"))
    _, package, suppression = by_identifier["CVE-2099-0003"]
    assert (package[0], suppression["dismissal_reason"]) == ("@acme/http", "mitigating_control")
    assert suppression["justification"] == "The gateway refuses such requests."
    assert (by_identifier["CVE-2099-0004"][0], by_identifier["CVE-2099-0004"][2]["dismissal_reason"]) == (
        "info",
        "false_positive",
    )
    assert by_identifier["ACME-2099-6"][1] == ("shop", None)
    assert identifiers_of(with_identifier(listed, "ACME-2099-6")[0]) == ["acme-advisories_id:ACME-2099-6"]
    assert by_identifier["CVE-2099-0007"][:2] == ("high", ("acme/yaml", "0.9"))
    assert by_identifier["CVE-2099-0008"][1] == ("left-behind", "1.0.0")


def test_findings_of_pip_audit_and_npm_audit_are_mapped(as_, first_project):
    _, listed = upload(as_(DEV), first_project, "pip-audit.json")

    (cookies,) = with_identifier(listed, "PYSEC-2099-1")
    assert identifiers_of(cookies) == ["pysec:PYSEC-2099-1", "cve:CVE-2099-1001", "ghsa:GHSA-aaaa-bbbb-1001"]
    assert cookies["name"] == "CVE-2099-1001 in acme-web 2.2.2"
    assert cookies["solution"] == "Upgrade acme-web to 2.2.5 or 2.3.2."

    _, listed = upload(as_(DEV), first_project, "npm-audit.json")
    by_identifier = {one["identifiers"][0]["external_id"][-4:]: one for one in listed}
    assert [(by_identifier[one]["severity"], package_of(by_identifier[one])) for one in ("2001", "2002", "2003")] == [
        ("high", ("acme-merge", None)),
        ("critical", ("acme-merge", None)),
        ("medium", ("@acme/args", None)),
    ]
    assert identifiers_of(by_identifier["2001"])[1:] == ["cwe:1321"]
    assert identifiers_of(by_identifier["2002"])[1:] == ["cwe:77", "cwe:94"]
    assert by_identifier["2002"]["solution"] == "Upgrade acme-build to 3.0.0. This is a breaking change."
    assert by_identifier["2001"]["project_fingerprint"] == "976ed98be6d61823d23ec69722d617091ba9c018"
    assert by_identifier["2001"]["uuid"] == "1e98f11b-c32e-5a81-9ef2-2dd570815854"


def test_findings_of_trivy_are_mapped(as_, first_project):
    _, listed = upload(as_(DEV), first_project, "trivy.json")

    (library,), (web,) = with_identifier(listed, "CVE-2099-3002"), with_identifier(listed, "CVE-2099-3003")
    assert library["location"] == {
        "image": "registry.example.com:5000/acme/shop:4f1c2d3e",
        "operating_system": "debian 12.8",
        "dependency": {"package": {"name": "libacme1"}, "version": "1.0-2"},
    }
    assert library["solution"] == "Upgrade libacme1 to 1.0-3."
    assert (web["report_type"], web["location"]["file"][:4]) == ("container_scanning", "usr/")
    (user,), (key,) = with_identifier(listed, "DS-0002"), with_identifier(listed, "private-key")
    assert (user["report_type"], lines_of(user), user["solution"]) == (
        "sast",
        ("app/Dockerfile", 3, 5),
        "Add a USER line.",
    )
    assert (key["report_type"], lines_of(key)) == ("secret_detection", ("/app/.env", 1, 3))


def test_findings_of_grype_and_osv_scanner_are_mapped(as_, first_project):
    _, listed = upload(as_(DEV), first_project, "grype.json")

    assert [with_identifier(listed, f"{name}")[0]["severity"] for name in ("CVE-2099-4003", "CVE-2099-4004")] == [
        "info",
        "high",
    ]
    (ignored,) = [one for one in listed if one["state"] == "dismissed"]
    assert identifiers_of(ignored)[0].endswith("4005")
    assert ignored["suppression"]["justification"] == "the feature is off"

    _, listed = upload(as_(DEV), first_project, "osv-scanner.json")
    (first,) = with_identifier(listed, "GHSA-aaaa-bbbb-5001")
    assert (first["severity"], [one.partition(":")[0] for one in identifiers_of(first)]) == (
        "critical",
        ["ghsa", "pysec", "cve", "cwe"],
    )
    assert identifiers_of(first)[-1] == "cwe:539"
