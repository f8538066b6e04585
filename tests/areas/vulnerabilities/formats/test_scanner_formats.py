"""Rules of the formats of scanners, each with a minimal document."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import tempfile
import tracemalloc
from unittest import mock

import orjson
import pytest

from project_service.areas.vulnerabilities.formats import detection, shapes
from project_service.areas.vulnerabilities.formats.documents import splitting, unpacking
from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.areas.vulnerabilities.formats.documents.splitting import Document, Entries
from project_service.areas.vulnerabilities.formats.identifying import advisory, key_of, owasp, weaknesses
from project_service.areas.vulnerabilities.formats.packages import package_of_purl
from project_service.areas.vulnerabilities.formats.paths import BrokenPath, Paths, roots_of_run
from project_service.areas.vulnerabilities.formats.sarif import texts
from project_service.areas.vulnerabilities.formats.shapes import Options, Reading, SkippedEntries


def read(document, **options):
    """The entries of a document, and the state of the reading."""
    raw = document if isinstance(document, bytes) else orjson.dumps(document)
    reading = Reading(Options(**options))
    with unpacking.unpacked(io.BytesIO(raw)) as plain:
        top = Document(plain).top
        found = detection.format_of(top, options.get("report_type"))
        assert found.reader is not None
        return list(found.reader(top, reading)), reading


def refusal(document, **options):
    with pytest.raises(BrokenReport) as refused:
        read(document, **options)
    return refused.value.message, refused.value.pointer, refused.value.reason


def sarif(*results, rules=(), driver=None, **run):
    tool = {"driver": {"name": "Scan", "rules": list(rules)} | (driver or {})}
    return {"version": "2.1.0", "runs": [{"tool": tool, "results": list(results)} | run]}


def result(rule="R", **fields):
    return {"ruleId": rule, "message": {"text": "Something is wrong."}} | fields


def locations_at(uri="a.py", line=3, **more):
    return [{"physicalLocation": {"artifactLocation": {"uri": uri} | more, "region": {"startLine": line}}}]


def only_entry(document, **options):
    (entry,), _ = read(document, **options)
    return entry


def plain(value):
    """A document with its lazily read lists as plain lists."""
    if isinstance(value, Entries | list):
        return [plain(one) for one in value]
    return {name: plain(one) for name, one in value.items()} if isinstance(value, dict) else value


DOCUMENTS = (
    {"runs": [{"results": [{"a": '"]}{[', "b": [1, {"c": "\\"}]}, {}], "tool": {"driver": {"rules": [{}, {}]}}}]},
    {"matches": [1, {"a": 1}, None, [2], "x", 3.5], "other": [[], {}, [1]], "results": [], "": [{"matches": [1]}]},
    [{"Results": [1]}, 2, [3]],
    {"Results": [{"Vulnerabilities": [{}, {"x": 1}]}, {"Secrets": [1]}], "components": None, "dependencies": {}},
    "text",
    5,
)


@pytest.mark.parametrize("block", [1, 5, 1 << 20])
@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_document_is_read_equally_in_chunks(document, block, indent):
    raw = b"\xef\xbb\xbf" + json.dumps(document, indent=indent).encode()
    with mock.patch.object(splitting, "BLOCK_BYTES", block):
        top = Document(io.BytesIO(raw)).top

        assert plain(top) == document
        assert plain(top) == document  # a second time


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[",
        b'{"matches":[',
        b'{"matches":[{}',
        b'{"matches":[{},]}',
        b'{"matches":[{} {}]}',
        b'{"matches":[,{}]}',
        b'{"matches":[{"a":1]}]}',
        b'{"matches":[{}}}',
        b'{"matches":[{}]} {}',
        b'{"matches":[{"a":"\xff"}]}',
        b'{"matches":[{"a":"\\ud800"}]}',
        b'{"matches":[{"a":1e999}]}',
        b'{"a":' + b"[" * 300 + b"]" * 300 + b"}",
        b'{"matches":[' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"]}",
        b"]" * 10,
    ],
)
def test_invalid_json_is_refused(raw):
    with pytest.raises(BrokenReport, match="JSON parsing failed"):
        plain(Document(io.BytesIO(raw)).top)


def test_the_last_of_duplicate_keys_counts():
    assert plain(Document(io.BytesIO(b'{"matches":[1],"matches":[2,{"a":1,"a":2}]}')).top) == {"matches": [2, {"a": 2}]}


@pytest.mark.parametrize(
    "raw",
    [
        b'{"other":"' + b"x" * 300 + b'"}',
        b'{"other":[' + b"1," * 300 + b"1]}",
        b'{"matches":[{"a":"' + b"x" * 300 + b'"}]}',
        b'{"matches":[' + b"1," * 300 + b"1]}",
        b'{"matches":[{"a":[' + b"{}," * 100 + b"{}]}]}",
    ],
)
def test_oversized_parts_are_refused(raw):
    with (
        mock.patch.object(splitting, "MAX_PART_BYTES", 200),
        mock.patch.object(splitting, "BLOCK_BYTES", 64),
        pytest.raises(BrokenReport, match="is larger than"),
    ):
        plain(Document(io.BytesIO(raw)).top)


def test_large_documents_need_little_memory():
    entry = orjson.dumps(result(message={"text": "a" * 8_000})) + b","
    with tempfile.TemporaryFile() as file:
        file.write(b'{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"x"}},"results":[')
        file.write(entry * 2_500)
        file.write(b"null]}]}")
        size = file.tell()
        tracemalloc.start()
        try:
            top, reading = Document(file).top, Reading(Options())
            count = sum(1 for _ in detection.SARIF.reader(top, reading))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert count == 2_501
    assert peak < size / 4


def test_files_may_be_compressed_or_in_utf_16():
    document = sarif(result(message={"text": "Überall"}))
    for raw in (
        gzip.compress(orjson.dumps(document)),
        json.dumps(document, ensure_ascii=False).encode("utf-16"),
        gzip.compress(json.dumps(document, ensure_ascii=False).encode("utf-16")),
    ):
        assert only_entry(raw).data["name"] == "Überall"
    for raw, reason in (
        (gzip.compress(b"{}" * 90)[:-9], "the file is not valid gzip"),
        (b"\xff\xfe{\x00\x00\xd8", "a text is not UTF-16"),
        ("{}".encode("utf-32"), "the file is in UTF-32: write UTF-8"),
        ("{}".encode("utf-16-le"), "the file is not in UTF-8: write UTF-8, or UTF-16 with a byte order mark"),
        (gzip.compress(gzip.compress(b"{}")), "the file is compressed more than once: compress it once with gzip"),
        (bz2.compress(b"{}"), "the file is compressed with bzip2: use gzip"),
        (b"r.json".ljust(257, b"\0") + b"ustar", "the file is a tar archive: upload the report itself"),
    ):
        assert refusal(raw) == ("JSON parsing failed", "", reason)
    with mock.patch.object(unpacking, "MAX_REPORT_BYTES", 1000):
        assert "larger than" in refusal(gzip.compress(b" " * 5000))[2]


UNKNOWN = "Report format is not recognised"


@pytest.mark.parametrize(
    ("document", "message", "pointer", "reason"),
    [
        ({"version": "2.0.0", "runs": []}, "SARIF report parsing failed", "/version", "SARIF 2.0.0 is not supported"),
        ({"version": "2.1.0", "runs": {}}, "SARIF report parsing failed", "/runs", "must be an array"),
        (sarif() | {"runs": [5]}, "SARIF report parsing failed", "/runs/0", "must be an object"),
        (sarif() | {"runs": [{}] * 101}, "SARIF report parsing failed", "/runs", "has 101 runs, at most 100"),
        (
            sarif(driver={"name": " "}),
            "SARIF report parsing failed",
            "/runs/0/tool/driver",
            "must contain the property",
        ),
        (
            {"bomFormat": "CycloneDX", "specVersion": "1.3"},
            "CycloneDX report parsing failed",
            "/specVersion",
            "CycloneDX 1.3 is not supported: 1.4 to 1.6 are",
        ),
        (
            {"bomFormat": "CycloneDX", "specVersion": "1.6", "vulnerabilities": {}},
            "CycloneDX report parsing failed",
            "/vulnerabilities",
            "must be an array",
        ),
        (
            {"error": {"code": "ENOLOCK", "summary": "This command requires an existing lockfile."}},
            "npm audit report parsing failed",
            "/error",
            "npm audit failed: ENOLOCK This command requires an existing lockfile.",
        ),
        (
            {"results": [{"check_id": "r"}]},
            UNKNOWN,
            "",
            "this is semgrep's own JSON: write SARIF (semgrep scan --sarif)",
        ),
        ({"results": [], "errors": [], "paths": {}}, UNKNOWN, "", "this is semgrep's own JSON"),
        ([{"filePath": "a", "messages": []}], UNKNOWN, "", "eslint -f @microsoft/eslint-formatter-sarif"),
        ([{"code": "S1", "filename": "a"}], UNKNOWN, "", "ruff check --output-format sarif"),
        ({"check_type": "terraform"}, UNKNOWN, "", "checkov --output sarif"),
        ([{"RuleID": "x"}], UNKNOWN, "", "gitleaks --report-format sarif"),
        ({"Issues": [], "GosecVersion": "2"}, UNKNOWN, "", "gosec -fmt sarif"),
        ({"spdxVersion": "SPDX-2.3"}, UNKNOWN, "", "this is SPDX: write CycloneDX"),
        ({}, UNKNOWN, "", "none of GitLab, ZAP, SARIF"),
        ([], UNKNOWN, "", "give report_type for a report without entries"),
    ],
)
def test_refusals_have_a_message_a_position_and_a_reason(document, message, pointer, reason):
    refused = refusal(document)

    assert refused[:2] == (message, pointer)
    assert reason in refused[2]


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({"$schema": "https://example/sarif-2.1.0.json", "runs": []}, "sarif"),
        ({"bomFormat": "CycloneDX"}, "cyclonedx"),
        ({"SchemaVersion": 2, "ArtifactName": "a"}, "trivy"),
        ({"ClusterName": "c"}, "trivy"),
        ([{"Target": "a"}], "trivy"),
        ({"matches": []}, "grype"),
        ({"results": [], "metrics": {}, "generated_at": ""}, "bandit"),
        ({"dependencies": []}, "pip-audit"),
        ([{"name": "a", "vulns": []}], "pip-audit"),
        ({"auditReportVersion": 2}, "npm-audit"),
        ({"advisories": {}}, "npm-audit"),
        ({"audit": {}}, "npm-audit"),
        ({"report_meta": {}, "vulnerabilities": []}, "safety"),
        ({"results": [{"packages": []}]}, "osv-scanner"),
        ({"results": []}, "osv-scanner"),
        ({"site": []}, "zap"),
        ({"version": "15.0.0", "vulnerabilities": []}, "gitlab"),
    ],
)
def test_formats_are_recognised_by_their_content(document, name):
    top = Document(io.BytesIO(orjson.dumps(document))).top

    assert detection.format_of(top, None).name == name


@pytest.mark.parametrize("document", [{}, [], {"vulnerabilities": []}, [{"message": "m"}], {"results": {}}, 5, None])
def test_unknown_content_with_a_type_is_read_as_gitlab_format(document):
    assert detection.format_of(Document(io.BytesIO(orjson.dumps(document))).top, "sast").name == "gitlab"


def test_a_type_that_a_format_does_not_have_is_refused():
    bandit = {"results": [], "metrics": {}, "generated_at": ""}

    assert refusal(bandit, report_type="dast")[2] == "bandit reports are sast, not dast"
    expected = "grype reports are dependency_scanning or container_scanning, not sast"
    assert refusal({"matches": []}, report_type="sast")[2] == expected
    assert only_entry(sarif(result()), report_type="dast").report_type == "dast"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"scan": {"type": "dast"}, "vulnerabilities": []}, "dast"),
        ({"version": "1", "vulnerabilities": [{"category": "sast"}, {"category": "sast"}]}, "sast"),
        ({"version": "1", "vulnerabilities": [{"category": "sast"}, {"category": "dast"}]}, None),
        ({"version": "1", "vulnerabilities": []}, None),
    ],
)
def test_the_type_of_a_gitlab_report_is_detected(document, expected):
    top = Document(io.BytesIO(orjson.dumps(document))).top
    if expected:
        assert detection.type_of_gitlab_report(top) == expected
    else:
        with pytest.raises(BrokenReport, match="give report_type"):
            detection.type_of_gitlab_report(top)


@pytest.mark.parametrize(
    ("uri", "root", "path"),
    [
        ("file:///github/workspace/src/h%C3%A4user%20neu.py", None, "src/häuser neu.py"),
        ("file:///builds/acme/shop/web/cart.js", "/builds/acme/shop", "web/cart.js"),
        ("/builds/of/it/a.py", None, "a.py"),
        ("./src\\a.py", None, "src/a.py"),
        ("C:\\code\\a.c", "c:/code", "a.c"),
        ("file:///C:/code/a.c", "C:\\code", "a.c"),
        ("file://host/src/a.c", None, "a.c"),
        ("file:/opt/x/a.c", None, "/opt/x/a.c"),
        ("a/%zz/%41%ff.py", None, "a/%zz/%41%ff.py"),
        ("a/../b/./c.py", None, "b/c.py"),
        (" a.py ", None, "a.py"),
        ("https://shop.example/a?b", None, "https://shop.example/a?b"),
        ("/src/../etc/a", None, "/etc/a"),
    ],
)
def test_paths_are_made_relative(uri, root, path):
    reading = Reading(Options(source_root=root, project_path="of/it"))

    assert Paths(reading).relative(uri) == path
    assert bool(reading.warnings) == path.startswith("/")


@pytest.mark.parametrize("uri", ["a" * 1025, "%41" * 1100])
def test_paths_that_are_too_long_are_invalid(uri):
    with pytest.raises(BrokenPath):
        Paths(Reading(Options())).relative(uri)
    (skipped,), reading = read(sarif(result(locations=locations_at(uri))))
    assert (skipped.reason, reading.warnings["broken_entry"]["pointer"]) == ("broken", "/runs/0/results/0")


def test_base_uris_are_resolved_and_cycles_end():
    bases = {
        "SRC": {"uri": "src/", "uriBaseId": "ROOT"},
        "ROOT": {"uri": "file:///home/ci/shop/"},
        "A": {"uri": "a/", "uriBaseId": "B"},
        "B": {"uri": "b/", "uriBaseId": "A"},
    }
    entries, _ = read(
        sarif(
            *(result(locations=locations_at("db/q.py", uriBaseId=name)) for name in ("SRC", "A", "%SRCROOT%")),
            result(locations=locations_at("file:///home/ci/shop/x.py")),
            originalUriBaseIds=bases,
        )
    )

    assert [one.data["location"]["file"] for one in entries] == ["src/db/q.py", "db/q.py", "db/q.py", "x.py"]


def test_source_roots_of_a_run_are_tried_in_order():
    run = {
        "versionControlProvenance": [{"mappedTo": {"uri": "file:///mapped/"}}],
        "originalUriBaseIds": {"A": {"uri": "file:///a/"}, "B": {"uri": "file:///a/longer/"}, "C": {"uri": "c/"}},
        "invocations": [{"workingDirectory": {"uri": "file:///src/shop"}}],
    }
    paths = Paths(Reading(Options()), (), run["originalUriBaseIds"])

    assert roots_of_run(run, paths) == ["/mapped/", "/a/longer", "/a", "/src/shop"]


SCORES = {"properties": {"security-severity": "9.0"}}


@pytest.mark.parametrize(
    ("rule", "fields", "severity"),
    [
        ({}, {}, "medium"),
        ({"defaultConfiguration": {"level": "error"}}, {}, "high"),
        ({"defaultConfiguration": {"level": "error"}}, {"level": "note"}, "low"),
        ({"defaultConfiguration": {"level": "loud"}}, {"level": "louder"}, "medium"),
        ({}, {"level": "none"}, "info"),
        (SCORES, {"level": "note"}, "critical"),
        (SCORES, {"properties": {"security-severity": 3.9}}, "low"),
        ({"properties": {"security-severity": "HIGH"}}, {}, "high"),
        ({"properties": {"security-severity": "0.0"}}, {"level": "error"}, "high"),
        ({"properties": {"security-severity": "11"}}, {}, "medium"),
        ({"properties": {"security-severity": "none"}}, {}, "info"),
        ({"properties": {"cvssv3_baseScore": 7.0}}, {"level": "error"}, "high"),
        ({"properties": {"cvssv2_score": "4.0"}}, {"level": "error"}, "medium"),
        ({"properties": {"severity": "critical"}}, {"properties": {"issue_severity": "LOW"}}, "low"),
        ({"properties": {"severity": "severe"}}, {}, "medium"),
        ({"properties": {"severity": "undefined"}}, {"level": "error"}, "unknown"),
        ({}, {"kind": "open"}, "unknown"),
        ({}, {"kind": "review", "level": "note"}, "unknown"),
        (SCORES, {"kind": "review"}, "critical"),
    ],
)
def test_severities_of_sarif_are_mapped(rule, fields, severity):
    assert only_entry(sarif(result(**fields), rules=[{"id": "R"} | rule])).severity.text == severity


@pytest.mark.parametrize(
    ("driver", "rule", "fields", "confidence"),
    [
        ("Scan", {"precision": "very-high"}, {}, "high"),
        ("Semgrep PRO", {"precision": "very-high"}, {}, "unknown"),
        ("Semgrep PRO", {"tags": ["LOW CONFIDENCE"]}, {}, "low"),
        ("Scan", {"precision": "low"}, {"confidence": "certain"}, "confirmed"),
        ("Scan", {}, {"issue_confidence": "MEDIUM"}, "medium"),
        ("Scan", {"precision": "who knows"}, {}, "unknown"),
    ],
)
def test_confidences_of_sarif_are_mapped(driver, rule, fields, confidence):
    document = sarif(result(properties=fields), rules=[{"id": "R", "properties": rule}], driver={"name": driver})

    assert only_entry(document).confidence.text == confidence


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ({"text": "One\nOne\nTwo\r\n\r\nThree"}, "One Two"),
        ({"text": "{0} and {{x}} and {5}", "arguments": ["A"]}, "A and {x} and {5}"),
        ({"text": "{0} {{x}}"}, "{0} {{x}}"),
        ({"id": "m", "arguments": ["x"]}, "Rule says x"),
        ({"id": "g"}, "Everywhere"),
        ({"text": " "}, "Short"),
        ({"text": "see [there](1) and \\[this\\](2)"}, "see there and [this](2)"),
        ({"text": "x" * 300}, "x" * 254 + "…"),
        (None, "Short"),
    ],
)
def test_names_of_findings_come_from_messages(message, name):
    rule = {"id": "R", "shortDescription": {"text": "Short"}, "messageStrings": {"m": {"text": "Rule says {0}"}}}
    driver = {"globalMessageStrings": {"g": {"text": "Everywhere"}}}

    assert only_entry(sarif(result(message=message), rules=[rule], driver=driver)).data["name"] == name


def test_descriptions_use_markdown_and_fenced_code():
    message = {"text": "Plain.", "markdown": "**Bold** [there](1) <script>"}
    locations = locations_at()
    locations[0]["physicalLocation"]["region"]["snippet"] = {"text": "a ``` b"}
    entry = only_entry(
        sarif(result(message=message, locations=locations, relatedLocations=[{"id": 1, **locations_at("b.py", 7)[0]}]))
    )

    assert entry.data["description"] == "**Bold** there (b.py:7) <script>\n\n**Code**\n\n````\na ``` b\n````"
    secret = only_entry(sarif(result(locations=locations), driver={"name": "gitleaks"}))
    assert (secret.report_type, secret.data["description"]) == ("secret_detection", None)


def test_a_rule_is_found_by_id_when_the_index_contradicts():
    rules = [{"id": "A", "helpUri": "https://a.example"}, {"id": "B", "helpUri": "https://b.example"}]
    extensions = [{"name": "More", "rules": [{"id": "C", "helpUri": "https://c.example"}]}]
    document = sarif(
        result("B", ruleIndex=0),
        result("A/part", ruleIndex=0),
        result("C/part"),
        {"message": {"text": "m"}, "rule": {"index": 0, "toolComponent": {"name": "More"}}},
        result("D", ruleIndex=7),
        rules=rules,
    )
    document["runs"][0]["tool"]["extensions"] = extensions

    urls = [entry.data["identifiers"][0]["url"] for entry in read(document)[0]]

    assert urls == ["https://b.example", "https://a.example", "https://c.example", "https://c.example", None]


@pytest.mark.parametrize(
    ("suppressions", "reason"),
    [
        (None, None),
        ([], None),
        ([{"kind": "inSource"}], "acceptable_risk"),
        ([{"kind": "external", "status": "accepted", "justification": "a False-Positive"}], "false_positive"),
        ([{"status": "accepted"}, {"status": "rejected"}], None),
        ([{"status": "underReview"}], None),
        ("text", None),
    ],
)
def test_suppressions_are_dismissals(suppressions, reason):
    entry = only_entry(sarif(result(suppressions=suppressions)))

    assert (entry.suppression or {}).get("dismissal_reason") == reason


def test_many_locations_are_counted_and_many_steps_truncated():
    flow = [{"threadFlows": [{"locations": [{"location": locations_at()[0]}] * 1001}]}]
    entries, reading = read(sarif(result(locations=locations_at() * 103, codeFlows=flow)))

    assert (len(entries), entries[-1].reason, entries[-1].count) == (101, "limit", 3)
    assert len(entries[0].data["details"]["code_flow"]["items"]) == 1000
    assert reading.warnings["over_limit"]["count"] > 1


def test_too_many_entries_are_refused(monkeypatch):
    monkeypatch.setattr(shapes, "MAX_ENTRIES", 3)

    assert refusal(sarif(*[result()] * 4))[2] == "has 4 results, at most 3 are taken"
    assert refusal({"matches": [{}] * 4})[2] == "has 4 matches, at most 3 are taken"


def test_packages_are_read_from_sarif_messages():
    text = "Package: p\nInstalled Version: 1\nFixed Version: 2\nType: {}"
    entries, _ = read(sarif(*(result("CVE-2026-1", message={"text": text.format(kind)}) for kind in ("apk", "npm"))))

    assert [entry.report_type for entry in entries] == ["container_scanning", "dependency_scanning"]
    assert entries[0].data["name"] == "CVE-2026-1 in p 1"
    assert entries[1].data["solution"] == "Upgrade p to 2."
    of_image = only_entry(sarif(result(message={"text": text}), properties={"imageName": "shop:1"}))
    assert (of_image.report_type, of_image.data["location"]["image"]) == ("container_scanning", "shop:1")


@pytest.mark.parametrize(
    ("value", "kind", "found"),
    [
        ("cve-2026-1", "cve", "CVE-2026-1"),
        ("ghsa-AAAA-bbbb-cccc", "ghsa", "GHSA-aaaa-bbbb-cccc"),
        ("PYSEC-2026-1", "pysec", "PYSEC-2026-1"),
        ("RHSA-2026:1", "rhsa", "RHSA-2026:1"),
        ("CVE-2026-1-p", "x_id", "CVE-2026-1-p"),
        ("12", "x_id", "12"),
    ],
)
def test_ids_of_advisories_become_identifiers(value, kind, found):
    one = advisory(value, "x")

    assert (one["external_type"], one["external_id"]) == (kind, found)


def test_tags_become_cwe_and_owasp_identifiers():
    tags = ["external/cwe/cwe-079", "CWE-79: Cross-site", 20, "0120", "cwe-20", "no cwe", None]
    assert [one["external_id"] for one in weaknesses(tags)] == ["79", "20", "120"]
    found = owasp(["OWASP-A03:2021 - Injection", "owasp-a1:2017", "A03:2021"])
    assert [(one["external_id"], one["name"]) for one in found] == [
        ("A03:2021", "A03:2021 - Injection"),
        ("A1:2017", "A1:2017"),
    ]


PRIMARY = {"external_type": "t", "external_id": "v"}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"fingerprints": {"a/v1": "1", "a/v2": "2"}, "partial": {"primaryLocationLineHash": "x"}}, "fingerprint"),
        ({"fingerprints": {"a/v1": "requires login"}, "partial": {"primaryLocationLineHash": "x"}}, "linehash"),
        ({"fingerprints": {"a": " "}, "snippet": " a  b "}, "snippet"),
        ({"partial": {"hash": {"value": "x"}, "commitSha": "c"}}, "partial"),
        ({"partial": {"email": "e", "author": "a"}}, "line"),
    ],
)
def test_keys_use_the_most_stable_value(values, kind):
    location = {"file": "f", "start_line": 1, "end_line": 2}

    assert key_of("sast", location, PRIMARY, message="m", **values).startswith(f"f:t:v:{kind}:")


def test_keys_without_lines_use_the_message_and_fingerprint_version():
    def key(message="m", **values):
        return key_of("sast", {}, PRIMARY, message=message, **values)

    assert key(" m  n ") == key("m n") != key("o")
    assert key(fingerprints={"a/v1": "1", "a/v10": "2"}) == key(fingerprints={"a/v10": "2"})


@pytest.mark.parametrize(
    ("purl", "package"),
    [
        ("pkg:npm/%40acme/http@1.2.0", ("@acme/http", "1.2.0", "npm")),
        ("pkg:pypi/flask@2.2.2?a=b#c", ("flask", "2.2.2", "pip")),
        ("pkg:deb/debian/curl@7.5%2Bb1?arch=i386", ("curl", "7.5+b1", "deb")),
        ("pkg:golang/github.com/a/b", ("github.com/a/b", "", "go")),
        ("pkg:maven/org.acme/core@1", ("org.acme/core", "1", "maven")),
        ("acme", None),
        ("pkg:npm", None),
    ],
)
def test_package_urls_are_parsed(purl, package):
    found = package_of_purl(purl)

    assert (found and (found.name, found.version, found.manager)) == package


def test_packages_of_maven_have_their_group():
    vulnerability = {"id": "CVE-2020-1", "severity": "High"}
    artifact = {"name": "core", "version": "1", "purl": "pkg:maven/org.acme/core@1"}
    target = {
        "Target": "pom.xml",
        "Class": "lang-pkgs",
        "Type": "pom",
        "Vulnerabilities": [{"VulnerabilityID": "CVE-2020-1", "PkgName": "org.acme:core", "InstalledVersion": "1"}],
    }

    for document in (
        {"matches": [{"vulnerability": vulnerability, "artifact": artifact}]},
        {"SchemaVersion": 2, "Results": [target]},
    ):
        assert only_entry(document).data["name"] == "CVE-2020-1 in org.acme/core 1"


def test_an_empty_sbom_is_a_scan_when_its_type_is_given():
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.7", "components": [], "vulnerabilities": []}
    _, without = read(bill)
    _, given = read(bill, report_type="dependency_scanning")

    assert (sorted(without.warnings), sorted(given.warnings)) == (
        ["inventory_only", "newer_version"],
        ["newer_version"],
    )
    assert [next(iter(one.sections.values())).complete for one in (without, given)] == [False, True]


def test_npm_audit_6_gives_a_finding_per_version():
    advisory_6 = {"id": 7, "module_name": "a", "cves": ["CVE-2026-1"], "findings": [{"version": "1"}, {"version": "2"}]}
    entries, _ = read({"advisories": {"7": advisory_6 | {"cwe": "CWE-9", "recommendation": "Upgrade."}}})

    assert [one.key for one in entries] == [f"package-lock.json:a@{version}:npm-audit_id:7" for version in "12"]
    assert [one["external_id"] for one in entries[0].data["identifiers"]] == ["7", "CVE-2026-1", "9"]


@pytest.mark.parametrize("value", [None, 5, "text", [], {}, [[]], [None], {"a": 1}])
@pytest.mark.parametrize(
    "name",
    [
        *("runs/0/results/0/message", "runs/0/results/0/locations", "runs/0/results/0/codeFlows"),
        *("runs/0/results/0/locations/0/physicalLocation", "runs/0/results/0/properties", "runs/0/invocations"),
        *("runs/0/tool/extensions", "runs/0/tool/driver/rules/0", "runs/0/artifacts", "runs/0/originalUriBaseIds"),
        *("runs/0/results/0/fixes", "runs/0/results/0/relatedLocations", "runs/0/versionControlProvenance"),
    ],
)
def test_parts_of_unexpected_types_are_skipped(name, value):
    document = sarif(result(locations=locations_at(), codeFlows=[]), result("S"), rules=[{"id": "R"}])
    *path, last = name.split("/")
    holder = document
    for part in path:
        holder = holder[int(part) if part.isdigit() else part]
    holder[int(last) if last.isdigit() else last] = value

    entries, _ = read(document)

    assert len(entries) >= 1
    assert all(isinstance(one, SkippedEntries) or one.data["name"] for one in entries)


def test_hostile_texts_are_stored_as_text():
    hostile = "\0<script>alert(1)</script>" + "[" * 50 + "](" * 50
    entries, reading = read(
        sarif(
            result("<b>\0", message={"text": hostile, "markdown": hostile}, locations=locations_at("a\0.py")),
            driver={"name": "<i>\0Scan"},
        )
    )

    stored = orjson.dumps(entries[0].data).decode()
    assert "\\u0000" not in stored
    assert [one.id for one in (section.scanner for section in reading.sections.values())] == ["i-scan"]


def test_package_lines_are_parsed_in_linear_time():
    text = "Package: {}\nVersion: 1 \r\nFixed Version:\nType: npm"
    names = ("p", "p" + "\t " * 500_000, "p" + " " * 1_000_000 + "q")
    entries, _ = read(sarif(*(result(message={"text": text.format(name)}) for name in names)))

    assert [entry.data["location"]["dependency"]["version"] for entry in entries[:2]] == ["1", "1"]
    assert [entry.data["solution"] for entry in entries[:2]] == [None, None]
    assert entries[2].reason == "broken"


def test_location_links_are_parsed_in_linear_time():
    for message in ("[" * 50_000, "[a](" * 20_000, "[" + "\\a" * 50_000):
        assert texts.without_links(message, {})[0]


def test_skipped_entries_are_counted_by_reason():
    kinds = ({"kind": "pass"}, {"kind": "notApplicable"}, {"kind": "informational"}, {"baselineState": "absent"})
    entries, _ = read(sarif(*(result(**kind) for kind in kinds), "no object"))

    assert [one.reason for one in entries] == ["pass", "not_applicable", "informational", "absent", "broken"]
    assert entries[-1].pointer == "/runs/0/results/4"
