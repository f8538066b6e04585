"""osv-scanner's JSON (scanner formats reference, section 8). An entry is a group of ids for one vulnerability."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from project_service.areas.vulnerabilities.formats import identifying, shapes
from project_service.areas.vulnerabilities.formats.grading import severity_score, severity_word
from project_service.areas.vulnerabilities.formats.packages import Package, package_entry, upgrade
from project_service.areas.vulnerabilities.formats.paths import Paths
from project_service.areas.vulnerabilities.formats.shapes import (
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
)
from project_service.areas.vulnerabilities.levels import FindingSeverity
from project_service.areas.vulnerabilities.report_types import DEPENDENCY_SCANNING

FORM = "osv-scanner"
OSV_SCANNER = Scanner("osv-scanner", "OSV-Scanner")
MAVEN = "Maven"


def read(top: Data, reading: Reading) -> Iterator[ReportEntry | SkippedEntries]:
    """Return the entries of a document."""
    section = reading.section(OSV_SCANNER, DEPENDENCY_SCANNING)
    paths = Paths(reading)
    for source, entry, group, pointer in shapes.within_limit(_groups(top["results"]), "groups", FORM, "/results"):
        try:
            yield _finding(source, entry, group, section, paths, pointer)
        except BrokenEntry:
            yield reading.broken(section, pointer)


def _groups(results: Any) -> Iterator[tuple[Data, Data, Data, str]]:
    """Return every group of every package; ids in no group are one by themselves."""
    for number, result in enumerate(results):
        for place, entry in enumerate(_list(result.get("packages"))):
            pointer = f"/results/{number}/packages/{place}"
            package = obj(entry)
            grouped: set[str] = set()
            for position, one in enumerate(_list(package.get("groups"))):
                group = obj(one)
                grouped.update(texts(group.get("ids")))
                yield obj(result.get("source")), package, group, f"{pointer}/groups/{position}"
            for position, one in enumerate(_list(package.get("vulnerabilities"))):
                name = text(obj(one).get("id"))
                if name not in grouped:
                    alone = {"ids": [name], "aliases": obj(one).get("aliases")}
                    yield obj(result.get("source")), package, alone, f"{pointer}/vulnerabilities/{position}"


def _finding(
    source: Data, entry: Data, group: Data, section: ScannerSection, paths: Paths, pointer: str
) -> ReportEntry:
    about = obj(entry.get("package"))
    name, ids = text(about.get("name")), texts(group.get("ids"))
    if text(about.get("ecosystem")) == MAVEN:
        name = name.replace(":", "/")
    identifiers = identifying.advisories(((one, None) for one in (*ids, *texts(group.get("aliases")))), OSV_SCANNER.id)
    if not name or not ids or not identifiers:
        raise BrokenEntry
    advisories = [one for one in objs(_list(entry.get("vulnerabilities"))) if text(one.get("id")) in ids]
    words = (severity_word(obj(one.get("database_specific")).get("severity")) for one in advisories)
    severity = severity_score(group.get("max_severity")) or next((one for one in words if one), None)
    path = text(source.get("path"))
    fixed = next((found for one in advisories if (found := _fixed(one, text(about.get("name"))))), "")
    return package_entry(
        section,
        section.default_type,
        Package(name, text(about.get("version")), paths.relative(path, pointer=pointer) if path else ""),
        [*identifiers, *identifying.weaknesses(one for advisory in advisories for one in _weaknesses(advisory))],
        severity or FindingSeverity.UNKNOWN,
        texts=[text(advisories[0].get(part)) for part in ("summary", "details")] if advisories else (),
        solution=upgrade(name, [fixed] if fixed else []),
        urls=[(text(one.get("url")), "") for found in advisories for one in objs(_list(found.get("references")))],
    )


def _weaknesses(advisory: Data) -> Iterator[Any]:
    yield from texts(obj(advisory.get("database_specific")).get("cwe_ids"))
    for affected in objs(_list(advisory.get("affected"))):
        for one in objs(_list(obj(affected.get("database_specific")).get("cwes"))):
            yield one.get("cweId")


def _fixed(advisory: Data, package: str) -> str:
    """Return the first version without the vulnerability."""
    for affected in objs(_list(advisory.get("affected"))):
        if text(obj(affected.get("package")).get("name")) not in ("", package):
            continue
        for found in objs(_list(affected.get("ranges"))):
            for event in objs(_list(found.get("events"))):
                if version := text(event.get("fixed")):
                    return version
    return ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
