"""Quality gate: what a pipeline has that the default branch did not have before it, and whether that is too severe."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, or_, select

from project_service.areas.vulnerabilities.findings.queries import default_branch, find_pipeline
from project_service.areas.vulnerabilities.levels import SEVERITIES, THRESHOLDS
from project_service.areas.vulnerabilities.locations import where_of
from project_service.areas.vulnerabilities.models import Finding, Pipeline, TrackedFindingState
from project_service.areas.vulnerabilities.severity_order import FindingRank, numbers_of
from project_service.areas.vulnerabilities.tracking.states import DETECTED
from project_service.domain.projects import Project
from project_service.kit.db import large_texts
from project_service.kit.db.session import db, one
from project_service.kit.http.errors import NotFound

MAX_SHOWN = 20
MAX_NEW_LISTED = 1_000
# the order in which an answer names severities: that of the list of findings
SHOWN = ("critical", "high", "medium", "low", "unknown", "info")
UNKNOWN = "unknown"


def judge(
    project: Project,
    *,
    pipeline_id: int | None = None,
    branch: str | None = None,
    fail_on: str = "high",
    fail_on_unknown: bool = False,
    report_type: str | None = None,
    list_new: bool = False,
) -> dict[str, Any]:
    """Judge a pipeline, by default the newest of the default branch; with ``list_new`` name its new findings.

    Raises:
        NotFound: there is no such pipeline.

    """
    default = default_branch(project)
    if pipeline_id is not None:
        pipeline = find_pipeline(project, pipeline_id)
    else:
        newest = select(Pipeline).where(Pipeline.project_id == project.id, Pipeline.ref == (branch or default))
        pipeline = one(newest.order_by(Pipeline.id.desc()).limit(1), NotFound("Pipeline"))
    baseline = _baseline(pipeline, default)
    failing_words = set(THRESHOLDS[: THRESHOLDS.index(fail_on) + 1]) | ({UNKNOWN} if fail_on_unknown else set())
    new, known_count = _counts(pipeline, default, report_type)
    failing = sum(count for word, count in new.items() if word in failing_words)
    judged = {
        "status": "failed" if failing else "passed",
        "fail_on": fail_on,
        "fail_on_unknown": fail_on_unknown,
        "branch": pipeline.ref,
        "compared_with": None if baseline is None else {"branch": default, "pipeline_id": baseline},
        "new": new,
        "known": known_count,
        "failing": failing,
        "findings": _new_findings(pipeline, default, report_type, failing_words, MAX_SHOWN) if failing else [],
        "message": _message(failing, fail_on, pipeline.ref, default, unknown=fail_on_unknown, has_baseline=baseline),
    }
    if list_new:
        new_findings = _new_findings(pipeline, default, report_type, set(SHOWN), MAX_NEW_LISTED)
        judged["new_findings"] = [
            {**finding, "failing": finding["severity"] in failing_words} for finding in new_findings
        ]
    return judged


def _baseline(pipeline: Pipeline, default: str) -> int | None:
    """Return the pipeline of the default branch that a pipeline is compared with: the newest one, but not itself."""
    statement = select(Pipeline.id).where(
        Pipeline.project_id == pipeline.project_id, Pipeline.ref == default, Pipeline.id != pipeline.id
    )
    if pipeline.ref == default:
        statement = statement.where(Pipeline.id < pipeline.id)
    return db.session.scalar(statement.order_by(Pipeline.id.desc()).limit(1))


def _open_findings(pipeline: Pipeline, default: str, report_type: str | None, *columns: Any) -> Select[Any]:
    """Select from the listed findings of a pipeline that are not dismissed, with their state on the default branch."""
    on_default = and_(TrackedFindingState.tracked_id == Finding.tracked_id, TrackedFindingState.ref == default)
    statement = (
        select(*columns)
        .select_from(Finding)
        .outerjoin(TrackedFindingState, on_default)
        .where(Finding.pipeline_id == pipeline.id, Finding.kept.is_(True), Finding.dismissed.is_(False))
    )
    return statement if report_type is None else statement.where(Finding.sort.between(*numbers_of(report_type)))


def _was_there(pipeline: Pipeline) -> ColumnElement[bool]:
    """Whether the default branch had a finding before a pipeline."""
    state = TrackedFindingState
    has_not_returned_here = or_(state.reappeared_pipeline_id.is_(None), state.reappeared_pipeline_id != pipeline.id)
    return and_(
        state.tracked_id.is_not(None),
        state.first_seen_pipeline_id < pipeline.id,
        or_(and_(state.state == DETECTED, has_not_returned_here), state.resolved_pipeline_id >= pipeline.id),
    )


def _counts(pipeline: Pipeline, default: str, report_type: str | None) -> tuple[dict[str, int], int]:
    """Return the number of new findings by severity, and of known ones."""
    is_known = case((_was_there(pipeline), 1), else_=0)
    counted = _open_findings(pipeline, default, report_type, Finding.sort, is_known, func.count())
    new, known_count = dict.fromkeys(SHOWN, 0), 0
    for number, was_there, count in db.session.execute(counted.group_by(Finding.sort, is_known)):
        if was_there:
            known_count += count
        else:
            new[FindingRank.of(number).severity.text] += count
    return new, known_count


def _new_findings(
    pipeline: Pipeline, default: str, report_type: str | None, words: set[str], limit: int
) -> list[dict[str, Any]]:
    """Return the first new findings of some severities, the worst first."""
    levels = [int(SEVERITIES[word]) for word in words]
    is_wanted = or_(*((Finding.sort % 100).between(10 * level, 10 * level + 9) for level in levels))
    new = _open_findings(pipeline, default, report_type, Finding).where(
        is_wanted, ~func.coalesce(_was_there(pipeline), False)
    )
    statement = new.order_by((Finding.sort % 100).desc(), Finding.id).limit(limit)
    return [_shown(row) for row in large_texts.load(statement)]


def _shown(finding: Finding) -> dict[str, Any]:
    data = finding.data
    first = next(iter(data["identifiers"]), None)
    return {
        "severity": finding.severity.text,
        "name": data["name"],
        "location": where_of(data["location"]),
        "scanner": data["scanner"]["name"],
        "identifier": None if first is None else first["name"] or first["external_id"],
        "tracked_id": finding.tracked_id,
    }


def _message(failing: int, fail_on: str, branch: str, default: str, *, unknown: bool, has_baseline: int | None) -> str:
    count = f"{failing or 'No'} new finding{'' if failing == 1 else 's'}"
    level = f"of {fail_on} or above" + (" or unknown" if unknown else "")
    if has_baseline is None:
        return f"{count} {level} on {branch}; {default} has no report of this scanner to compare with."
    return f"{count} {level} since {default}."
