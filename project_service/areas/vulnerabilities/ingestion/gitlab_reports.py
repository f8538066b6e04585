"""Reports in GitLab's format, made ready to be stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from project_service.areas.vulnerabilities.fingerprints import finding_uuid, fingerprint
from project_service.areas.vulnerabilities.formats.gitlab import normalising
from project_service.areas.vulnerabilities.formats.gitlab.reports import Report
from project_service.areas.vulnerabilities.formats.identifying import indexed_package_of
from project_service.areas.vulnerabilities.formats.shapes import obj
from project_service.areas.vulnerabilities.ingestion import deduplication
from project_service.areas.vulnerabilities.ingestion.deduplication import MatchKeys
from project_service.areas.vulnerabilities.ingestion.uploads import Data, Part, PartGroup, ReadReport
from project_service.areas.vulnerabilities.tracking.sightings import sighting_of, signatures_of

FAILURE = "failure"


def upload_of(report: Report, format_name: str, given_type: str | None, category: str) -> ReadReport:
    """Return what an upload of a report consists of."""
    scanners = normalising.Scanners(report.scan)
    match_keys = [deduplication.match_keys_of(report.report_type, entry) for entry in report.vulnerabilities]
    first: Data = next(iter(report.vulnerabilities), {})
    version = obj(obj(report.scan).get("scanner")).get("version")
    scanner = {**(scanners.main or scanners.of(first)), "version": version if isinstance(version, str) else None}
    scan = normalising.scan_of(report.scan)
    part = Part(report.report_type, scanner, category, scan, len(match_keys), report.remediations)
    group = PartGroup(scanner, category, obj(scan).get("status") != FAILURE, [part])

    def rows(project_id: int) -> Iterator[tuple[Any, ...]]:
        return _rows(report, match_keys, scanners, project_id)

    return ReadReport(format_name, report.version, given_type, [group], rows)


def _rows(
    report: Report, match_keys: list[MatchKeys], scanners: normalising.Scanners, project_id: int
) -> Iterator[tuple[Any, ...]]:
    """Return the values of each finding (``ingestion.ROW``), all of the first part."""
    report_type = report.report_type
    remedies = normalising.Remedies(report.remediations)
    ranks = deduplication.ranks([keys.compare_key for keys in match_keys])
    is_first = deduplication.first_occurrences(keys.digests for keys in match_keys)
    entries = zip(report.vulnerabilities, match_keys, ranks, is_first, strict=True)
    for position, (vulnerability, keys, rank, is_kept) in enumerate(entries):
        remedy = remedies.position_of(vulnerability)
        rank_number = normalising.rank_of(report_type, vulnerability).number
        identity = None
        if keys.identifier is not None:
            identity = finding_uuid(report_type, keys.identifier.hex(), keys.location.hex(), project_id)
        data = normalising.finding_data(
            report_type, vulnerability, scanners.of(vulnerability), remedies.summary(remedy)
        )
        yield (
            0,
            rank_number,
            rank,
            position,
            is_kept,
            False,  # set when all findings are stored: which one a dismissal matches depends on the others
            False,
            identity,
            fingerprint(keys.compare_key),
            keys.compare_key,
            remedy,
            indexed_package_of(data["location"]),
            data,
            sighting_of(rank_number, identity or fingerprint(keys.compare_key), data, signatures_of(vulnerability)),
        )
