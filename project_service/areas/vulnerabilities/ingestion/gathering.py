"""Findings of the formats of scanners, compared within their report and made ready to be stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from project_service.areas.vulnerabilities.fingerprints import finding_uuid
from project_service.areas.vulnerabilities.formats.documents.report_json import Spool
from project_service.areas.vulnerabilities.formats.identifying import indexed_package_of
from project_service.areas.vulnerabilities.formats.sarif.own_results import (
    is_of_export,
    project_fingerprint_of,
    tracked_key_of,
)
from project_service.areas.vulnerabilities.formats.shapes import (
    BROKEN,
    LIMIT,
    Reading,
    ReportEntry,
    ScannerSection,
    SkippedEntries,
)
from project_service.areas.vulnerabilities.ingestion import deduplication
from project_service.areas.vulnerabilities.ingestion.uploads import Data, Part, PartGroup
from project_service.areas.vulnerabilities.severity_order import FindingRank
from project_service.areas.vulnerabilities.tracking.sightings import sighting_of


@dataclass(eq=False, slots=True)
class _Gathered:
    """The findings of one part, by their positions in it."""

    part: Part
    keys: list[str] = field(default_factory=list)
    digests: list[tuple[bytes, ...]] = field(default_factory=list)
    orders: list[tuple[int, int, str]] = field(default_factory=list)
    sorts: list[int] = field(default_factory=list)
    primaries: list[bytes] = field(default_factory=list)
    suppressed: list[bool] = field(default_factory=list)
    packages: list[str | None] = field(default_factory=list)
    kept: list[bool] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    marks: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, entry: ReportEntry) -> None:
        """Add what compares and orders a finding."""
        location = entry.data["location"]
        identifiers = [
            (identifier["external_type"], identifier["external_id"]) for identifier in entry.data["identifiers"]
        ]
        keys = deduplication.match_keys(
            entry.report_type, entry.key, location, identifiers, foreign_text=deduplication.text_of(entry.data)
        )
        self.part.found += 1
        self.keys.append(entry.key)
        digests = keys.digests
        if is_of_export(entry.key):
            scanner = self.part.scanner["external_id"]
            digests = (deduplication.tracked_digest(scanner, self.part.category, tracked_key_of(entry.key)),)
        self.digests.append(digests)
        self.orders.append((location.get("start_line", 0), location.get("start_column", 0), location.get("file", "")))
        self.sorts.append(FindingRank(entry.report_type, entry.severity, entry.confidence).number)
        self.primaries.append(keys.identifier or b"")
        self.suppressed.append(entry.suppression is not None)
        self.packages.append(indexed_package_of(location))
        self.marks.append(entry.marks)

    def compare(self) -> None:
        """Find duplicates, number the findings that have the same key, and rank them."""
        self.kept = list(deduplication.first_occurrences(self.digests, self.suppressed))
        self._number_same_keys()
        self.ranks = deduplication.ranks(self.keys)
        self.digests.clear()
        self.orders.clear()

    def row(self, position: int, project_id: int, data: Data) -> tuple[Any, ...]:
        """Return the values of a finding (``ingestion.ROW``), and what tracking compares."""
        key, report_type = self.keys[position], self.part.report_type
        place_digest = project_fingerprint_of(key)
        return (
            self.sorts[position],
            self.ranks[position],
            position,
            self.kept[position],
            self.suppressed[position],  # dismissals are applied when all findings are stored
            self.suppressed[position],
            finding_uuid(report_type, self.primaries[position].hex(), place_digest, project_id),
            place_digest,
            key,
            None,
            self.packages[position],
            data,
            sighting_of(self.sorts[position], tracked_key_of(key), data, self.marks[position]),
        )

    def _number_same_keys(self) -> None:
        counts = Counter(key for key, is_kept in zip(self.keys, self.kept, strict=True) if is_kept)
        same = [index for index, key in enumerate(self.keys) if counts[key] > 1 and self.kept[index]]
        numbers: Counter[str] = Counter()
        for index in sorted(same, key=self.orders.__getitem__):
            key = self.keys[index]
            numbers[key] += 1
            if numbers[key] > 1:
                self.keys[index] = f"{key}#{numbers[key]}"


class Gathering:
    """The findings of a report. Their data are in a file of their own until they are stored."""

    def __init__(
        self, entries: Iterable[ReportEntry | SkippedEntries], reading: Reading, spool_dir: Path | None
    ) -> None:
        self._gathered: dict[tuple[ScannerSection, str], _Gathered] = {}
        self._groups: dict[ScannerSection, PartGroup] = {}
        self._order: list[_Gathered] = []
        self._reading = reading
        self._spool = Spool(self._noted(entries), spool_dir)
        for section in reading.sections.values():
            self._finish(section)
        for gathered in self._gathered.values():
            gathered.compare()

    @property
    def groups(self) -> list[PartGroup]:
        """The parts by scanner and category, in the order of the report."""
        return [self._groups[section] for section in self._reading.sections.values()]

    def rows(self, project_id: int) -> Iterator[tuple[Any, ...]]:
        """Return the index of the part of each finding, and its values."""
        parts = [part for group in self.groups for part in group.parts]
        indexes = {id(part): index for index, part in enumerate(parts)}
        positions: Counter[int] = Counter()
        for gathered, data in zip(self._order, self._spool, strict=True):
            index = indexes[id(gathered.part)]
            yield (index, *gathered.row(positions[index], project_id, data))
            positions[index] += 1

    def close(self) -> None:
        """Delete the file."""
        self._spool.close()

    def _noted(self, entries: Iterable[ReportEntry | SkippedEntries]) -> Iterator[Data]:
        """Note what compares each finding, and return its data."""
        for entry in entries:
            if isinstance(entry, SkippedEntries):
                self._group(entry.section).left[entry.reason] += entry.count
                continue
            gathered = self._gathered.get((entry.section, entry.report_type))
            if gathered is None:
                gathered = self._begin(entry.section, entry.report_type)
            gathered.add(entry)
            self._order.append(gathered)
            if entry.suppression is not None:
                entry.data["suppression"] = entry.suppression
            yield entry.data

    def _group(self, section: ScannerSection) -> PartGroup:
        group = self._groups.get(section)
        if group is None:
            group = self._groups[section] = PartGroup(section.scanner.data(), section.category, complete=True)
        return group

    def _begin(self, section: ScannerSection, report_type: str) -> _Gathered:
        part = Part(report_type, section.scanner.data(), section.category)
        self._group(section).parts.append(part)
        gathered = self._gathered[section, report_type] = _Gathered(part)
        return gathered

    def _finish(self, section: ScannerSection) -> None:
        """Give the parts of a section what is known at its end; a section without findings has a part too."""
        group = self._group(section)
        if not group.parts:
            self._begin(section, section.default_type)
        group.complete = section.complete and not (group.left[BROKEN] or group.left[LIMIT])
        group.left = +group.left
        for part in group.parts:
            part.scan = {
                "type": part.report_type,
                "status": "success" if group.complete else "failure",
                "start_time": section.started,
                "end_time": section.ended,
            }


@contextmanager
def gathered(
    entries: Iterable[ReportEntry | SkippedEntries], reading: Reading, spool_dir: Path | None = None
) -> Iterator[Gathering]:
    """Read all entries of a report; they are on disk, in ``spool_dir``, until the block ends.

    Raises:
        BrokenReport: it is invalid.

    """
    gathering = Gathering(entries, reading, spool_dir)
    try:
        yield gathering
    finally:
        gathering.close()
