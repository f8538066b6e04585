"""The pipeline of a report: the requested one, that of its commit, or a new one.

Reports of a project are stored one after the other (``lock_feedback``), and unique indexes ensure that two of them can
neither start the same attempt of a commit nor be the same report of a pipeline.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, false, func, insert, literal, or_, select

from project_service.areas.vulnerabilities.findings.queries import default_branch, find_pipeline
from project_service.areas.vulnerabilities.models import Component, Finding, Pipeline, Remediation, SecurityReport
from project_service.domain.projects import Project
from project_service.kit.db.base import Base, table_of
from project_service.kit.db.session import db
from project_service.kit.http.errors import Invalid


class Series(NamedTuple):
    """What a report repeats: an earlier one of the same scanner and category, and of the same type if it has one."""

    report_type: str | None
    scanner: str
    category: str


def pipeline_for(
    project: Project, series: Collection[Series], *, ref: str | None, sha: str | None, pipeline_id: int | None
) -> Pipeline:
    """Return the pipeline to which the reports of some series are added.

    That is the newest of the commit, unless it has a report of one of the series. Then a new one begins, with copies of
    the reports of other series, so that a repeated job hides nothing.

    Raises:
        Invalid: ``ref`` or ``sha`` is not that of the requested pipeline.

    """
    if pipeline_id is not None:
        return _requested(project, ref, sha, pipeline_id)
    ref = ref or default_branch(project)
    newest = _newest(project, ref, sha) if sha else None
    if newest is not None and not _has_report(newest, series):
        return newest
    pipeline = _add(project, ref, sha)
    if newest is not None:
        _copy_reports(newest, pipeline, ~_is_of(series))
    return pipeline


def next_repetition(pipeline: Pipeline, report_type: str, scanner: str) -> int:
    """Return the number of the next report of a type and scanner in a pipeline."""
    statement = select(func.max(SecurityReport.repetition)).where(
        SecurityReport.pipeline_id == pipeline.id,
        SecurityReport.report_type == report_type,
        SecurityReport.scanner == scanner,
    )
    return (db.session.scalar(statement) or 0) + 1


def _requested(project: Project, ref: str | None, sha: str | None, pipeline_id: int) -> Pipeline:
    pipeline = find_pipeline(project, pipeline_id)
    contradictions: dict[str, str | list[str]] = {
        name: "is not that of the pipeline"
        for name, value, own in (("ref", ref, pipeline.ref), ("sha", sha, (pipeline.sha or "").lower()))
        if value is not None and value != own
    }
    if contradictions:
        raise Invalid(**contradictions)
    return pipeline


def _newest(project: Project, ref: str, sha: str) -> Pipeline | None:
    of_commit = select(Pipeline).where(Pipeline.project_id == project.id, Pipeline.ref == ref, Pipeline.sha == sha)
    return db.session.scalar(of_commit.order_by(Pipeline.id.desc()).limit(1))


def _add(project: Project, ref: str, sha: str | None) -> Pipeline:
    of_commit = (Pipeline.project_id == project.id, Pipeline.ref == ref, Pipeline.sha == sha)
    attempts = db.session.scalar(select(func.max(Pipeline.attempt)).where(*of_commit)) if sha else None
    pipeline = Pipeline(project_id=project.id, ref=ref, sha=sha, attempt=(attempts or 0) + 1 if sha else None)
    db.session.add(pipeline)
    db.session.flush()
    return pipeline


def _is_of(series: Collection[Series]) -> ColumnElement[bool]:
    """Whether a report is of one of the series."""
    return or_(false(), *map(_is_of_one, series))


def _is_of_one(series: Series) -> ColumnElement[bool]:
    same_job = and_(SecurityReport.scanner == series.scanner, SecurityReport.category == series.category)
    return same_job if series.report_type is None else and_(SecurityReport.report_type == series.report_type, same_job)


def _has_report(pipeline: Pipeline, series: Collection[Series]) -> bool:
    statement = select(SecurityReport.id).where(SecurityReport.pipeline_id == pipeline.id, _is_of(series))
    return db.session.scalar(statement.limit(1)) is not None


def _copy_reports(source: Pipeline, target: Pipeline, condition: ColumnElement[bool]) -> None:
    """Copy reports with their findings and remediations into another pipeline, in the database."""
    reports = select(SecurityReport).where(SecurityReport.pipeline_id == source.id, condition)
    for report in db.session.scalars(reports.order_by(SecurityReport.id)).all():
        values = {
            name: getattr(report, name)
            for name in (
                *("report_type", "version", "scan", "turn", "format", "category"),
                *("scanner", "repetition", "created_at"),
            )
        }
        copy = SecurityReport(pipeline_id=target.id, **values)
        db.session.add(copy)
        db.session.flush()
        _copy_rows(Remediation, report.id, report_id=copy.id)
        _copy_rows(Component, report.id, report_id=copy.id)
        _copy_rows(Finding, report.id, report_id=copy.id, pipeline_id=target.id)


def _copy_rows(model: type[Base], source_id: int, **changes: int) -> None:
    """Copy the rows of a report with some values changed; they get new ids."""
    table = table_of(model)
    names = [column.name for column in table.columns if column.name != "id"]
    values: list[Any] = [literal(changes[name]) if name in changes else table.c[name] for name in names]
    rows = select(*values).where(table.c.report_id == source_id).order_by(table.c.position)
    db.session.execute(insert(table).from_select(names, rows))
