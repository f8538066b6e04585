"""Reading of the tracked findings of an export: batch after batch, with the memory of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Select, select, tuple_

from project_service.areas.vulnerabilities.findings.queries import default_branch
from project_service.areas.vulnerabilities.models import (
    DISMISSAL,
    Pipeline,
    SecurityReport,
    TrackedFinding,
    TrackedFindingState,
)
from project_service.areas.vulnerabilities.tracking import queries
from project_service.areas.vulnerabilities.tracking.states import RESOLVED
from project_service.domain.projects import Project
from project_service.kit.db import large_texts
from project_service.kit.db.session import db, reading

BATCH_SIZE = 200
BATCH_BYTES = 1 << 20


class ExportedSeries(NamedTuple):
    """A scanner and category with tracked findings."""

    scanner: str
    category: str


@dataclass(frozen=True, slots=True)
class ExportedBranch:
    """The tracked findings of a branch that are exported, and what the file says about their project.

    ``filters`` are those of ``tracking.queries.tracked_findings_of``.
    """

    project: Project
    branch: str
    filters: dict[str, Any]

    def texts(
        self, text_of: Callable[[TrackedFindingState], bytes], series: ExportedSeries | None = None
    ) -> Iterator[bytes]:
        """Yield the text of each finding, those that are open first, then by severity.

        Each batch is read on its own, so that a slow client holds no connection to the database.
        """
        wanted = self.filters.get("state") or queries.OPEN_STATES
        for states in (queries.OPEN_STATES, (str(RESOLVED),)):  # each is a range of an index
            if selected := [state for state in states if state in wanted]:
                yield from _texts(self._statement(selected, series), text_of)

    def series(self) -> list[ExportedSeries]:
        """Return the scanners and categories of the findings."""
        selected_rows = self._statement(self.filters.get("state"), None).order_by(None).subquery()
        columns = TrackedFinding.scanner, TrackedFinding.category
        statement = (
            select(*columns)
            .join(selected_rows, selected_rows.c.tracked_id == TrackedFinding.id)
            .distinct()
            .order_by(*columns)
        )
        with reading():
            return [ExportedSeries(*row) for row in db.session.execute(statement)]

    def commit_of(self, series: ExportedSeries) -> str | None:
        """Return the commit of the newest pipeline of the branch with a report of a series."""
        statement = (
            select(Pipeline.sha)
            .join(SecurityReport, SecurityReport.pipeline_id == Pipeline.id)
            .where(Pipeline.project_id == self.project.id, Pipeline.ref == self.branch)
            .where(SecurityReport.scanner == series.scanner, SecurityReport.category == series.category)
        )
        with reading():
            return db.session.scalar(statement.order_by(Pipeline.id.desc()).limit(1))

    def _statement(self, states: Any, series: ExportedSeries | None) -> Select[TrackedFindingState]:
        statement = queries.tracked_findings_of(self.project, self.branch, **self.filters | {"state": states})
        if series is not None:
            of_series = select(TrackedFinding.id).where(
                TrackedFinding.id == TrackedFindingState.tracked_id,
                TrackedFinding.scanner == series.scanner,
                TrackedFinding.category == series.category,
            )
            statement = statement.where(of_series.exists())
        return statement


def exported_branch(project: Project, branch: str | None, filters: dict[str, Any]) -> ExportedBranch:
    """Return what is exported of a branch, by default of the default branch."""
    return ExportedBranch(project, branch or default_branch(project), filters)


def _texts(statement: Select[TrackedFindingState], text_of: Callable[[TrackedFindingState], bytes]) -> Iterator[bytes]:
    following = statement
    while True:
        texts: list[bytes] = []
        length = 0
        with reading():
            rows = list(db.session.scalars(following.limit(BATCH_SIZE)))
            queries.prepare(rows)
            for row in rows:
                texts.append(text_of(row))
                large_texts.release()
                length += len(texts[-1])
                if length > BATCH_BYTES:
                    break
            large_texts.deferred_texts().clear()
        yield from texts
        if len(rows) < BATCH_SIZE and len(texts) == len(rows):
            return
        last = rows[len(texts) - 1]
        following = statement.where(tuple_(*queries.ORDER) > tuple_(last.severity_order, last.tracked_id))


def comment_of(row: TrackedFindingState) -> str:
    """Return the comment of a dismissal: of people, else of the report; empty without any."""
    feedback = row.finding.feedback.get(DISMISSAL)
    suppression = row.finding.data.get("suppression") or {}
    return (feedback.comment if feedback is not None else None) or suppression.get("justification") or ""
