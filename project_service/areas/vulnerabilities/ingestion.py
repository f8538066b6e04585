"""Takes a report in: its findings become those of a pipeline.

The report is read and judged before anything is locked; then one transaction stores it. While it does, feedback of the
project waits, so that no finding is stored as open that somebody has just dismissed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from sqlalchemy import Table, case, delete, func, insert, select, update

from project_service.areas.vulnerabilities import merging, normalising, reports
from project_service.areas.vulnerabilities.dismissals import hold, mark_anew
from project_service.areas.vulnerabilities.fingerprints import finding_uuid, fingerprint
from project_service.areas.vulnerabilities.merging import Outline
from project_service.areas.vulnerabilities.models import Finding, Pipeline, Remediation, SecurityReport, Tally
from project_service.areas.vulnerabilities.queries import default_branch, find_pipeline
from project_service.areas.vulnerabilities.reports import Report
from project_service.areas.vulnerabilities.severity_order import numbers_of
from project_service.domain.projects import Project
from project_service.domain.repositories import REF
from project_service.kit.db.session import db, writing
from project_service.kit.http.errors import Invalid

BATCH = 500
LONGEST_REF = 255
SHA = re.compile(r"[0-9a-fA-F]{7,64}")
FINDINGS: Table = Finding.__table__  # type: ignore[assignment]  # a Table, typed as less
COLUMNS = (
    *("project_id", "pipeline_id", "report_id"),
    *("sort", "place", "position", "kept", "dismissed"),
    *("uuid", "project_fingerprint", "compare_key", "remediation", "data"),
)
REMEDIATIONS: Table = Remediation.__table__  # type: ignore[assignment]  # as above


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of a report: ``merged`` findings are in the pipeline's list, ``dropped`` ones were there already."""

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
    """Store a report in a new pipeline, or in one that is there; ``BrokenReport`` if it is none, and nothing changes.

    A pipeline that is there has its own ``ref`` and ``sha``: others are refused.
    """
    _check(ref, sha)
    sha = sha.lower() if sha else None
    with reports.reading(file, report_type) as report:
        outlines = [merging.outline(report_type, vulnerability) for vulnerability in report.vulnerabilities]
        with writing():
            hold(project)
            if pipeline_id is None:
                pipeline = _add_pipeline(project, ref, sha)
            else:
                pipeline = _find_pipeline(project, ref, sha, pipeline_id)
            stored = _store(pipeline, report, outlines)
            if _has_others(stored):
                _merge_again(pipeline, report_type)
            mark_anew(pipeline)
            _count_again(pipeline)
            merged = _count_kept(stored)
    return Ingested(pipeline.id, report_type, len(outlines), merged, len(outlines) - merged)


def _check(ref: str | None, sha: str | None) -> None:
    problems: dict[str, str | list[str]] = {}
    if ref is not None and (len(ref) > LONGEST_REF or not ref.isprintable() or not REF.fullmatch(ref)):
        problems["ref"] = "is invalid"
    if sha is not None and not SHA.fullmatch(sha):
        problems["sha"] = "is invalid"
    if problems:
        raise Invalid(**problems)


def _add_pipeline(project: Project, ref: str | None, sha: str | None) -> Pipeline:
    pipeline = Pipeline(project_id=project.id, ref=ref or default_branch(project), sha=sha)
    db.session.add(pipeline)
    db.session.flush()
    return pipeline


def _find_pipeline(project: Project, ref: str | None, sha: str | None, pipeline_id: int) -> Pipeline:
    pipeline = find_pipeline(project, pipeline_id)
    contradictions: dict[str, str | list[str]] = {
        name: "is not that of the pipeline"
        for name, given, own in (("ref", ref, pipeline.ref), ("sha", sha, (pipeline.sha or "").lower()))
        if given is not None and given != own
    }
    if contradictions:
        raise Invalid(**contradictions)
    return pipeline


def _store(pipeline: Pipeline, report: Report, outlines: list[Outline]) -> SecurityReport:
    scanners = normalising.Scanners(report.scan)
    first: dict[str, Any] = next(iter(report.vulnerabilities), {})
    stored = SecurityReport(
        pipeline_id=pipeline.id,
        report_type=report.report_type,
        version=report.version,
        scan=normalising.scan_of(report.scan),
        turn=merging.turn_of(report.report_type, (scanners.main or scanners.of(first))["external_id"]),
    )
    db.session.add(stored)
    db.session.flush()
    remedies = normalising.Remedies(report.remediations)
    remediations = ((stored.id, position, data) for position, data in enumerate(report.remediations))
    _insert(REMEDIATIONS, ("report_id", "position", "data"), remediations)
    rows = _rows(report, outlines, scanners, remedies, pipeline.project_id)
    origins = (pipeline.project_id, pipeline.id, stored.id)
    _insert(FINDINGS, COLUMNS, (origins + row for row in rows))
    return stored


def _rows(
    report: Report,
    outlines: list[Outline],
    scanners: normalising.Scanners,
    remedies: normalising.Remedies,
    project_id: int,
) -> Iterator[tuple[Any, ...]]:
    """What stands in the columns after the origins."""
    report_type = report.report_type
    places = merging.places([outline.compare_key for outline in outlines])
    kept = merging.kept(outline.keys for outline in outlines)
    entries = zip(report.vulnerabilities, outlines, places, kept, strict=True)
    for position, (vulnerability, outline, place, stays) in enumerate(entries):
        remedy = remedies.position_of(vulnerability)
        identity = None
        if outline.identifier is not None:
            identity = finding_uuid(report_type, outline.identifier.hex(), outline.place.hex(), project_id)
        project_fingerprint = fingerprint(outline.compare_key)
        scanner = scanners.of(vulnerability)
        data = normalising.finding_data(report_type, vulnerability, scanner, remedies.summary(remedy))
        yield (
            normalising.sort_of(report_type, vulnerability).number,
            place,
            position,
            stays,
            False,  # until all of them are there: what a dismissal means depends on the others
            identity,
            project_fingerprint,
            outline.compare_key,
            remedy,
            data,
        )


def _insert(table: Table, columns: tuple[str, ...], rows: Iterator[tuple[Any, ...]]) -> None:
    """Insert many rows, whose values stand in the order of ``columns``, in batches."""
    while batch := list(itertools.islice(rows, BATCH)):
        db.session.execute(insert(table), [dict(zip(columns, row, strict=True)) for row in batch])


def _has_others(stored: SecurityReport) -> bool:
    others = select(SecurityReport.id).where(
        SecurityReport.pipeline_id == stored.pipeline_id,
        SecurityReport.report_type == stored.report_type,
        SecurityReport.id != stored.id,
    )
    return db.session.scalar(others.limit(1)) is not None


def _merge_again(pipeline: Pipeline, report_type: str) -> None:
    """Decide once more what is kept, now that the pipeline has another report of this kind."""
    rows = db.session.execute(
        select(Finding.id, Finding.compare_key, Finding.kept, Finding.place, Finding.data)
        .join(SecurityReport, SecurityReport.id == Finding.report_id)
        .where(Finding.pipeline_id == pipeline.id, Finding.sort.between(*numbers_of(report_type)))
        .order_by(SecurityReport.turn, SecurityReport.id, Finding.position)
        .execution_options(yield_per=BATCH)
    )
    before, outlines = [], []
    for row in rows:
        before.append((row.id, row.kept, row.place))
        pairs = [(one["external_type"] or "", one["external_id"] or "") for one in row.data["identifiers"]]
        outlines.append(merging.outline_of(report_type, row.compare_key, row.data["location"], pairs))
    places = merging.places([outline.compare_key for outline in outlines])
    kept = merging.kept(outline.keys for outline in outlines)
    changes = (
        {"id": finding_id, "kept": stays, "place": place}
        for (finding_id, *known), stays, place in zip(before, kept, places, strict=True)
        if [stays, place] != known
    )
    while some := list(itertools.islice(changes, BATCH)):
        db.session.execute(update(Finding), some)


def _count_again(pipeline: Pipeline) -> None:
    """Count the findings of a pipeline by their sorts; a report may have changed what is dismissed of other kinds."""
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
