"""Files that scanners really write, and how they are read; and a table of such kinds in other formats."""

from __future__ import annotations

import io
import zipfile
from collections import Counter

import orjson
import pytest

from tests.support.git_repositories import keep_repository
from tests.support.sample_data import DEV
from tests.support.security_reports import DATA, findings, send

CASES = sorted((DATA / "public-cases" / "reports-and-errors").glob("0*.expected.json"))


@pytest.fixture
def dev(as_, project):
    return as_(DEV)


def upload(client, project, document, **fields):
    response = send(client, project, document, "", **fields)
    assert response.status_code == 201, response.json
    return response.json, client.get(findings(project)).json


@pytest.mark.skipif(not CASES, reason="the public cases are missing")
@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_a_public_case_is_read_right(case, dev, project):
    right = orjson.loads(case.read_bytes())["right"]
    (file,) = (one for one in case.parent.glob(f"{case.name.partition('.')[0]}.*") if one != case)

    response = send(dev, project, file.read_bytes(), "")
    body, listed = response.json, dev.get(findings(project)).json
    open_ = [one for one in listed if one["state"] == "detected"]
    values = {
        "status": response.status_code,
        "found": body.get("found"),
        "merged": body.get("merged"),
        "left": body.get("left", {}).get("total"),
        "files": sorted(one["location"].get("file", "") for one in listed),
        "open": len(open_),
        "open_critical": sum(one["severity"] == "critical" for one in open_),
        "types": dict(Counter(one["report_type"] for one in listed)),
        "severities": dict(Counter(one["severity"] for one in listed)),
        "versions": [one["location"].get("dependency", {}).get("version") for one in listed],
    }

    assert {name: values[name] for name in right if name in values} == {
        name: value for name, value in right.items() if name in values
    }
    assert right.get("reason_has", "") in body.get("reason", "")
    assert all(right.get("name_not_has", "\0") not in one["name"] for one in listed)


def result(rule="R", text="Something is wrong.", uri="a.py", region=None, **fields):
    location = {"physicalLocation": {"artifactLocation": {"uri": uri}} | ({"region": region} if region else {})}
    return {"ruleId": rule, "message": {"text": text}, "locations": [location]} | fields


def sarif(*results, rules=(), scanner="Scan", **run):
    tool = {"driver": {"name": scanner, "rules": list(rules)}}
    return {"version": "2.1.0", "runs": [{"tool": tool, "results": list(results), **run}]}


def bandit(*files):
    issues = [{"test_id": "B1", "issue_text": "t", "filename": file, "line_number": 3.0} for file in files]
    return {"results": issues, "metrics": {}, "generated_at": "", "errors": []}


def bom(*vulnerabilities, components=(), **fields):
    document = {"bomFormat": "CycloneDX", "specVersion": "1.6", "components": list(components)}
    return document | {"vulnerabilities": list(vulnerabilities)} | fields


@pytest.mark.parametrize(
    ("uri", "root", "path", "warnings"),
    [
        ("../lib/a.py", None, "../lib/a.py", ["outside_path"]),
        ("../shop/src/a.py", "/builds/acme/shop", "src/a.py", []),
        ("src/../../lib/a.py", None, "../lib/a.py", ["outside_path"]),
        ("/home/runner/work/web/web/src/a.py", None, "src/a.py", []),
        ("D:\\a\\web\\web\\src\\a.py", None, "src/a.py", []),
        ("/builds/group/name/src/a.py", None, "src/a.py", []),
        ("file:///var/lib/jenkins/workspace/job/src/a.py", None, "src/a.py", []),
        ("/azp/agent/_work/1/s/src/a.py", None, "src/a.py", []),
        ("/codebuild/output/src123/src/a.py", None, "a.py", []),
        ("/home/runner/work/web/api/a.py", None, "/home/runner/work/web/api/a.py", ["absolute_path"]),
    ],
)
def test_paths_of_runners_and_outside_of_the_folder_are_shown(uri, root, path, warnings, dev, project):
    fields = {"source_root": root} if root else {}
    body, (finding,) = upload(dev, project, bandit(uri), **fields)

    assert (finding["location"]["file"], finding["location"]["start_line"]) == (path, 3)
    assert [one["code"] for one in body["warnings"]] == warnings
    assert (body["left"]["total"], body["reports"][0]["complete"]) == (0, True)


def test_the_folder_of_a_runner_is_removed_if_the_repository_has_the_file(dev, project, tmp_path):
    keep_repository(project, tmp_path, files={"src/app.py": b"x = 1\n"})
    paths = ("/builds/group/sub/name/src/app.py", "/github/workspace/src/other.py")
    _, listed = upload(dev, project, bandit(*paths))

    assert sorted(one["location"]["file"] for one in listed) == ["/github/workspace/src/other.py", "src/app.py"]


@pytest.mark.parametrize("is_reversed", [False, True])
def test_an_open_finding_goes_before_a_suppressed_one_on_the_same_line(is_reversed, dev, project):
    lines = {"region": {"startLine": 3}}
    results = [result(**lines, suppressions=[{"kind": "inSource"}]), result(**lines)]
    body, (finding,) = upload(dev, project, sarif(*(reversed(results) if is_reversed else results)))

    assert (body["merged"], body["dropped"], body["suppressed"], finding["state"]) == (1, 1, 0, "detected")


def test_results_without_lines_are_the_same_only_if_everything_else_is(dev, project):
    logical = [{"logicalLocations": [{"fullyQualifiedName": name}]} for name in ("a.f", "a.g", "a.g")]
    results = [result(), result(), result(text="Another thing."), *(result("L", locations=[one]) for one in logical)]
    first, _ = upload(dev, project, sarif(*results), sha="ab" * 20)
    again = send(dev, project, sarif(*results, scanner="Other"), "", sha="ab" * 20).json

    assert (first["merged"], first["dropped"]) == (4, 2)
    assert again["found"] == 6


def test_versions_of_a_vulnerability_are_findings_of_their_own(dev, project):
    component = {"bom-ref": "c", "type": "library", "name": "acme", "version": "2.0"}
    versions = [{"version": "1.0"}, {"range": "vers:npm/<1"}, {"version": "3.0", "status": "unaffected"}]
    vulnerabilities = [
        {"id": "CVE-2099-1", "affects": [{"ref": "other", "versions": versions}]},
        {"id": "CVE-2099-2", "affects": [{"ref": "c", "versions": [{"version": "2.0", "status": "unaffected"}]}]},
        {"id": "CVE-2099-3", "affects": [{"ref": "c"}], "rejected": "2099-01-01T00:00:00Z"},
    ]
    body, listed = upload(dev, project, bom(*vulnerabilities, components=[component]))

    assert sorted(one["location"]["dependency"]["version"] for one in listed) == ["1.0", "vers:npm/<1"]
    assert body["left"]["reasons"] == {"not_affected": 2}


def test_resources_of_a_cluster_are_places_of_their_own(dev, project):
    entry = {"VulnerabilityID": "CVE-2099-1", "PkgName": "lib", "InstalledVersion": "1", "Severity": "LOW"}
    results = [{"Target": "img:1 (debian 12)", "Class": "os-pkgs", "Vulnerabilities": [entry]}]
    resources = [{"Namespace": "shop", "Kind": "Pod", "Name": name, "Results": results} for name in ("a", "b")]
    body, listed = upload(dev, project, {"ClusterName": "c", "Findings": resources})

    assert (body["merged"], len({one["uuid"] for one in listed})) == (2, 2)
    assert sorted(one["location"]["kubernetes_resource"]["name"] for one in listed) == ["a", "b"]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"matches": [{"Cycle": {"ProductName": "x"}, "artifact": {}}]}, "none of GitLab"),
        ({"matches": [], "descriptor": {"name": "xeol"}}, "none of GitLab"),
        ({"dependencies": [], "scanInfo": {}}, "none of GitLab"),
        ({"results": [{"packages": [{"name": "a"}]}]}, "none of GitLab"),
        ({"advisories": {}, "abandoned": {}}, "none of GitLab"),
        ({"ClusterName": "x", "Nodes": []}, "none of GitLab"),
        ([["django", "<2", "1.0", "text", "123"]], "safety 1"),
        ({"meta": {"scan_type": "scan"}, "scan_results": {}}, "safety 3"),
        (sarif(None, 5), "none of its 2 entries could be read"),
        ({"matches": [{"vulnerability": {}}]}, "none of its 1 entries could be read"),
        ({"message": "no", "error": {"summary": "", "detail": "gone"}}, "npm audit failed: no"),
        ({"error": {"summary": "", "detail": "gone"}}, "npm audit failed: gone"),
        ({"auditReportVersion": 2}, "must be an object"),
        ({"audit": {"entries": 3}}, "must be an object"),
        ({"auditReportVersion": 2, "vulnerabilities": {"a": {"via": ["b"]}}}, "none of its 1 entries"),
        ({"matches": [], "findings": [{"id": 1}]}, "none of GitLab"),
        ({"results": [{"packages": [], "vulnerabilities": [{"id": "CVE-2099-1"}]}]}, "none of GitLab"),
        ({"SchemaVersion": 2, "Results": {"Target": "a"}}, "must be an array"),
        ({"SchemaVersion": 2, "Results": [{"Target": "a", "Vulnerabilities": {"b": {}}}]}, "none of its 1 entries"),
        ({"ClusterName": "c", "Resources": [5]}, "none of its 1 entries"),
        ({"site": [{"alerts": {"a": {}}}]}, "must be an array"),
    ],
)
def test_files_that_only_look_like_a_report_are_refused(document, reason, dev, project):
    response = send(dev, project, document, "")

    assert response.status_code == 422
    assert reason in response.json["reason"]


def test_a_file_of_another_tool_is_refused_with_a_type_too(dev, project):
    twistcli = {"results": [{"packages": [{"name": "a"}], "vulnerabilities": [{"id": "CVE-2099-1"}]}]}

    response = send(dev, project, twistcli, "container_scanning")

    assert (response.status_code, response.json["message"]) == (422, "Report format is not recognised")
    assert "it has results and no vulnerabilities" in response.json["reason"]
    assert send(dev, project, {"results": {}}, "container_scanning").status_code == 201


NPM = {"name": "b", "url": "https://example.com/1", "source": 1}
OSV = {"package": {"name": "a"}, "vulnerabilities": [{"id": "OSV-1"}]}
TRIVY = {"VulnerabilityID": "CVE-2099-1", "PkgName": "a"}
MODIFIED = [{"Type": "vulnerability", "Status": status, "Finding": TRIVY} for status in ("ignored", "not_affected")]


@pytest.mark.parametrize(
    ("document", "merged", "reasons"),
    [
        ({"auditReportVersion": 2, "vulnerabilities": {"a": {"via": ["b"]}, "b": {"via": [NPM]}}}, 1, {}),
        ({"auditReportVersion": 2, "vulnerabilities": {"a": {"via": []}, "b": {"via": NPM}}}, 1, {"broken": 1}),
        ([{"name": "a", "vulns": {}}, {"name": "b", "vulns": [{"id": "CVE-2099-1"}]}], 1, {"broken": 1}),
        ({"results": [{"packages": [5, OSV, {**OSV, "groups": {}}]}]}, 1, {"broken": 2}),
        ({"results": [{"packages": [{**OSV, "license_violations": ["GPL"]}]}]}, 1, {"license": 1}),
        ({"SchemaVersion": 2, "Results": [5, {"Vulnerabilities": [TRIVY], "Secrets": {}}]}, 1, {"broken": 2}),
        ({"SchemaVersion": 2, "Results": [{"ExperimentalModifiedFindings": MODIFIED}]}, 1, {"not_affected": 1}),
        ({"ClusterName": "c", "Resources": [{"Kind": "Pod", "Vulnerabilities": [TRIVY]}]}, 1, {}),
        ({"site": {"alerts": [{"pluginid": "1", "name": "n"}]}}, 1, {}),
    ],
    ids=["names", "npm", "pip", "osv", "licence", "trivy", "ignored", "cluster", "zap"],
)
def test_what_a_report_names_in_another_shape_is_read_or_counted(document, merged, reasons, dev, project):
    body, _ = upload(dev, project, document)

    assert (body["merged"], body["left"]["reasons"]) == (merged, reasons)
    assert body["found"] == merged + body["dropped"] + body["left"]["total"]


def test_a_resource_that_trivy_could_not_scan_makes_the_run_incomplete(dev, project):
    body, _ = upload(dev, project, {"ClusterName": "c", "Resources": [{"Name": "a", "Error": "no such image"}]})

    assert [one["code"] for one in body["warnings"]] == ["incomplete_run"]
    assert not body["reports"][0]["complete"]


def archive(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return file.getvalue()


def test_a_zip_archive_with_one_report_is_opened(dev, project):
    body, _ = upload(dev, project, archive(report=orjson.dumps(sarif(result()))))

    assert (body["format"], body["merged"]) == ("sarif", 1)


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (archive(a=b"{}", b=b"{}"), "has 2 files (a, b): it must have exactly one"),
        (archive(), "has no file"),
        (b"PK\3\4 and no more", "not a valid ZIP archive"),
        (archive(**{f"n{number}": b"" for number in range(1_100)}), "too many files"),
        (archive(a=b"{" * 9)[:-40], "not a valid ZIP archive"),
    ],
    ids=["two files", "no file", "no archive", "many files", "a part of an archive"],
)
def test_another_zip_archive_is_refused(file, reason, dev, project):
    response = send(dev, project, file, "")

    assert response.status_code == 422
    assert reason in response.json["reason"]


@pytest.mark.parametrize(
    ("message", "rule", "name"),
    [
        ("Type: x\nMessage: Key is old.\nLink: y", {"id": "R"}, "Key is old."),
        ("Type: x\nMessage: Key is old.", {"id": "R", "shortDescription": {"text": "Old key"}}, "Old key"),
        ("One. " + "Two. " * 60, {"id": "R"}, "One."),
        ("Code calls it.", {"id": "GO-2021-0113"}, "GO-2021-0113: Code calls it."),
        ("See CVE-2099-7 here.", {"id": "R"}, "CVE-2099-7: See CVE-2099-7 here."),
        ("CVE-2099-7 is here.", {"id": "R"}, "CVE-2099-7 is here."),
    ],
)
def test_names_say_what_is_wrong(message, rule, name, dev, project):
    _, (finding,) = upload(dev, project, sarif(result(rule["id"], message), rules=[rule]))

    assert finding["name"] == name


def test_whole_numbers_may_have_a_fraction_of_zero(dev, project):
    region = {"startLine": 12.0, "endLine": 13.0, "startColumn": 2.0}
    _, (finding,) = upload(dev, project, sarif(result(region=region)))

    assert finding["location"] == {"file": "a.py", "start_line": 12, "end_line": 13, "start_column": 2}
