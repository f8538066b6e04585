"""osv-scanner's JSON (scanner formats reference, section 8). An entry is a group of ids for one vulnerability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
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
    for package, group, pointer in shapes.within_limit(_groups(top["results"], paths), "groups", FORM, "/results"):
        if group is None:
            yield SkippedEntries(section, "license", pointer)
            continue
        try:
            yield package.finding(group, section, pointer)
        except BrokenEntry:
            yield reading.broken(section, pointer)


def _groups(results: Any, paths: Paths) -> Iterator[tuple[_Packaged, Data | None, str]]:
    """Return every group of every package; ids in no group are one by themselves, a forbidden licence is ``None``."""
    for number, result in enumerate(results):
        for package_number, entry in enumerate(shapes.elements(result.get("packages"))):
            pointer = f"/results/{number}/packages/{package_number}"
            package = _Packaged(obj(entry), text(obj(result.get("source")).get("path")), paths)
            if not package.entry:
                yield package, {}, pointer
            grouped: set[str] = set()
            for position, raw_group in enumerate(shapes.elements(package.entry.get("groups"))):
                group = obj(raw_group)
                grouped.update(texts(group.get("ids")))
                yield package, group, f"{pointer}/groups/{position}"
            for position, vulnerability in enumerate(shapes.elements(package.entry.get("vulnerabilities"))):
                name = text(obj(vulnerability).get("id"))
                if name not in grouped:
                    alone = {"ids": [name], "aliases": obj(vulnerability).get("aliases")}
                    yield package, alone, f"{pointer}/vulnerabilities/{position}"
            for position, _ in enumerate(shapes.elements(package.entry.get("license_violations"))):
                yield package, None, f"{pointer}/license_violations/{position}"


@dataclass(frozen=True, slots=True)
class _Advisory:
    """What is used of an advisory of a package, by its position in the report."""

    position: int
    severity: FindingSeverity | None
    texts: list[str]
    fixed: str
    weaknesses: list[Any]
    urls: list[tuple[str, str]]


class _Packaged:
    """A package of a report, with its advisories by their ids: each is read once, however many groups name it."""

    def __init__(self, entry: Data, path: str, paths: Paths) -> None:
        self.entry, self._path, self._paths = entry, path, paths
        about = obj(entry.get("package"))
        self._name, self._version = text(about.get("name")), text(about.get("version"))
        commit = text(about.get("commit"))
        if not self._name and commit:  # code that is recognised by its commit: C and C++, submodules, copies
            folder = path.replace("\\", "/").rstrip("/").rpartition("/")[2]
            self._name, self._version = folder or commit, commit
        self._is_of_maven = text(about.get("ecosystem")) == MAVEN
        self._advisories: dict[str, list[_Advisory]] = {}
        for position, advisory in enumerate(objs(_list(entry.get("vulnerabilities")))):
            self._advisories.setdefault(text(advisory.get("id")), []).append(self._advisory(position, advisory))

    def finding(self, group: Data, section: ScannerSection, pointer: str) -> ReportEntry:
        """Return the finding of a group of ids."""
        name, ids = self._name.replace(":", "/") if self._is_of_maven else self._name, texts(group.get("ids"))
        identifiers = identifying.advisories(
            ((name, None) for name in (*ids, *texts(group.get("aliases")))), OSV_SCANNER.id
        )
        if not name or not ids or not identifiers:
            raise BrokenEntry
        named = (
            advisory for id_ in dict.fromkeys(ids) for advisory in self._advisories.get(id_, ())[: shapes.MAX_VALUES]
        )
        advisories = sorted(islice(named, shapes.MAX_VALUES), key=lambda advisory: advisory.position)
        severity = severity_score(group.get("max_severity")) or next(
            (advisory.severity for advisory in advisories if advisory.severity), None
        )
        fixed = next((advisory.fixed for advisory in advisories if advisory.fixed), "")
        return package_entry(
            section,
            section.default_type,
            Package(name, self._version, self._paths.relative(self._path, pointer=pointer) if self._path else ""),
            [
                *identifiers,
                *identifying.weaknesses(weakness for advisory in advisories for weakness in advisory.weaknesses),
            ],
            severity or FindingSeverity.UNKNOWN,
            texts=advisories[0].texts if advisories else (),
            solution=upgrade(name, [fixed] if fixed else []),
            urls=[url for advisory in advisories[: shapes.MAX_LINKS] for url in advisory.urls],
        )

    def _advisory(self, position: int, advisory: Data) -> _Advisory:
        return _Advisory(
            position,
            severity_word(obj(advisory.get("database_specific")).get("severity")),
            [text(advisory.get(part)) for part in ("summary", "details")],
            _fixed(advisory, self._name),
            list(islice(_weaknesses(advisory), shapes.MAX_VALUES)),
            [(text(reference.get("url")), "") for reference in shapes.members(advisory.get("references"))],
        )


def _weaknesses(advisory: Data) -> Iterator[Any]:
    yield from texts(obj(advisory.get("database_specific")).get("cwe_ids"))
    for affected in objs(_list(advisory.get("affected"))):
        for cwe in objs(_list(obj(affected.get("database_specific")).get("cwes"))):
            yield cwe.get("cweId")


def _fixed(advisory: Data, package: str) -> str:
    """Return the first version without the vulnerability."""
    for affected in objs(_list(advisory.get("affected"))):
        if text(obj(affected.get("package")).get("name")) not in ("", package):
            continue
        for affected_range in objs(_list(affected.get("ranges"))):
            for event in objs(_list(affected_range.get("events"))):
                if version := text(event.get("fixed")):
                    return version
    return ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
