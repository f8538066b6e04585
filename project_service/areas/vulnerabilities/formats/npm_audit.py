"""JSON of npm audit 6 and later (scanner formats reference, section 8). An entry is an advisory about a package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from project_service.areas.vulnerabilities.formats import identifying, shapes
from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.areas.vulnerabilities.formats.grading import severity_word
from project_service.areas.vulnerabilities.formats.packages import Package, package_entry, pointer_part
from project_service.areas.vulnerabilities.formats.shapes import (
    MAX_AFFECTED,
    BrokenEntry,
    Data,
    Reading,
    ReportEntry,
    Scanner,
    ScannerSection,
    SkippedEntries,
    obj,
    objs,
    text,
    texts,
    web,
)
from project_service.areas.vulnerabilities.levels import FindingSeverity
from project_service.areas.vulnerabilities.report_types import DEPENDENCY_SCANNING

FORM = "npm audit"
FAILED = f"{FORM} report parsing failed"
NPM_AUDIT = Scanner("npm-audit", "npm audit")
LOCK_FILE = "package-lock.json"
GHSA_IN_URL = re.compile(r"GHSA(?:-[0-9a-z]{4}){3}", re.IGNORECASE)


def version_of(top: Data) -> str | None:
    """Return the version of the format: reports of npm 7 and later contain it."""
    return text(top.get("auditReportVersion", obj(top.get("audit")).get("auditReportVersion"))) or None


def read(top: Data, reading: Reading) -> Iterator[ReportEntry | SkippedEntries]:
    """Return the entries of a document.

    Raises:
        BrokenReport: npm could not audit, or parts that decide about the rest are invalid.

    """
    section = reading.section(NPM_AUDIT, DEPENDENCY_SCANNING)
    above = ""
    if isinstance(top.get("audit"), dict):  # of npm audit fix --dry-run
        top, above = top["audit"], "/audit"
    error = top.get("error")
    if isinstance(error, dict):
        message = " ".join(part for name in ("code", "summary") if (part := text(error.get(name)).strip()))
        message = (
            message or text(top.get("message")).strip() or text(error.get("detail")).strip() or "no reason is given"
        )
        message = shapes.cut(shapes.collapsed(message), shapes.MAX_CODE_LENGTH)
        raise BrokenReport(FAILED, f"npm audit failed: {message}", f"{above}/error")
    advisories = _of_npm_6(top, above) if "advisories" in top else _of_npm_7(top, above)
    for advisory, package, fix, pointer in shapes.within_limit(advisories, "vulnerabilities", FORM):
        try:
            yield _finding(obj(advisory), package, fix, section)
        except BrokenEntry:
            yield reading.broken(section, pointer)


def _of_npm_7(top: Data, above: str) -> Iterator[tuple[Any, Package, str | None, str]]:
    """Return each advisory with its package, its solution and its pointer, once for each package."""
    yielded: set[tuple[str, str]] = set()
    entries = dict(_members(top, "vulnerabilities", above))
    explained = _explained(entries)
    for name, entry in entries.items():
        pointer = f"{above}/vulnerabilities/{pointer_part(name)}"
        if name not in explained:
            yield None, Package(name, file=LOCK_FILE), None, pointer
            continue
        for index, cause in enumerate(_via(entry)):
            if isinstance(cause, str):
                continue  # the name of another entry
            package = text(obj(cause).get("name")) or text(obj(entry).get("name")) or name
            key = package, text(obj(cause).get("url")) or text(obj(cause).get("source"))
            if key in yielded and key[1]:
                continue
            yielded.add(key)
            yield (
                cause,
                Package(package, file=LOCK_FILE),
                _fix(obj(entry).get("fixAvailable")),
                f"{pointer}/via/{index}",
            )


def _via(entry: Any) -> list[Any]:
    via = obj(entry).get("via")
    return via if isinstance(via, list) else [via]


def _explained(entries: dict[str, Any]) -> set[str]:
    """Return the names of the entries that have an advisory, or lead to one by the names of other entries."""
    users: dict[str, list[str]] = {}
    waiting = []
    for name, entry in entries.items():
        via = _via(entry)
        if any(not isinstance(cause, str) for cause in via):
            waiting.append(name)
        for cause in via:
            if isinstance(cause, str):
                users.setdefault(cause, []).append(name)
    explained: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in explained:
            explained.add(name)
            waiting += users.get(name, ())
    return explained


def _of_npm_6(top: Data, above: str) -> Iterator[tuple[Any, Package, str | None, str]]:
    for name, raw in _members(top, "advisories", above):
        advisory = obj(raw)
        versions = dict.fromkeys(text(finding.get("version")) for finding in _objects(advisory.get("findings"))) or {
            "": None
        }
        if len(versions) > MAX_AFFECTED:
            raise BrokenReport(
                FAILED, f"has more than {MAX_AFFECTED} versions", f"{above}/advisories/{pointer_part(name)}"
            )
        for version in versions:
            package = Package(text(advisory.get("module_name")), version, LOCK_FILE)
            solution = text(advisory.get("recommendation")) or None
            yield raw, package, solution, f"{above}/advisories/{pointer_part(name)}"


def _finding(advisory: Data, package: Package, solution: str | None, section: ScannerSection) -> ReportEntry:
    url = web(advisory.get("url"))
    match = GHSA_IN_URL.search(text(advisory.get("github_advisory_id")) or url or "")
    first = match[0] if match else text(advisory.get("source")) or text(advisory.get("id"))
    if not package.name or not first:
        raise BrokenEntry
    identifiers = identifying.advisories(
        [(first, url), *((cve, None) for cve in texts(advisory.get("cves")))], "npm-audit"
    )
    cwe = advisory.get("cwe")
    return package_entry(
        section,
        section.default_type,
        package,
        [*identifiers, *identifying.weaknesses(cwe if isinstance(cwe, list) else [cwe])],
        severity_word(advisory.get("severity")) or FindingSeverity.UNKNOWN,
        texts=[text(advisory.get("title")), text(advisory.get("overview"))],
        solution=solution,
        urls=[(url or "", "")],
    )


def _members(top: Data, name: str, above: str) -> Iterator[tuple[str, Any]]:
    members = top.get(name)
    if not isinstance(members, dict):
        raise BrokenReport(FAILED, "must be an object", f"{above}/{name}")
    return iter(members.items())


def _objects(value: Any) -> Iterator[Data]:
    return objs(value if isinstance(value, list) else ())


def _fix(available: Any) -> str | None:
    name, version = text(obj(available).get("name")), text(obj(available).get("version"))
    if not name or not version:
        return None
    return f"Upgrade {name} to {version}." + (" This is a breaking change." if available.get("isSemVerMajor") else "")
