"""Ingestion of a security report: store its findings in a pipeline.

The report is read and validated before anything is locked; then one transaction stores it. Feedback of the project
waits for that transaction, so that no finding is stored as open after its dismissal.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from flask import current_app
from sqlalchemy import Table, case, delete, func, insert, select, update

from project_service.areas.vulnerabilities.findings.dismissals import lock_feedback, reapply_dismissals
from project_service.areas.vulnerabilities.formats import paths
from project_service.areas.vulnerabilities.formats.detection import (
    GITLAB,
    Format,
    begins_as_gitlab_report,
    format_of,
    type_of_gitlab_report,
)
from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.areas.vulnerabilities.formats.documents.splitting import Document, refuse_xml
from project_service.areas.vulnerabilities.formats.documents.unpacking import unpacked
from project_service.areas.vulnerabilities.formats.gitlab import reports
from project_service.areas.vulnerabilities.formats.sarif.own_results import is_of_export, tracked_key_of
from project_service.areas.vulnerabilities.formats.shapes import BROKEN, Options, Reading
from project_service.areas.vulnerabilities.ingestion import deduplication, gitlab_reports
from project_service.areas.vulnerabilities.ingestion.gathering import Gathering, gathered
from project_service.areas.vulnerabilities.ingestion.pipelines import Series, next_repetition, pipeline_for
from project_service.areas.vulnerabilities.ingestion.repository_files import RepositoryFiles
from project_service.areas.vulnerabilities.ingestion.uploads import GITLAB_FORMATS, Ingested, Part, ReadReport, ingested
from project_service.areas.vulnerabilities.models import (
    Component,
    Finding,
    FindingCount,
    Pipeline,
    Remediation,
    SecurityReport,
)
from project_service.areas.vulnerabilities.severity_order import numbers_of
from project_service.areas.vulnerabilities.tracking import trend
from project_service.areas.vulnerabilities.tracking.gate import judge
from project_service.areas.vulnerabilities.tracking.matching import Sighting
from project_service.areas.vulnerabilities.tracking.tracker import TrackedSeries, track
from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import REF
from project_service.kit.db.base import table_of
from project_service.kit.db.session import db, writing
from project_service.kit.http.errors import Invalid

BATCH_SIZE = 500
MAX_REF_LENGTH = 255
MAX_CATEGORY_LENGTH = 255
MAX_ROOT_LENGTH = 1024
MAX_SCANNER_LENGTH = 255  # of what is compared and indexed
SHA = re.compile(r"[0-9a-fA-F]{7,64}")
FINDINGS = table_of(Finding)
ROW = (
    *("sort", "place", "position", "kept", "dismissed", "suppressed"),
    *("uuid", "project_fingerprint", "compare_key", "remediation", "package", "data"),
)
COLUMNS = ("project_id", "pipeline_id", "report_id", *ROW)
REMEDIATIONS = table_of(Remediation)
COMPONENTS = table_of(Component)
COMPONENT_COLUMNS = tuple(column.name for column in COMPONENTS.columns)


class _DryRun(Exception):
    """Ends the transaction of a dry run without storing anything."""

    def __init__(self, result: Ingested) -> None:
        super().__init__()
        self.result = result


def ingest(
    project: Project,
    file: IO[bytes],
    report_type: str | None = None,
    *,
    ref: str | None = None,
    sha: str | None = None,
    pipeline_id: int | None = None,
    category: str | None = None,
    source_root: str | None = None,
    dry_run: bool = False,
    gate_options: dict[str, Any] | None = None,
) -> Ingested:
    """Store a report in the pipeline of its commit, in a new one, or in the requested one (``pipelines``).

    Without ``report_type`` the type is found out. ``dry_run`` does everything but store. With ``gate_options``, which
    are those of ``gate.judge``, the pipeline is judged.

    Raises:
        BrokenReport: the file is not a valid report; nothing is stored.
        Invalid: a parameter is invalid, or ``ref`` or ``sha`` is not that of the existing pipeline.

    """
    _check(ref, sha, category, source_root)
    sha = sha.lower() if sha else None
    files = RepositoryFiles(project, sha, ref)
    options = Options(report_type, category, source_root, project.full_path, files.may_have)
    spool_dir = current_app.config["SETTINGS"].data_dir
    try:
        with unpacked(file, spool_dir) as plain, _opened(plain, options, spool_dir) as upload, writing():
            lock_feedback(project)
            pipeline = pipeline_for(project, _series_of(upload), ref=ref, sha=sha, pipeline_id=pipeline_id)
            result = _store(pipeline, upload)
            if gate_options is not None:
                result = dataclasses.replace(result, gate=judge(project, pipeline_id=pipeline.id, **gate_options))
            if dry_run:
                for finding in (result.gate or {}).get("findings", ()):
                    finding["tracked_id"] = None  # it is not stored
                raise _DryRun(dataclasses.replace(result, pipeline_id=None))
            return result
    except _DryRun as done:
        return done.result


def _check(ref: str | None, sha: str | None, category: str | None, source_root: str | None) -> None:
    problems: dict[str, str | list[str]] = {}
    if ref is not None and (len(ref) > MAX_REF_LENGTH or not ref.isprintable() or not REF.fullmatch(ref)):
        problems["ref"] = "is invalid"
    if sha is not None and not SHA.fullmatch(sha):
        problems["sha"] = "is invalid"
    if category is not None and (len(category) > MAX_CATEGORY_LENGTH or not category.isprintable()):
        problems["category"] = "is invalid"
    if source_root is not None and (len(source_root) > MAX_ROOT_LENGTH or not source_root.isprintable()):
        problems["source_root"] = "is invalid"
    elif source_root and not paths.is_absolute(paths.plain(source_root)):
        problems["source_root"] = "is not absolute"
    if problems:
        raise Invalid(**problems)


@contextmanager
def _opened(file: IO[bytes], options: Options, spool_dir: Path) -> Iterator[ReadReport]:
    """Read a report of any format."""
    report_format, top = _recognised(file, options.report_type)
    if report_format.reader is None:
        report_type = options.report_type or (
            report_format.types[0] if report_format.types else type_of_gitlab_report(top)
        )
        del top
        with reports.open_report(file, report_type, spool_dir) as report:
            yield gitlab_reports.upload_of(report, report_format.name, options.report_type, options.category or "")
        return
    reading = Reading(options)
    with gathered(report_format.reader(top, reading), reading, spool_dir) as gathering:
        _refuse_unreadable(report_format, gathering, reading)
        yield ReadReport(
            report_format.name,
            report_format.version(top),
            options.report_type,
            gathering.groups,
            gathering.rows,
            list(reading.warnings.values()),
            reading.components,
        )


def _refuse_unreadable(found: Format, gathering: Gathering, reading: Reading) -> None:
    """Refuse a report of which no entry could be read: an answer without findings would look like a good result.

    Raises:
        BrokenReport: it is such a report.

    """
    left = sum((group.left for group in gathering.groups), Counter[str]())
    if left[BROKEN] and left[BROKEN] == left.total() + sum(
        part.found for group in gathering.groups for part in group.parts
    ):
        reason = f"none of its {left[BROKEN]} entries could be read"
        raise BrokenReport(f"{found.title} report parsing failed", reason, reading.warnings["broken_entry"]["pointer"])


def _recognised(file: IO[bytes], report_type: str | None) -> tuple[Format, Any]:
    """Return the format of a file, and its value."""
    refuse_xml(file)
    if report_type is not None and begins_as_gitlab_report(file):
        return GITLAB, None  # nothing to find out: large reports are not read once more
    try:
        top = Document(file).top
    except BrokenReport:
        if report_type is None:
            raise
        return GITLAB, None  # its own reader reports what is wrong
    return format_of(top, report_type), top


def _series_of(upload: ReadReport) -> set[Series]:
    """Return what an upload repeats: of other formats than GitLab's all types of a scanner, unless one was given."""
    has_type = upload.given_type is not None or not upload.is_foreign
    return {Series(part.report_type if has_type else None, _scanner_of(part), part.category) for part in upload.parts}


def _scanner_of(part: Part) -> str:
    return (part.scanner["external_id"] or "")[:MAX_SCANNER_LENGTH]


def _store(pipeline: Pipeline, upload: ReadReport) -> Ingested:
    stored = [_add_report(pipeline, upload, part) for part in upload.parts]
    origins = [(pipeline.project_id, pipeline.id, report.id) for report in stored]
    sightings: list[list[Sighting]] = [[] for _ in stored]

    def rows() -> Iterator[tuple[Any, ...]]:
        for index, *values, sighting in upload.rows(pipeline.project_id):
            sightings[index].append(sighting)
            yield *origins[index], *values

    _insert(FINDINGS, COLUMNS, rows())
    if upload.components:
        components = (
            {"report_id": stored[0].id, "position": position, **component}
            for position, component in enumerate(upload.components)
        )
        _insert(
            COMPONENTS,
            COMPONENT_COLUMNS,
            (tuple(component[name] for name in COMPONENT_COLUMNS) for component in components),
        )
    for report_type in {report.report_type for report in stored}:
        if _has_several(pipeline, report_type):
            _deduplicate(pipeline, report_type)
    tracking = _track(pipeline, upload, stored, sightings)
    reapply_dismissals(pipeline)
    _recount(pipeline)
    trend.record(pipeline.project_id, [pipeline.ref])
    counts = _counts_of(stored)
    return ingested(upload, pipeline.id, {index: counts[report.id] for index, report in enumerate(stored)}, tracking)


def _track(
    pipeline: Pipeline, upload: ReadReport, stored: list[SecurityReport], sightings: list[list[Sighting]]
) -> list[dict[str, int]]:
    """Track the findings of each scanner and category; return what is counted of each."""
    has_type = upload.given_type is not None or not upload.is_foreign
    counts, index = [], 0
    for group in upload.groups:
        indexes = range(index, index + len(group.parts))
        index = indexes.stop
        for number in indexes:
            rows = select(Finding.id, Finding.kept).where(Finding.report_id == stored[number].id)
            findings = db.session.execute(rows.order_by(Finding.position))
            for sighting, (finding_id, is_kept) in zip(sightings[number], findings, strict=True):
                sighting.finding_id, sighting.is_kept = finding_id, is_kept
        first = stored[indexes.start]
        series = TrackedSeries(first.scanner, first.category, first.report_type if has_type else None)
        counts.append(track(pipeline, series, [sighting for number in indexes for sighting in sightings[number]]))
    return counts


def _add_report(pipeline: Pipeline, upload: ReadReport, part: Part) -> SecurityReport:
    scanner = _scanner_of(part)
    report = SecurityReport(
        pipeline_id=pipeline.id,
        report_type=part.report_type,
        version=upload.format_version,
        scan=part.scan,
        turn=deduplication.order_of_scanner(part.report_type, scanner),
        scanner=scanner,
        category=part.category,
        format=upload.format,
        repetition=next_repetition(pipeline, part.report_type, scanner),
    )
    db.session.add(report)
    db.session.flush()
    remediations = ((report.id, position, data) for position, data in enumerate(part.remediations))
    _insert(REMEDIATIONS, ("report_id", "position", "data"), remediations)
    return report


def _insert(table: Table, columns: tuple[str, ...], rows: Iterator[tuple[Any, ...]]) -> None:
    """Insert many rows, whose values are in the order of ``columns``, in batches."""
    while batch := list(itertools.islice(rows, BATCH_SIZE)):
        db.session.execute(insert(table), [dict(zip(columns, row, strict=True)) for row in batch])


def _has_several(pipeline: Pipeline, report_type: str) -> bool:
    of_type = select(func.count()).where(
        SecurityReport.pipeline_id == pipeline.id, SecurityReport.report_type == report_type
    )
    return (db.session.scalar(of_type) or 0) > 1


def _deduplicate(pipeline: Pipeline, report_type: str) -> None:
    """Deduplicate the findings of all reports of a type, after another one was added."""
    rows = db.session.execute(
        select(
            Finding.id,
            Finding.compare_key,
            Finding.kept,
            Finding.place,
            Finding.suppressed,
            Finding.data,
            Finding.uuid,
            SecurityReport.format,
            SecurityReport.scanner,
            SecurityReport.category,
        )
        .join(SecurityReport, SecurityReport.id == Finding.report_id)
        .where(Finding.pipeline_id == pipeline.id, Finding.sort.between(*numbers_of(report_type)))
        .order_by(SecurityReport.turn, SecurityReport.id, Finding.position)
        .execution_options(yield_per=BATCH_SIZE)
    )
    before, compare_keys, digests, suppressed = [], [], [], []
    exported: dict[int, bytes] = {}
    of_scanners: set[bytes] = set()
    for number, row in enumerate(rows):
        before.append((row.id, row.kept, row.place))
        suppressed.append(row.suppressed)
        pairs = [
            (identifier["external_type"] or "", identifier["external_id"] or "")
            for identifier in row.data["identifiers"]
        ]
        foreign_text = None if row.format in GITLAB_FORMATS else deduplication.text_of(row.data)
        location = row.data["location"]
        keys = deduplication.match_keys(report_type, row.compare_key, location, pairs, foreign_text=foreign_text)
        compare_keys.append(row.compare_key)
        digests.append(keys.digests)
        tracked_key = row.uuid if foreign_text is None and row.uuid else tracked_key_of(row.compare_key)
        tracked = deduplication.tracked_digest(row.scanner, row.category, tracked_key)
        if is_of_export(row.compare_key):
            exported[number] = tracked
        else:
            of_scanners.add(tracked)
    for number, tracked in exported.items():
        if tracked not in of_scanners:  # else it repeats what the pipeline has, and is compared like that
            digests[number] = (tracked,)
    ranks = deduplication.ranks(compare_keys)
    first_occurrences = deduplication.first_occurrences(digests, suppressed)
    changes = (
        {"id": finding_id, "kept": is_kept, "place": rank}
        for (finding_id, *former), is_kept, rank in zip(before, first_occurrences, ranks, strict=True)
        if [is_kept, rank] != former
    )
    while batch := list(itertools.islice(changes, BATCH_SIZE)):
        db.session.execute(update(Finding), batch)


def _recount(pipeline: Pipeline) -> None:
    """Recount the findings of a pipeline by sort; a report may have changed the dismissals of other types too."""
    db.session.execute(delete(FindingCount).where(FindingCount.pipeline_id == pipeline.id))
    rank_columns = (Finding.pipeline_id, Finding.sort)
    dismissed = func.sum(case((Finding.dismissed.is_(True), 1), else_=0))
    counted = (
        select(*rank_columns, func.count(), dismissed)
        .where(Finding.pipeline_id == pipeline.id, Finding.kept.is_(True))
        .group_by(*rank_columns)
    )
    db.session.execute(insert(FindingCount).from_select(["pipeline_id", "sort", "found", "dismissed"], counted))


def _counts_of(stored: list[SecurityReport]) -> dict[int, tuple[int, int]]:
    """Return how many findings of each report are listed, and how many of those the report dismissed."""
    suppressed = func.sum(case((Finding.suppressed.is_(True), 1), else_=0))
    counted = (
        select(Finding.report_id, func.count(), suppressed)
        .where(Finding.report_id.in_([report.id for report in stored]), Finding.kept.is_(True))
        .group_by(Finding.report_id)
    )
    none = dict.fromkeys((report.id for report in stored), (0, 0))
    return none | {report_id: (listed, dismissed) for report_id, listed, dismissed in db.session.execute(counted)}
