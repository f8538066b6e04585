"""Uploads of scanner reports through HTTP (security reports reference, sections 1 to 8)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import orjson
import pytest
from sqlalchemy.exc import IntegrityError

from project_service.areas.vulnerabilities.formats.documents import report_json
from project_service.areas.vulnerabilities.models import Finding, FindingCount, Pipeline, SecurityReport
from project_service.domain.projects import DISABLED
from project_service.kit.db.session import db
from tests.support import sample_data
from tests.support.sample_data import ADA, DEV, GUS, MAX, NOBODY, OLIVE, RITA, SAM
from tests.support.security_reports import findings, ingest, report, send, vulnerability


@pytest.fixture
def dev(as_, project):
    return as_(DEV)


def row_counts():
    """The numbers of stored rows: pipelines, reports, findings, tallies."""
    return [db.session.query(table).count() for table in (Pipeline, SecurityReport, Finding, FindingCount)]


def names(client, project, query="scope=all&per_page=100"):
    return [finding["name"] for finding in client.get(findings(project, query)).json]


def ingest_one(client, project, entry, kind="sast", **fields):
    """Ingest a report with one entry; returns its listed finding."""
    ingest(client, project, report(entry, **fields), kind)
    (found,) = client.get(findings(project)).json
    return found


@pytest.mark.both_databases
def test_a_report_returns_its_counts(dev, project):
    response = send(dev, project, report(vulnerability("a"), vulnerability("a"), vulnerability("b")))

    summary = response.json
    stored = db.session.get_one(Pipeline, summary.pop("pipeline_id"))
    counts = {"found": 3, "merged": 2, "dropped": 1, "left": {"total": 0, "reasons": {}}, "suppressed": 0}
    counts["tracking"] = {"new": 2, "reappeared": 0, "known": 0, "moved": 0, "resolved": 0}
    assert response.status_code == 201
    assert summary == counts | {
        "format": "gitlab",
        "format_version": "14.0.0",
        "report_type": "sast",
        "components": 0,
        "reports": [
            counts
            | {
                "scanner": {"external_id": None, "name": None, "version": None},
                "category": "",
                "report_types": ["sast"],
                "complete": True,
            }
        ],
        "warnings": [],
    }
    assert (stored.project_id, stored.ref, stored.sha) == (project.id, "main", None)


def test_a_report_has_a_branch_and_a_commit(dev, project):
    pipeline = ingest(dev, project, report(), ref="feature/x", sha="ab" * 20)

    stored = db.session.get_one(Pipeline, pipeline)
    assert (stored.ref, stored.sha) == ("feature/x", "ab" * 20)


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"ref": " "}, {"ref": ["is invalid"]}),
        ({"ref": "x" * 256}, {"ref": ["is invalid"]}),
        ({"ref": "a\nb"}, {"ref": ["is invalid"]}),
        ({"ref": "../../admin"}, {"ref": ["is invalid"]}),
        ({"ref": "a..b"}, {"ref": ["is invalid"]}),
        ({"sha": "main"}, {"sha": ["is invalid"]}),
        ({"sha": "ab", "ref": "a b"}, {"ref": ["is invalid"], "sha": ["is invalid"]}),
    ],
)
def test_an_invalid_branch_or_commit_is_refused(fields, refusal, dev, project):
    response = send(dev, project, report(vulnerability()), **fields)

    assert (response.status_code, response.json, row_counts()) == (400, {"message": refusal}, [0, 0, 0, 0])


def test_a_report_for_an_unknown_pipeline_is_refused(dev, project, people):
    other = sample_data.make_project()
    sample_data.add_member(other, people[DEV], sample_data.ROLES[DEV])
    pipeline = ingest(dev, other, report())

    responses = [send(dev, project, report(), pipeline_id=number) for number in (pipeline, 999999)]

    assert [(one.status_code, one.json) for one in responses] == [(404, {"message": "404 Pipeline Not Found"})] * 2


def test_a_pipeline_keeps_its_branch_and_commit(dev, project):
    pipeline = ingest(dev, project, report(), ref="main", sha="ab" * 20)

    responses = [
        send(dev, project, report(), pipeline_id=pipeline, **fields)
        for fields in ({"ref": "main", "sha": "ab" * 20}, {"ref": "other"}, {"sha": "cd" * 20})
    ]

    assert [response.status_code for response in responses] == [201, 400, 400]
    assert responses[1].json == {"message": {"ref": ["is not that of the pipeline"]}}


@pytest.mark.parametrize(
    ("data", "refusal"),
    [
        ({}, "file is missing"),
        ({"report_type": "sast"}, "file is missing"),
        ({"report_type": "sast", "file": "text"}, "file is invalid"),
        ({"report_type": "lint", "file": "text"}, "file is invalid, report_type does not have a valid value"),
    ],
)
def test_required_parameters_are_named(data, refusal, dev, project):
    response = dev.post(f"/projects/{project.id}/security_reports", data=data)

    assert (response.status_code, response.json) == (400, {"error": refusal})


@pytest.mark.parametrize(
    ("person", "status"),
    [(ADA, 201), (OLIVE, 201), (MAX, 201), (DEV, 201), (RITA, 403), (GUS, 403), (SAM, 404), (NOBODY, 401)],
)
def test_developers_and_higher_roles_send_reports(person, status, as_, project):
    assert send(as_(person), project, report()).status_code == status


def test_archived_projects_and_disabled_security_refuse_reports(dev, project):
    project.archived = True
    db.session.commit()
    archived = send(dev, project, report())
    project = db.session.merge(project)
    project.archived, project.security_and_compliance_access_level = False, DISABLED
    db.session.commit()

    assert [archived.status_code, send(dev, project, report()).status_code] == [403, 403]


NOT_JSON = "JSON parsing failed"
INVALID_REPORT = "sast security report parsing failed"
WITHOUT_NAME = "has no message, no name and no identifiers"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("raw", "message", "pointer", "reason"),
    [
        (b"", NOT_JSON, "", None),
        (b"  ", NOT_JSON, "", None),
        (b"<xml/>", NOT_JSON, "", None),
        (b'{"vulnerabilities": [{"name": "A"}', NOT_JSON, "", None),
        (b'{"vulnerabilities": []} {}', NOT_JSON, "", None),
        (b'{"vulnerabilities": [{"name": NaN}]}', NOT_JSON, "", None),
        (b'{"vulnerabilities": [{"name": "\xff"}]}', NOT_JSON, "", None),
        (b'{"vulnerabilities":[{"name":"A","links":' + b"[" * 2000 + b"]" * 2000 + b"}]}", NOT_JSON, "", None),
        (b'{"vulnerabilities":[{"name":"A","details":' + b"[" * 400 + b"]" * 400 + b"}]}", NOT_JSON, "", None),
        (b"5", INVALID_REPORT, "", "must be an object"),
        (b"null", INVALID_REPORT, "", "must be an object"),
        (b'"text"', INVALID_REPORT, "", "must be an object"),
        (b'{"vulnerabilities": {}}', INVALID_REPORT, "/vulnerabilities", "must be an array"),
        (b'{"vulnerabilities": {"item": {"name": "A"}}}', INVALID_REPORT, "/vulnerabilities", "must be an array"),
        (b'{"vulnerabilities": "none"}', INVALID_REPORT, "/vulnerabilities", "must be an array"),
        (b'{"vulnerabilities": [{"name": "A"}, {}]}', INVALID_REPORT, "/vulnerabilities/1", WITHOUT_NAME),
        (
            b'{"vulnerabilities": [{"name": " ", "identifiers": []}]}',
            INVALID_REPORT,
            "/vulnerabilities/0",
            WITHOUT_NAME,
        ),
        (b'{"vulnerabilities": [7]}', INVALID_REPORT, "/vulnerabilities/0", "must be an object"),
        (
            b'{"vulnerabilities": [{"name": "A", "severity": 5}]}',
            *(INVALID_REPORT, "/vulnerabilities/0/severity", "must be a string or null"),
        ),
        (
            b'{"vulnerabilities": [{"name": "A"}, {"name": "A", "confidence": {}}]}',
            *(INVALID_REPORT, "/vulnerabilities/1/confidence", "must be a string or null"),
        ),
        (
            b'{"vulnerabilities": [], "remediations": [{"fixes": []}, {"summary": "x"}]}',
            *(INVALID_REPORT, "/remediations/1", "must contain the property fixes"),
        ),
        (
            b'{"vulnerabilities": [], "remediations": [{"fixes": {}}]}',
            *(INVALID_REPORT, "/remediations/0/fixes", "must be an array"),
        ),
        (b'{"vulnerabilities": [], "remediations": ["x"]}', INVALID_REPORT, "/remediations/0", "must be an object"),
        (b'[{"name": "A"}, {"severity": 1, "name": "B"}]', INVALID_REPORT, "/1/severity", "must be a string or null"),
    ],
)
def test_an_invalid_report_is_refused_with_the_position(
    raw, message, pointer, reason, streamed, dev, project, monkeypatch
):
    if streamed:
        monkeypatch.setattr(report_json, "MAX_PARSED_BYTES", -1)

    response = send(dev, project, raw)

    assert (response.status_code, response.json["message"], response.json["pointer"]) == (422, message, pointer)
    assert response.json["reason"] == reason if reason else response.json["reason"]
    assert row_counts() == [0, 0, 0, 0]


@pytest.mark.parametrize("kind", ["dast", "container_scanning", "coverage_fuzzing", "api_fuzzing"])
def test_a_bare_list_is_refused_for_some_types(kind, dev, project):
    response = send(dev, project, [vulnerability()], kind)

    assert (response.status_code, response.json["message"]) == (422, f"{kind} security report parsing failed")


@pytest.mark.parametrize("kind", ["sast", "secret_detection", "dependency_scanning"])
def test_a_bare_list_gives_the_same_as_a_report(kind, dev, project):
    entries = [vulnerability("a"), vulnerability("b")]
    results = []
    for document in (entries, report(*entries)):
        ingest(dev, project, document, kind)
        results.append(dev.get(findings(project)).json)

    assert results[0] == [one | {"last_seen_at": results[0][0]["last_seen_at"]} for one in results[1]]
    assert len(results[0]) == 2


@pytest.mark.parametrize(
    "document", [{}, [], {"vulnerabilities": None}, {"vulnerabilities": []}, {"version": 5, "scan": "x"}]
)
def test_an_empty_report_has_no_findings(document, dev, project):
    response = send(dev, project, document)

    assert (response.status_code, response.json["found"], names(dev, project)) == (201, 0, [])


def test_an_invalid_report_does_not_change_others_of_its_pipeline(dev, project):
    pipeline = ingest(dev, project, report(vulnerability("a")))

    response = send(dev, project, b"{", pipeline_id=pipeline)

    assert (response.status_code, names(dev, project)) == (422, ["Finding a"])


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"message": "M", "name": "N"}, "M"),
        ({"message": " ", "name": "N"}, "N"),
        ({"message": None, "name": 7}, "7"),
        ({"name": None}, "Rule a in a.py"),
        ({"name": None, "location": None}, "Rule a"),
        (
            {"name": None, "identifiers": [{"type": "x", "name": "X"}, {"type": "CWE", "name": "CWE-1"}]},
            "CWE-1 in a.py",
        ),
        (
            {
                "name": None,
                "identifiers": [{"type": "cwe", "name": "CWE-1"}, {"type": "CVE", "name": "CVE-1"}, {"type": "cve"}],
            },
            "CVE-1 in a.py",
        ),
        ({"name": None, "identifiers": [{"type": "x", "value": 5}]}, "5 in a.py"),
        ({"name": None, "identifiers": ["nonsense"]}, "SAST in a.py"),
    ],
)
def test_the_name_of_a_finding_comes_from_the_first_usable_field(fields, name, dev, project):
    assert ingest_one(dev, project, vulnerability("a", **fields))["name"] == name


@pytest.mark.parametrize(
    ("kind", "location", "name"),
    [
        ("dast", {"path": "/login", "hostname": "h"}, "Rule a in /login"),
        ("secret_detection", {"file": "x/y.env"}, "Rule a in y.env"),
        ("dependency_scanning", {"file": "x/go.sum"}, "Rule a in go.sum"),
        (
            "container_scanning",
            {"image": "r:5000/app:main", "dependency": {"package": {"name": "libc"}}},
            "Rule a in r:5000/app:libc",
        ),
        ("coverage_fuzzing", {"crash_type": "Leak", "crash_state": "main"}, "Rule a in Leak:main"),
    ],
)
def test_a_missing_name_is_built_from_the_identifier_and_location(kind, location, name, dev, project):
    assert ingest_one(dev, project, vulnerability("a", name=None, location=location), kind)["name"] == name


SCAN = {"scanner": {"id": "s", "name": "The Scanner"}, "type": "sast", "status": "success"}


@pytest.mark.parametrize(
    ("own", "scan", "scanner"),
    [
        (None, SCAN, ("s", "The Scanner")),
        ({"id": "o", "name": "Own"}, None, ("o", "Own")),
        ({"id": "o", "name": "Own"}, SCAN, ("o", "Own")),
        ({"id": "s", "name": "Another name"}, SCAN, ("s", "The Scanner")),
        ({"name": "No id"}, SCAN, ("s", "The Scanner")),
        (None, None, (None, None)),
        (None, {"scanner": "text"}, (None, None)),
    ],
)
def test_the_scanner_comes_from_the_entry_or_the_scan(own, scan, scanner, dev, project):
    found = ingest_one(dev, project, vulnerability(scanner=own), scan=scan)

    assert (found["scanner"]["external_id"], found["scanner"]["name"]) == scanner


def test_the_first_name_of_a_scanner_is_kept(dev, project):
    entries = [vulnerability(key, scanner={"id": "x", "name": f"Name {key}"}) for key in "ab"]
    ingest(dev, project, report(*entries))

    assert [found["scanner"]["name"] for found in dev.get(findings(project)).json] == ["Name a", "Name a"]


def test_the_tool_of_old_reports_is_the_scanner(dev, project):
    assert ingest_one(dev, project, vulnerability(tool="brakeman"))["scanner"] == {
        "external_id": "brakeman",
        "name": "Brakeman",
    }


@pytest.mark.parametrize(
    ("scan", "shown"),
    [
        (
            {"type": "sast", "status": "failure", "start_time": "yesterday", "end_time": None, "more": 1},
            {"type": "sast", "status": "failure", "start_time": "yesterday", "end_time": None},
        ),
        ("text", None),
        (None, None),
    ],
)
def test_scan_data_is_read(scan, shown, dev, project):
    assert ingest_one(dev, project, vulnerability(), scan=scan)["scan"] == shown


def test_fields_of_a_finding_are_returned_unchanged(dev, project):
    parts = {
        "description": "Two\nlines <b>",
        "links": [{"url": "https://a.example"}, {"name": "B", "url": "https://b.example"}],
        "location": {"file": "a.py", "commit": {"sha": "abc"}, "unknown": [1, {"x": None}]},
        "details": {"x": {"type": "unheard-of", "name": "X", "deep": [[1.5, True, None, 12345678901234567890]]}},
        "assets": [{"name": "Log", "type": "http_session", "url": "https://c.example"}],
        "solution": "Mend it",
    }

    found = ingest_one(dev, project, vulnerability(**parts), "secret_detection")

    assert {name: found[name] for name in parts} == parts


@pytest.mark.parametrize("value", [None, "text", 5, {"a": 1}])
def test_invalid_lists_are_ignored(value, dev, project):
    found = ingest_one(dev, project, vulnerability(links=value, identifiers=value, assets=value))

    assert (found["links"], found["identifiers"], found["assets"], found["uuid"]) == ([], [], [], None)


@pytest.mark.parametrize("value", [None, "text", 5, [1]])
def test_invalid_objects_are_ignored(value, dev, project):
    found = ingest_one(dev, project, vulnerability(location=value, details=value, evidence=None))

    assert (found["location"], found["details"], found["evidence"]) == ({}, {}, None)


def test_entries_that_are_not_objects_are_skipped(dev, project):
    found = ingest_one(
        dev, project, vulnerability(links=["x", {"url": "u"}], identifiers=[None, {"type": "t", "value": "v"}])
    )

    assert ([link["url"] for link in found["links"]], [one["external_id"] for one in found["identifiers"]]) == (
        ["u"],
        ["v"],
    )


def test_evidence_is_read(dev, project):
    evidence = {
        "summary": "It answers",
        "source": {"id": "assert", "name": "Assert"},
        "request": {"headers": [{"name": "A", "value": "B"}], "method": "GET", "url": "https://x", "body": ""},
        "response": {"headers": [], "status_code": 200, "reason_phrase": "OK"},
        "supporting_messages": [{"name": "Original"}],
    }

    found = ingest_one(dev, project, vulnerability(evidence=evidence), "dast")

    assert found["evidence"] == "It answers"
    assert found["request"] == {
        "headers": [{"name": "A", "value": "B"}],
        "method": "GET",
        "url": "https://x",
        "body": "",
    }
    assert found["response"] == {"headers": [], "status_code": 200, "reason_phrase": "OK", "body": None}
    assert (found["evidence_source"], found["supporting_messages"]) == (
        evidence["source"],
        evidence["supporting_messages"],
    )


@pytest.mark.parametrize(
    ("severity", "level"),
    [
        ("Critical", "critical"),
        ("HIGH", "high"),
        ("Undefined", "unknown"),
        ("moderate", "unknown"),
        ("negligible", "unknown"),
        ("experimental", "unknown"),
        ("confirmed", "unknown"),
        ("", "unknown"),
        (None, "unknown"),
    ],
)
def test_severities_are_normalised(severity, level, dev, project):
    assert ingest_one(dev, project, vulnerability() | {"severity": severity})["severity"] == level


@pytest.mark.parametrize(
    ("confidence", "level"),
    [("Experimental", "experimental"), ("Ignore", "ignore"), ("Confirmed", "confirmed"), ("critical", "unknown")],
)
def test_confidences_are_normalised(confidence, level, dev, project):
    assert ingest_one(dev, project, vulnerability(confidence=confidence))["confidence"] == level


def test_the_sent_report_type_overrides_the_report(dev, project):
    found = ingest_one(dev, project, vulnerability(category="sast"), "secret_detection", scan=SCAN)

    assert (found["report_type"], found["scan"]["type"]) == ("secret_detection", "sast")


FIX = {"fixes": [{"id": "id-a"}], "summary": "Upgrade", "diff": "ZGlmZg=="}


@pytest.mark.parametrize(
    ("own", "remediations", "solution", "shown"),
    [
        (None, [FIX], "Upgrade", [FIX]),
        ("Own", [FIX], "Own", [FIX]),
        (" ", [FIX], "Upgrade", [FIX]),
        (None, [{"fixes": [{"cve": "key:a"}], "summary": "By key"}], "By key", "same"),
        (None, [{"fixes": [{"id": "other"}]}, FIX, FIX | {"summary": "Later"}], "Upgrade", [FIX]),
        (None, [{"fixes": [{"cve": "key:a"}], "summary": "First"}, FIX], "First", "same"),
        (None, [{"fixes": [{"id": "other"}, "nonsense", {}]}], None, None),
        (None, [], None, None),
        (None, None, None, None),
        (None, "text", None, None),
    ],
)
def test_remediations_are_matched_to_findings(own, remediations, solution, shown, dev, project):
    found = ingest_one(dev, project, vulnerability(solution=own), remediations=remediations)

    assert (found["solution"], found["remediations"]) == (solution, remediations[:1] if shown == "same" else shown)


def test_an_empty_key_has_no_remediation(dev, project):
    found = ingest_one(
        dev, project, vulnerability(cve="", id=None), remediations=[{"fixes": [{"id": "x"}, {"cve": ""}]}]
    )

    assert found["remediations"] is None


def test_one_remediation_applies_to_several_findings(dev, project):
    fix = {"fixes": [{"id": "id-a"}, {"id": "id-b"}], "summary": "Both"}
    ingest(dev, project, report(vulnerability("a"), vulnerability("b"), remediations=[fix]))

    assert [found["remediations"] for found in dev.get(findings(project)).json] == [[fix], [fix]]


@pytest.mark.both_databases
@pytest.mark.parametrize("streamed", [False, True])
def test_characters_that_databases_cannot_store_are_replaced(streamed, dev, project, monkeypatch):
    if streamed:
        monkeypatch.setattr(report_json, "MAX_PARSED_BYTES", -1)
    raw = (
        b'\xef\xbb\xbf{"vulnerabilities": [{"name": "A\\u0000B", "cve": "k\\u0000", "identifiers": [{"type": '
        b'"t\\u0000", "value": "v"}], "details": {"n\\u0000": 123456789012345678901234567890, "e": 1e5}}]}'
    )
    ingest(dev, project, raw)

    (found,) = dev.get(findings(project)).json

    assert (found["name"], found["identifiers"][0]["external_type"]) == ("AB", "t")
    assert found["details"] == {"n": 123456789012345678901234567890.0, "e": 100000.0}


def dependency(key, advisory, kind="gemnasium", **fields):
    """An entry of a dependency report; all entries are about one package."""
    location = {"file": "go.sum", "dependency": {"package": {"name": "yaml"}, "version": key}}
    identifiers = [{"type": kind, "name": advisory, "value": advisory}]
    return vulnerability(key, **({"location": location, "identifiers": identifiers} | fields))


def written_by(scanner, *entries):
    return report(*entries, scan={"scanner": {"id": scanner, "name": scanner}})


def test_duplicates_in_one_report_are_dropped(dev, project):
    response = send(
        dev, project, report(dependency("1", "A"), dependency("2", "A"), dependency("3", "B")), "dependency_scanning"
    )

    assert (response.json["merged"], response.json["dropped"]) == (2, 1)
    assert names(dev, project) == ["Finding 1", "Finding 3"]


def test_identifiers_of_kept_findings_drop_later_duplicates(dev, project):
    def entry(key, *values):
        return dependency(key, "", identifiers=[{"type": "x", "value": value} for value in values])

    ingest(dev, project, report(entry("1", "A"), entry("2", "A", "B"), entry("3", "B")), "dependency_scanning")

    assert names(dev, project) == ["Finding 1", "Finding 3"]


@pytest.mark.parametrize("kind", ["cwe", "CWE", "wasc", "WASC"])
def test_cwe_classes_do_not_make_duplicates(kind, dev, project):
    ingest(dev, project, report(dependency("1", "7", kind), dependency("2", "7", kind)), "dependency_scanning")

    found = dev.get(findings(project)).json
    assert len(found) == 2
    assert found[0]["uuid"] == found[1]["uuid"]


def test_another_location_is_another_finding(dev, project):
    other_location = {"file": "other/go.sum", "dependency": {"package": {"name": "yaml"}}}
    entries = [dependency("1", "A"), dependency("2", "A", location=other_location)]

    ingest(dev, project, report(*entries), "dependency_scanning")

    assert len(names(dev, project)) == 2


def test_report_types_are_not_merged_with_each_other(dev, project):
    pipeline = ingest(dev, project, report(vulnerability()))
    ingest(dev, project, report(vulnerability()), "secret_detection", pipeline_id=pipeline)

    assert len(names(dev, project)) == 2


@pytest.mark.both_databases
def test_duplicates_across_reports_are_dropped(dev, project):
    pipeline = ingest(dev, project, report(vulnerability("b"), vulnerability("c")))

    response = send(dev, project, report(vulnerability("a"), vulnerability("c", name="Later")), pipeline_id=pipeline)

    summary = {name: response.json[name] for name in ("pipeline_id", "report_type", "found", "merged", "dropped")}
    assert summary == {"pipeline_id": pipeline, "report_type": "sast", "found": 2, "merged": 1, "dropped": 1}
    assert names(dev, project) == ["Finding a", "Finding b", "Finding c"]
    assert dev.get(findings(project)).headers["X-Total"] == "3"


@pytest.mark.both_databases
@pytest.mark.parametrize("order", [("gemnasium", "retire.js"), ("retire.js", "gemnasium")])
def test_the_order_of_analyzers_decides_which_duplicate_is_kept(order, dev, project):
    pipeline = None
    for scanner in order:
        fields = {"pipeline_id": pipeline} if pipeline else {}
        document = written_by(scanner, dependency(scanner, "A"))
        pipeline = ingest(dev, project, document, "dependency_scanning", **fields)

    assert names(dev, project) == ["Finding retire.js"]


def test_a_dropped_finding_returns_when_its_duplicate_is_gone(dev, project):
    def entry(key, *values):
        return dependency(key, "", identifiers=[{"type": "x", "value": value} for value in values])

    first = written_by("gemnasium", entry("1", "A", "B"), entry("2", "B"))
    pipeline = ingest(dev, project, first, "dependency_scanning")
    before = names(dev, project)
    second = written_by("bundler_audit", entry("3", "A"))
    response = send(dev, project, second, "dependency_scanning", pipeline_id=pipeline)

    assert (before, names(dev, project)) == (["Finding 1"], ["Finding 2", "Finding 3"])
    assert response.json["merged"] == 1


def test_a_report_without_scanner_uses_that_of_the_first_entry(dev, project):
    semgrep = report(vulnerability("a", name="semgrep", scanner={"id": "semgrep", "name": "S"}))
    bandit = report(vulnerability("a", name="bandit", scanner={"id": "bandit", "name": "B"}))
    pipeline = ingest(dev, project, semgrep)
    ingest(dev, project, bandit, pipeline_id=pipeline)

    assert names(dev, project) == ["bandit"]


@pytest.mark.both_databases
def test_concurrent_reports_of_a_pipeline_are_merged(as_, project, app):
    clients = [as_(DEV) for _ in range(4)]
    pipeline = ingest(clients[0], project, report())
    start = threading.Barrier(4)

    def add(number):
        start.wait()
        entries = [vulnerability(key) for key in ("same", f"own-{number}")]
        with app.app_context():
            return send(clients[number], project, report(*entries), pipeline_id=pipeline).status_code

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(add, range(4))) == [201] * 4

    expected = [*(f"Finding own-{number}" for number in range(4)), "Finding same"]
    assert names(clients[0], project) == expected


ZAP = {
    "@version": "2.8",
    "site": [
        None,
        {
            "@name": "https://shop.example",
            "alerts": [
                {
                    "pluginid": "10010",
                    "name": "Cookie No HttpOnly Flag",
                    "riskcode": "1",
                    "confidence": "2",
                    "desc": "<p>A cookie &amp; more.</p>",
                    "solution": "<p>Set it.</p>",
                    "reference": "<p>http://a.example</p><p>http://b.example</p>",
                    "cweid": "16",
                    "wascid": "13",
                    "instances": [
                        {"uri": "https://shop.example/cart", "method": "GET", "param": "session"},
                        {"uri": "https://shop.example/", "method": "GET", "param": "session"},
                        {"uri": "https://shop.example/cart", "method": "GET", "param": "session"},
                    ],
                }
            ],
        },
    ],
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_native_reports_of_zap_are_read(single, streamed, dev, project, monkeypatch):
    if streamed:
        monkeypatch.setattr(report_json, "MAX_PARSED_BYTES", -1)
    response = send(dev, project, ZAP | {"site": ZAP["site"][1]} if single else ZAP, "dast")

    found = dev.get(findings(project)).json[0]

    assert (response.json["found"], response.json["dropped"]) == (3, 1)
    assert (found["name"], found["severity"], found["confidence"]) == ("Cookie No HttpOnly Flag", "low", "medium")
    assert (found["description"], found["solution"]) == ("A cookie & more.", "Set it.")
    assert found["scanner"] == {"external_id": "zaproxy", "name": "ZAProxy"}
    assert [(one["external_type"], one["external_id"], one["name"]) for one in found["identifiers"]] == [
        ("ZAProxy_PluginId", "10010", "Cookie No HttpOnly Flag"),
        ("CWE", "16", "CWE-16"),
        ("WASC", "13", "WASC-13"),
    ]
    assert found["links"] == [{"url": "http://a.example"}, {"url": "http://b.example"}]
    assert found["location"] == {
        "hostname": "https://shop.example",
        "path": "/cart",
        "method": "GET",
        "param": "session",
    }


def test_a_current_report_with_a_site_key_is_read_as_current(dev, project):
    ingest(dev, project, ZAP | report(vulnerability("a")), "dast")

    assert names(dev, project) == ["Finding a"]


def test_native_reports_of_clair_are_refused(dev, project):
    clair = {"image": "x", "unapproved": [], "vulnerabilities": [{"featurename": "f", "vulnerability": "CVE-1"}]}

    assert send(dev, project, clair, "container_scanning").status_code == 422


def test_a_streamed_report_equals_a_loaded_one(dev, project, monkeypatch):
    document = report(
        *(
            vulnerability(f"{number:03}", details={"x": {"type": "value", "value": number / 7}})
            for number in range(300)
        ),
        remediations=[FIX | {"fixes": [{"id": "id-007"}]}],
        scan=SCAN,
    )
    results = []
    for limit in (1 << 20, -1):
        monkeypatch.setattr(report_json, "MAX_PARSED_BYTES", limit)
        ingest(dev, project, document)
        pages = [dev.get(findings(project, f"per_page=100&page={page}")).json for page in (1, 2, 3)]
        results.append([[one | {"last_seen_at": None} for one in page] for page in pages])

    assert results[0] == results[1]
    assert results[0][0][7]["remediations"][0]["summary"] == "Upgrade"


def test_reports_have_a_larger_body_limit(dev, project):
    padding = vulnerability("a", description="x" * (11 << 20))

    assert send(dev, project, report(padding)).status_code == 201
    assert len(dev.get(findings(project)).json[0]["description"]) == 11 << 20


def test_a_large_body_of_an_anonymous_caller_is_refused(as_, project):
    raw = orjson.dumps(report(vulnerability("a", description="x" * (11 << 20))))

    assert send(as_(NOBODY), project, raw).status_code in (401, 413)


def pipelines_of(project):
    db.session.remove()
    return [row.id for row in db.session.query(Pipeline).filter_by(project_id=project.id).order_by(Pipeline.id)]


@pytest.mark.both_databases
def test_reports_of_one_commit_share_a_pipeline_until_a_job_is_repeated(dev, project):
    commit = {"sha": "AB" * 20}
    first = ingest(dev, project, written_by("semgrep", vulnerability("a"), vulnerability("same")), **commit)
    joined = [
        ingest(dev, project, written_by("bandit", vulnerability("b"), vulnerability("same")), **commit),
        ingest(dev, project, report(vulnerability("z")), "dast", **commit),
    ]
    before = names(dev, project)

    again = ingest(dev, project, written_by("semgrep", vulnerability("c")), **commit)
    late = ingest(dev, project, written_by("bandit", vulnerability("d")), **commit)
    other = ingest(dev, project, written_by("semgrep"), sha="cd" * 20)
    unnamed = [ingest(dev, project, written_by("semgrep")) for _ in range(2)]

    assert joined == [first, first]
    assert sorted(before) == ["Finding a", "Finding b", "Finding same", "Finding z"]
    assert listed_in(dev, project, again) == ["Finding b", "Finding c", "Finding same", "Finding z"]
    assert listed_in(dev, project, late) == ["Finding c", "Finding d", "Finding z"]
    assert listed_in(dev, project, first) == sorted(before)
    assert pipelines_of(project) == sorted({first, again, late, other, *unnamed})
    assert len(pipelines_of(project)) == 6


def listed_in(client, project, pipeline):
    """The names of the findings of a pipeline, sorted."""
    response = client.get(findings(project, f"scope=all&per_page=100&pipeline_id={pipeline}"))
    return sorted(one["name"] for one in response.json)


@pytest.mark.both_databases
def test_concurrent_reports_of_one_commit_are_all_stored(as_, project, app):
    clients = [as_(DEV) for _ in range(6)]
    start = threading.Barrier(6)

    def add(number):
        start.wait()
        scanned = written_by(f"scanner-{number % 3}", vulnerability(f"{number}"))
        with app.app_context():
            return send(clients[number], project, scanned, sha="ab" * 20).status_code

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(add, range(6))) == [201] * 6

    pipelines = pipelines_of(project)
    assert 2 <= len(pipelines) <= 4
    assert len(listed_in(clients[0], project, pipelines[-1])) == 3
    assert len({name for one in pipelines for name in listed_in(clients[0], project, one)}) == 6


@pytest.mark.both_databases
def test_the_database_refuses_a_second_attempt_and_a_second_report_of_one_name(dev, project):
    pipeline = ingest(dev, project, report(), sha="ab" * 20)
    copies = [
        Pipeline(project_id=project.id, ref="master", sha="ab" * 20, attempt=1),
        SecurityReport(
            pipeline_id=pipeline, report_type="sast", turn=0, format="gitlab", category="", scanner="", repetition=1
        ),
    ]

    for copy in copies:
        db.session.rollback()
        if isinstance(copy, Pipeline):
            copy.ref = db.session.get(Pipeline, pipeline).ref
        db.session.add(copy)
        with pytest.raises(IntegrityError):
            db.session.flush()
    db.session.rollback()
