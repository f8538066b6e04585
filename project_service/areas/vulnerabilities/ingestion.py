"""Ingestion of a security report: store its findings in a pipeline.

The report is read and validated before anything is locked; then one transaction stores it. Feedback of the project
waits for that transaction, so that no finding is stored as open after its dismissal.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from flask import current_app
from sqlalchemy import Table, case, delete, func, insert, select, update

from project_service.areas.vulnerabilities import deduplication, normalising, reports
from project_service.areas.vulnerabilities.deduplication import MatchKeys
from project_service.areas.vulnerabilities.dismissals import lock_feedback, reapply_dismissals
from project_service.areas.vulnerabilities.fingerprints import finding_uuid, fingerprint
from project_service.areas.vulnerabilities.models import Finding, Pipeline, Remediation, SecurityReport, Tally
from project_service.areas.vulnerabilities.pipelines import next_repetition, pipeline_for
from project_service.areas.vulnerabilities.reports import Report
from project_service.areas.vulnerabilities.severity_order import numbers_of
from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import REF
from project_service.kit.db.base import table_of
from project_service.kit.db.session import db, writing
from project_service.kit.http.errors import Invalid

BATCH_SIZE = 500
MAX_REF_LENGTH = 255
SHA = re.compile(r"[0-9a-fA-F]{7,64}")
FINDINGS = table_of(Finding)
COLUMNS = (
    *("project_id", "pipeline_id", "report_id"),
    *("sort", "place", "position", "kept", "dismissed"),
    *("uuid", "project_fingerprint", "compare_key", "remediation", "data"),
)
REMEDIATIONS = table_of(Remediation)


@dataclass(frozen=True, slots=True)
class Ingested:
    """Result of an ingestion: ``merged`` findings are listed in the pipeline, ``dropped`` ones are duplicates."""

    pipeline_id: int
    report_type: str
    found: int
    merged: int
    dropped: int


def ingest(
    project: Project,
    file: IO[bytes],
    report_type: str,
    *,
    ref: str | None = None,
    sha: str | None = None,
    pipeline_id: int | None = None,
) -> Ingested:
    """Store a report in the pipeline of its commit, in a new one, or in the requested one (``pipelines``).

    Raises:
        BrokenReport: the file is not a valid report; nothing is stored.
        Invalid: ``ref`` or ``sha`` is invalid, or not that of the existing pipeline.

    """
    _check(ref, sha)
    sha = sha.lower() if sha else None
    with reports.open_report(file, report_type, current_app.config["SETTINGS"].data_dir) as report:
        match_keys = [deduplication.match_keys_of(report_type, entry) for entry in report.vulnerabilities]
        with writing():
            lock_feedback(project)
            scanner = _scanner_of(report)
            pipeline = pipeline_for(project, report_type, scanner, ref=ref, sha=sha, pipeline_id=pipeline_id)
            stored = _store(pipeline, report, scanner, match_keys)
            if _has_others(stored):
                _deduplicate(pipeline, report_type)
            reapply_dismissals(pipeline)
            _recount(pipeline)
            merged = _count_kept(stored)
    return Ingested(pipeline.id, report_type, len(match_keys), merged, len(match_keys) - merged)


def _check(ref: str | None, sha: str | None) -> None:
    problems: dict[str, str | list[str]] = {}
    if ref is not None and (len(ref) > MAX_REF_LENGTH or not ref.isprintable() or not REF.fullmatch(ref)):
        problems["ref"] = "is invalid"
    if sha is not None and not SHA.fullmatch(sha):
        problems["sha"] = "is invalid"
    if problems:
        raise Invalid(**problems)


def _scanner_of(report: Report) -> str:
    """Return the id of the scanner of a report, or else of its first finding; empty if it is not given."""
    scanners = normalising.Scanners(report.scan)
    first: dict[str, Any] = next(iter(report.vulnerabilities), {})
    return (scanners.main or scanners.of(first))["external_id"] or ""


def _store(pipeline: Pipeline, report: Report, scanner: str, match_keys: list[MatchKeys]) -> SecurityReport:
    scanners = normalising.Scanners(report.scan)
    stored = SecurityReport(
        pipeline_id=pipeline.id,
        report_type=report.report_type,
        version=report.version,
        scan=normalising.scan_of(report.scan),
        turn=deduplication.order_of_scanner(report.report_type, scanner),
        scanner=scanner,
        repetition=next_repetition(pipeline, report.report_type, scanner),
    )
    db.session.add(stored)
    db.session.flush()
    remedies = normalising.Remedies(report.remediations)
    remediations = ((stored.id, position, data) for position, data in enumerate(report.remediations))
    _insert(REMEDIATIONS, ("report_id", "position", "data"), remediations)
    rows = _rows(report, match_keys, scanners, remedies, pipeline.project_id)
    origins = (pipeline.project_id, pipeline.id, stored.id)
    _insert(FINDINGS, COLUMNS, (origins + row for row in rows))
    return stored


def _rows(
    report: Report,
    match_keys: list[MatchKeys],
    scanners: normalising.Scanners,
    remedies: normalising.Remedies,
    project_id: int,
) -> Iterator[tuple[Any, ...]]:
    """Return the values of the columns after the ids of project, pipeline and report."""
    report_type = report.report_type
    ranks = deduplication.ranks([keys.compare_key for keys in match_keys])
    kept = deduplication.first_occurrences(keys.digests for keys in match_keys)
    entries = zip(report.vulnerabilities, match_keys, ranks, kept, strict=True)
    for position, (vulnerability, keys, rank, is_kept) in enumerate(entries):
        remedy = remedies.position_of(vulnerability)
        identity = None
        if keys.identifier is not None:
            identity = finding_uuid(report_type, keys.identifier.hex(), keys.location.hex(), project_id)
        project_fingerprint = fingerprint(keys.compare_key)
        scanner = scanners.of(vulnerability)
        data = normalising.finding_data(report_type, vulnerability, scanner, remedies.summary(remedy))
        yield (
            normalising.sort_of(report_type, vulnerability).number,
            rank,
            position,
            is_kept,
            False,  # set when all findings are stored: which one a dismissal matches depends on the others
            identity,
            project_fingerprint,
            keys.compare_key,
            remedy,
            data,
        )


def _insert(table: Table, columns: tuple[str, ...], rows: Iterator[tuple[Any, ...]]) -> None:
    """Insert many rows, whose values stand in the order of ``columns``, in batches."""
    while batch := list(itertools.islice(rows, BATCH_SIZE)):
        db.session.execute(insert(table), [dict(zip(columns, row, strict=True)) for row in batch])


def _has_others(stored: SecurityReport) -> bool:
    others = select(SecurityReport.id).where(
        SecurityReport.pipeline_id == stored.pipeline_id,
        SecurityReport.report_type == stored.report_type,
        SecurityReport.id != stored.id,
    )
    return db.session.scalar(others.limit(1)) is not None


def _deduplicate(pipeline: Pipeline, report_type: str) -> None:
    """Deduplicate the findings of all reports of a type, after another one was added."""
    rows = db.session.execute(
        select(Finding.id, Finding.compare_key, Finding.kept, Finding.place, Finding.data)
        .join(SecurityReport, SecurityReport.id == Finding.report_id)
        .where(Finding.pipeline_id == pipeline.id, Finding.sort.between(*numbers_of(report_type)))
        .order_by(SecurityReport.turn, SecurityReport.id, Finding.position)
        .execution_options(yield_per=BATCH_SIZE)
    )
    before, match_keys = [], []
    for row in rows:
        before.append((row.id, row.kept, row.place))
        pairs = [(one["external_type"] or "", one["external_id"] or "") for one in row.data["identifiers"]]
        match_keys.append(deduplication.match_keys(report_type, row.compare_key, row.data["location"], pairs))
    ranks = deduplication.ranks([keys.compare_key for keys in match_keys])
    kept = deduplication.first_occurrences(keys.digests for keys in match_keys)
    changes = (
        {"id": finding_id, "kept": is_kept, "place": rank}
        for (finding_id, *former), is_kept, rank in zip(before, kept, ranks, strict=True)
        if [is_kept, rank] != former
    )
    while batch := list(itertools.islice(changes, BATCH_SIZE)):
        db.session.execute(update(Finding), batch)


def _recount(pipeline: Pipeline) -> None:
    """Recount the findings of a pipeline by sort; a report may have changed the dismissals of other types too."""
    db.session.execute(delete(Tally).where(Tally.pipeline_id == pipeline.id))
    sort = (Finding.pipeline_id, Finding.sort)
    dismissed = func.sum(case((Finding.dismissed.is_(True), 1), else_=0))
    counted = (
        select(*sort, func.count(), dismissed)
        .where(Finding.pipeline_id == pipeline.id, Finding.kept.is_(True))
        .group_by(*sort)
    )
    db.session.execute(insert(Tally).from_select(["pipeline_id", "sort", "found", "dismissed"], counted))


def _count_kept(stored: SecurityReport) -> int:
    kept = select(func.count()).select_from(Finding).where(Finding.report_id == stored.id, Finding.kept.is_(True))
    return db.session.scalar(kept) or 0
