"""The list of dependencies, by API and as a page."""

from __future__ import annotations

import pytest

from tests.support.sample_data import DEV, RITA
from tests.support.security_reports import bill, ingest, report, vulnerability

PAGE = "/{}/-/security/dependencies"


@pytest.fixture
def dev(as_, project):
    return as_(DEV)


def dependencies(client, project, query=""):
    response = client.get(f"/projects/{project.id}/dependencies?{query}")
    assert response.status_code == 200, response.json
    return response.json


def names_and_versions(listed):
    return [(one["name"], one["version"]) for one in listed]


@pytest.mark.both_databases
def test_dependencies_have_their_open_findings(dev, project):
    component = {"bom-ref": "b", "type": "library", "name": "b", "licenses": [{"license": {"id": "MIT"}}]}
    document = bill("acme-b", "acme-a")
    ingest(dev, project, document | {"components": [*document["components"], component]}, "")

    first, second, third = dependencies(dev, project)

    assert (first["name"], first["version"], first["package_manager"]) == ("acme-a", "1.0", "npm")
    assert first["purl"] == "pkg:npm/acme-a@1.0"
    assert [one["name"] for one in first["vulnerabilities"]] == ["CVE-2099-2 in acme-a 1.0"]
    assert first["vulnerabilities"][0]["url"].startswith(f"http://localhost/{project.full_path}/-/security/findings/")
    assert second["vulnerabilities"][0]["severity"] == "unknown"
    assert (third["package_manager"], third["purl"], third["direct"]) == ("unknown", None, None)
    assert (third["licenses"], third["vulnerabilities"]) == ([{"name": "MIT", "url": None}], [])


def test_findings_of_other_scanners_count_but_dismissed_ones_do_not(dev, project):
    ingest(dev, project, bill("acme-a", "acme-b", vulnerabilities=[]), "")
    audit = {
        "dependencies": [
            {"name": "acme-a", "version": "1.0", "vulns": [{"id": "CVE-2099-7"}]},
            {"name": "acme-b", "version": "2.0", "vulns": [{"id": "CVE-2099-8"}]},
        ]
    }
    ingest(dev, project, audit, "")
    ignored = {"vulnerability_id": "1", "package_name": "acme-a", "analyzed_version": "1.0"}
    ingest(dev, project, {"report_meta": {}, "vulnerabilities": [], "ignored_vulnerabilities": [ignored]}, "")

    listed = dependencies(dev, project)

    assert [[one["name"] for one in found["vulnerabilities"]] for found in listed] == [
        ["CVE-2099-7 in acme-a 1.0"],
        [],
    ]


@pytest.mark.both_databases
def test_a_newer_sbom_replaces_the_older_one_of_its_scanner(dev, project):
    ingest(dev, project, bill("acme-a", "acme-b"), "")
    ingest(dev, project, bill("acme-b", "acme-c"), "")
    ingest(dev, project, bill("acme-c", "acme-d"), "", category="web")
    ingest(dev, project, bill("acme-e"), "", branch="feature")

    assert names_and_versions(dependencies(dev, project)) == [("acme-b", "1.0"), ("acme-c", "1.0"), ("acme-d", "1.0")]
    assert names_and_versions(dependencies(dev, project, "branch=feature")) == [("acme-e", "1.0")]
    assert names_and_versions(dependencies(dev, project, "search=me-d")) == [("acme-d", "1.0")]
    assert names_and_versions(dependencies(dev, project, "package_manager=pip,npm&per_page=1&page=2")) == [
        ("acme-c", "1.0")
    ]
    assert dependencies(dev, project, "package_manager=pip") == []


def test_a_repeated_scan_of_a_commit_keeps_the_sbom(dev, project):
    ingest(dev, project, bill("acme-a"), "", commit="ab" * 20)
    for _ in range(2):
        ingest(dev, project, {"results": [], "metrics": {}, "generated_at": ""}, "", commit="ab" * 20)

    assert names_and_versions(dependencies(dev, project)) == [("acme-a", "1.0")]


def test_without_an_sbom_the_list_is_empty(dev, project, as_):
    assert dependencies(dev, project) == []
    assert as_(RITA).get(f"/projects/{project.id}/dependencies").status_code == 403


def test_the_page_lists_searches_and_links(visit, dev, project):
    page = PAGE.format(project.full_path)
    developer = visit(DEV)
    assert "No dependencies yet" in developer.get(page).text
    ingest(dev, project, bill("acme-a", "acme-<b>"), "")

    shown = developer.get(page).text
    assert "CVE-2099-1" in shown
    assert "acme-&lt;b&gt;" in shown
    found = developer.get(f"{page}?search=acme-a&package_manager=npm").text
    assert ("acme-a" in found, "acme-&lt;b&gt;" in found) == (True, False)
    assert "No dependency fits these filters" in developer.get(f"{page}?search=nothing").text


@pytest.mark.both_databases
def test_packages_with_long_names_are_accepted(dev, project):
    name = "".join(chr(0x4E00 + number) for number in range(1_000))
    document = bill("acme-a", name)
    ingest(dev, project, document, "")
    ingest(dev, project, {"dependencies": [{"name": name, "version": "1", "vulns": [{"id": "CVE-2099-7"}]}]}, "")
    location = {"dependency": {"package": {"name": name * 5}, "version": "1"}}
    ingest(dev, project, report(vulnerability(location=location)), "dependency_scanning")

    assert names_and_versions(dependencies(dev, project)) == [("acme-a", "1.0")]
