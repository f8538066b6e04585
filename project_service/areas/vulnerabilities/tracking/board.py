"""What the page of a branch shows: its tracked findings, how many there are, its branches and runs."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, func, literal, select, union_all

from project_service.areas.vulnerabilities.levels import FindingSeverity
from project_service.areas.vulnerabilities.models import (
    Finding,
    FindingCount,
    Pipeline,
    SecurityReport,
    TrackedFinding,
    TrackedFindingState,
)
from project_service.areas.vulnerabilities.tracking.queries import shown_state
from project_service.areas.vulnerabilities.tracking.sightings import WORST
from project_service.domain.projects import Project
from project_service.kit.db.session import db

MAX_COUNT = 5_000
MAX_CHOICES = 100
MAX_PIPELINES_READ = 2000  # to offer their branches
MAX_RUNS = 20


@dataclass(frozen=True, slots=True)
class ListedFinding:
    """A finding in a list of a page, with the times of its tracked finding."""

    finding: Finding
    state: str
    badges: tuple[str, ...] = ()
    first_seen_at: dt.datetime | None = None
    last_seen_at: dt.datetime | None = None
    tracked_id: int | None = None


@dataclass(slots=True)
class PipelineRun:
    """A pipeline, the scanners of its reports and the number of findings that are listed."""

    pipeline: Pipeline
    scanners: list[str] = field(default_factory=list)
    found: int = 0
    dismissed: int = 0


def listed_states(rows: Iterable[TrackedFindingState]) -> list[ListedFinding]:
    """The rows of a branch."""
    return [
        ListedFinding(
            *(row.finding, shown_state(row), _badges(row), row.tracked.first_seen_at, row.last_seen_at, row.tracked_id)
        )
        for row in rows
    ]


def listed_findings(findings: Iterable[Finding]) -> list[ListedFinding]:
    """The rows of one pipeline, after ``queries.prepare``."""
    return [
        ListedFinding(
            finding, "dismissed" if finding.dismissed else "detected", (), finding.first_seen_at, finding.last_seen_at
        )
        for finding in findings
    ]


def is_tracked(project: Project, branch: str) -> bool:
    """Whether a branch has tracked findings, of any state."""
    state = TrackedFindingState
    statement = select(state.tracked_id).where(state.project_id == project.id, state.ref == branch)
    return db.session.scalar(statement.limit(1)) is not None


def counts_of(statement: Select[TrackedFindingState]) -> Counter[FindingSeverity]:
    """How many tracked findings of a list have each severity, each counted in its order up to ``MAX_COUNT``."""
    counts = []
    for severity in FindingSeverity:
        order = WORST - severity
        rows = statement.where(TrackedFindingState.severity_order == order).with_only_columns(
            TrackedFindingState.tracked_id, maintain_column_froms=True
        )
        counted = select(literal(int(severity)), func.count()).select_from(rows.limit(MAX_COUNT).subquery())
        counts.append(counted)
    return Counter({FindingSeverity(number): count for number, count in db.session.execute(union_all(*counts))})


def branches_of(project: Project) -> list[str]:
    """The branches of the newest ``MAX_PIPELINES_READ`` pipelines, those with the newest ones first."""
    newest = runs_of(project).with_only_columns(Pipeline.ref).limit(MAX_PIPELINES_READ)
    return list(dict.fromkeys(db.session.scalars(newest)))[:MAX_CHOICES]


def scanners_of(project: Project) -> list[str]:
    """Return the scanners that have tracked findings: each is looked up after the one before, in the index of keys."""
    of_project = TrackedFinding.project_id == project.id
    names = select(func.min(TrackedFinding.scanner).label("scanner")).where(of_project).cte("names", recursive=True)
    following = select(func.min(TrackedFinding.scanner)).where(of_project, TrackedFinding.scanner > names.c.scanner)
    names = names.union_all(select(following.correlate(names).scalar_subquery()).where(names.c.scanner.is_not(None)))
    return [scanner for scanner in db.session.scalars(select(names.c.scanner).limit(MAX_CHOICES)) if scanner]


def runs_of(project: Project, branch: str | None = None) -> Select[Pipeline]:
    """The pipelines of a project or a branch, newest first."""
    statement = select(Pipeline).where(Pipeline.project_id == project.id)
    if branch:
        statement = statement.where(Pipeline.ref == branch)
    return statement.order_by(Pipeline.id.desc())


def with_counts(pipelines: Sequence[Pipeline]) -> list[PipelineRun]:
    """The runs of some pipelines."""
    runs = {pipeline.id: PipelineRun(pipeline) for pipeline in pipelines}
    names: Any = db.session.execute(
        select(SecurityReport.pipeline_id, SecurityReport.scanner, SecurityReport.category)
        .where(SecurityReport.pipeline_id.in_(runs))
        .order_by(SecurityReport.id)
    )
    for pipeline_id, scanner, category in names:
        name = f"{scanner or 'unknown'} ({category})" if category else scanner or "unknown"
        if name not in runs[pipeline_id].scanners:
            runs[pipeline_id].scanners.append(name)
    counts = db.session.execute(
        select(FindingCount.pipeline_id, func.sum(FindingCount.found), func.sum(FindingCount.dismissed))
        .where(FindingCount.pipeline_id.in_(runs))
        .group_by(FindingCount.pipeline_id)
    )
    for pipeline_id, found_count, dismissed in counts:
        runs[pipeline_id].found, runs[pipeline_id].dismissed = int(found_count), int(dismissed)
    return list(runs.values())


def _badges(row: TrackedFindingState) -> tuple[str, ...]:
    """New if the last run was the first that saw it, reappeared if it came back then."""
    if row.state != "detected":
        return ()
    if row.tracked.first_seen_pipeline_id == row.last_seen_pipeline_id:
        return ("New",)
    return ("Reappeared",) if row.reappeared_pipeline_id == row.last_seen_pipeline_id else ()
