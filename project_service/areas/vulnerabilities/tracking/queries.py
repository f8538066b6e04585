"""Lists of tracked findings."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, literal_column, not_, or_, select
from sqlalchemy.orm import selectinload
from sqlalchemy.orm.attributes import set_committed_value

from project_service.areas.vulnerabilities.findings import queries
from project_service.areas.vulnerabilities.levels import CONFIDENCES, SEVERITIES
from project_service.areas.vulnerabilities.models import Finding, TrackedFinding, TrackedFindingState
from project_service.areas.vulnerabilities.tracking.sightings import WORST
from project_service.areas.vulnerabilities.tracking.states import DETECTED, RESOLVED
from project_service.domain.projects import Project
from project_service.kit.db import large_texts
from project_service.kit.db.session import NO_LAZY_LOADING

DISMISSED = "dismissed"
STATES = (str(DETECTED), DISMISSED, str(RESOLVED))
OPEN_STATES = (str(DETECTED), DISMISSED)
# as in the partial index, which is used for exactly this text
RESOLVED_LITERAL: ColumnElement[str] = literal_column(f"'{RESOLVED}'")
ORDER = TrackedFindingState.severity_order, TrackedFindingState.tracked_id


def tracked_findings_of(
    project: Project,
    branch: str | None = None,
    *,
    state: Collection[str] = (),
    severity: Collection[str] = (),
    confidence: Collection[str] = (),
    only_new: bool = False,
    **filters: Any,
) -> Select[TrackedFindingState]:
    """The tracked findings of a branch, by default of the default branch: by severity, the worst first, then by id.

    ``filters`` are values of ``report_type``, ``scanner`` and ``category``; ``only_new`` selects what the last run of a
    scanner has seen for the first time or again.
    """
    statement = select(TrackedFindingState).where(
        TrackedFindingState.project_id == project.id,
        TrackedFindingState.ref == (branch or queries.default_branch(project)),
        *_in_states(state or OPEN_STATES),
    )
    if confidence:
        numbers = [int(CONFIDENCES[word]) for word in confidence]
        finding_id = select(Finding.id).where(
            Finding.id == TrackedFindingState.finding_id, (Finding.sort % 10).in_(numbers)
        )
        statement = statement.where(finding_id.exists())
    if severity:
        orders = [WORST - SEVERITIES[word] for word in severity]
        statement = statement.where(TrackedFindingState.severity_order.in_(orders))
    wanted = {name: value for name, value in filters.items() if value}
    if wanted or only_new:
        statement = statement.join(TrackedFindingState.tracked)
    if only_new:
        firsts = TrackedFinding.first_seen_pipeline_id, TrackedFindingState.reappeared_pipeline_id
        statement = statement.where(or_(*(first == TrackedFindingState.last_seen_pipeline_id for first in firsts)))
    if wanted:
        for name, value in wanted.items():
            column = getattr(TrackedFinding, name)
            statement = statement.where(column == value if isinstance(value, str) else column.in_(value))
    return statement.options(selectinload(TrackedFindingState.tracked), NO_LAZY_LOADING).order_by(*ORDER)


def _in_states(states: Collection[str]) -> list[ColumnElement[bool]]:
    """Return the conditions of the states: each combination is a range of an index in the order of the list."""
    is_detected = TrackedFindingState.state == DETECTED
    is_dismissed = TrackedFindingState.dismissed.is_(True)
    conditions: dict[frozenset[str], list[ColumnElement[bool]]] = {
        frozenset((str(DETECTED),)): [is_detected, TrackedFindingState.dismissed.is_(False)],
        frozenset((DISMISSED,)): [is_detected, is_dismissed],
        frozenset((str(RESOLVED),)): [TrackedFindingState.state == RESOLVED],
        frozenset(OPEN_STATES): [is_detected],
        frozenset((DISMISSED, str(RESOLVED))): [or_(is_dismissed, TrackedFindingState.state == RESOLVED_LITERAL)],
        frozenset((str(DETECTED), str(RESOLVED))): [not_(and_(is_detected, is_dismissed))],
        frozenset(STATES): [],
    }
    return conditions[frozenset(states)]


def shown_state(row: TrackedFindingState) -> str:
    """The state that clients see."""
    return DISMISSED if row.state == DETECTED and row.dismissed else row.state


def prepare(rows: list[TrackedFindingState]) -> None:
    """Load the findings of a page, and the feedback on them; large findings are read one by one."""
    statement = select(Finding).where(Finding.id.in_([row.finding_id for row in rows]))
    loaded = selectinload(Finding.pipeline), selectinload(Finding.report), NO_LAZY_LOADING
    findings = {finding.id: finding for finding in large_texts.load(statement.options(*loaded))}
    for row in rows:
        set_committed_value(row, "finding", findings[row.finding_id])
    queries.prepare([row.finding for row in rows])
