"""Tracking of the findings of a report that is being stored: match them, and move the states of their branch.

Everything is in the transaction that stores the report; the project is locked, so that reports are tracked one by one.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, insert, select, update
from sqlalchemy.orm import aliased

from project_service.areas.vulnerabilities import hooks
from project_service.areas.vulnerabilities.findings.queries import default_branch
from project_service.areas.vulnerabilities.models import (
    Finding,
    Pipeline,
    SecurityReport,
    TrackedFinding,
    TrackedFindingState,
)
from project_service.areas.vulnerabilities.tracking import notifying
from project_service.areas.vulnerabilities.tracking.matching import Candidate, Pair, Sighting, match_by_key, match_group
from project_service.areas.vulnerabilities.tracking.states import (
    COUNTED,
    DETECTED,
    MOVED,
    TRANSITIONS,
    Observation,
    TrackingOutcome,
    TrackingState,
    state_before,
)
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.session import db

BATCH_SIZE = 500
FAILURE = "failure"
NOT_SYNCHRONIZED = {"synchronize_session": False}


class TrackedSeries(NamedTuple):
    """The reports of a scanner and category of a project; of one type only if the upload named it."""

    scanner: str
    category: str
    report_type: str | None


def track(pipeline: Pipeline, series: TrackedSeries, sightings: list[Sighting]) -> dict[str, int]:
    """Match the findings of a report, move the states of the branch and return what is counted."""
    tracker = _Tracker(pipeline, series)
    counts = tracker.match(sightings)
    counts[TrackingOutcome.RESOLVED] = tracker.resolve() if tracker.is_newest else 0
    if tracker.is_of_default_branch:
        notifying.record(pipeline, series.scanner, tracker.new)
        if tracker.new:
            hooks.announce_new(pipeline.project, (sighting.finding_id for sighting in tracker.new))
    return {name: counts[name] for name in COUNTED}


class _Tracker:
    def __init__(self, pipeline: Pipeline, series: TrackedSeries) -> None:
        self._pipeline, self._series, self._now = pipeline, series, clock.now()
        self._default = default_branch(db.session.get_one(Project, pipeline.project_id))
        newer = select(SecurityReport.id).join(Pipeline, Pipeline.id == SecurityReport.pipeline_id)
        newer = newer.where(
            Pipeline.project_id == pipeline.project_id,
            Pipeline.ref == pipeline.ref,
            Pipeline.id > pipeline.id,
            *self._reports_of_series(),
        )
        self.is_newest = db.session.scalar(newer.limit(1)) is None
        self.is_of_default_branch = pipeline.ref == self._default
        self.new: list[Sighting] = []

    def match(self, sightings: list[Sighting]) -> Counter[str]:
        """Match findings, and write which tracked finding they are."""
        counts: Counter[str] = Counter()
        used: set[int] = set()
        kept_sightings = [sighting for sighting in sightings if sighting.is_kept]
        matched: set[int] = set()
        for batch in _batches(self._pairs(kept_sightings, used)):
            matched.update(id(sighting) for sighting, _ in batch)
            for sighting, candidate in batch:
                outcome = TRANSITIONS[candidate.state, Observation.SEEN].outcome
                counts[str(outcome)] += 1
                self.new += [sighting] * (outcome is TrackingOutcome.NEW)
                counts[MOVED] += outcome is TrackingOutcome.KNOWN and _place(sighting) != _place(candidate)
            self._write(batch)
        for some in _batches(sighting for sighting in kept_sightings if id(sighting) not in matched):
            counts[TrackingOutcome.NEW] += len(some)
            self.new += some
            self._add(some)
        # a duplicate of another report's finding is seen, but neither counted nor tracked anew
        for dropped in _batches(sighting for sighting in sightings if not sighting.is_kept):
            self._write(list(self._known_duplicates(dropped)))
        return counts

    def resolve(self) -> int:
        """Resolve what a complete pipeline does not have, or undo that if its reports turn out to be incomplete."""
        of_series = select(TrackedFinding.id).where(*self._tracked_of_series())
        on_branch = (
            TrackedFindingState.ref == self._pipeline.ref,
            TrackedFindingState.project_id == self._pipeline.project_id,
            TrackedFindingState.tracked_id.in_(of_series),
        )
        if not self._is_complete():
            by_this = (*on_branch, TrackedFindingState.resolved_pipeline_id == self._pipeline.id)
            self._set(and_(*by_this), state=DETECTED, resolved_at=None, resolved_pipeline_id=None)
            return 0
        missing = TRANSITIONS[DETECTED, Observation.MISSING]
        unseen = (
            *on_branch,
            TrackedFindingState.state == DETECTED,
            TrackedFindingState.last_seen_pipeline_id != self._pipeline.id,
        )
        values = {"resolved_at": self._now, "resolved_pipeline_id": self._pipeline.id}
        return self._set(and_(*unseen), state=missing.state, **values)

    def _pairs(self, sightings: list[Sighting], used: set[int]) -> Iterator[Pair]:
        rest: list[Sighting] = []
        for batch in _batches(sightings):
            pairs = list(
                match_by_key(
                    batch, self._candidates(TrackedFinding.key.in_({sighting.key for sighting in batch})), used
                )
            )
            matched = {id(sighting) for sighting, _ in pairs}
            rest += (sighting for sighting in batch if id(sighting) not in matched)
            yield from pairs
        groups: dict[str, list[Sighting]] = {}
        for sighting in rest:
            groups.setdefault(sighting.group, []).append(sighting)
        for names in _batches(groups):
            candidates: dict[str, list[Candidate]] = {}
            for candidate in self._candidates(TrackedFinding.group_key.in_(names)):
                candidates.setdefault(candidate.group, []).append(candidate)
            for name, choices in candidates.items():
                yield from match_group(groups[name], choices, used)

    def _known_duplicates(self, dropped: list[Sighting]) -> Iterator[Pair]:
        """Match duplicates by their keys; several may be the same tracked finding."""
        keys = {sighting.key for sighting in dropped}
        candidates = {
            (candidate_row.report_type, candidate_row.key): candidate_row
            for candidate_row in self._candidates(TrackedFinding.key.in_(keys))
        }
        written: set[int] = set()
        for sighting in dropped:
            candidate = candidates.get((sighting.report_type, sighting.key))
            if candidate is not None and not candidate.is_seen and candidate.id not in written:
                written.add(candidate.id)
                yield sighting, candidate

    def _candidates(self, condition: ColumnElement[bool]) -> Iterator[Candidate]:
        own, default = aliased(TrackedFindingState), aliased(TrackedFindingState)
        tracked = TrackedFinding
        statement = (
            select(
                *(tracked.id, tracked.report_type, tracked.key, tracked.group_key, tracked.marks, tracked.name),
                *(tracked.start_line, tracked.end_line, tracked.version),
                *(own.state.label("own"), own.resolved_pipeline_id, own.last_seen_pipeline_id, own.reappearances),
                default.state.label("of_default"),
            )
            .outerjoin(own, and_(own.tracked_id == tracked.id, own.ref == self._pipeline.ref))
            .outerjoin(default, and_(default.tracked_id == tracked.id, default.ref == self._default))
            .where(*self._tracked_of_series(), condition)
        )
        for row in db.session.execute(statement):
            own_state = TrackingState(row.own) if row.own else None
            default_state = TrackingState(row.of_default) if row.of_default else None
            is_resolved_by_this = row.resolved_pipeline_id == self._pipeline.id
            yield Candidate(
                *(row.id, row.report_type, row.key, row.group_key, tuple(row.marks), row.name),
                *(row.start_line, row.end_line, row.version, own_state, default_state),
                state_before(own_state, default_state, is_resolved_by_this=is_resolved_by_this),
                row.last_seen_pipeline_id == self._pipeline.id,
                row.reappearances or 0,
            )

    def _add(self, sightings: list[Sighting]) -> None:
        """Begin to track findings."""
        values = [
            {
                "project_id": self._pipeline.project_id,
                "scanner": self._series.scanner,
                "category": self._series.category,
                "report_type": sighting.report_type,
                "first_seen_at": self._now,
                "first_seen_pipeline_id": self._pipeline.id,
                **_identity(sighting),
            }
            for sighting in sightings
        ]
        statement = insert(TrackedFinding).returning(TrackedFinding.id, sort_by_parameter_order=True)
        ids = list(db.session.scalars(statement, values))
        self._link(zip(sightings, ids, strict=True))
        if self.is_newest:
            self._insert_states((sighting, number) for sighting, number in zip(sightings, ids, strict=True))

    def _write(self, pairs: list[Pair]) -> None:
        """Write the new places and states of matched findings."""
        if not pairs:
            return
        self._link((sighting, candidate.id) for sighting, candidate in pairs)
        if not self.is_newest:
            return
        changed = [
            {"id": candidate.id, **_identity(sighting)}
            for sighting, candidate in pairs
            if (sighting.key, sighting.marks, sighting.name, _place(sighting))
            != (candidate.key, candidate.marks, candidate.name, _place(candidate))
        ]
        if changed:
            db.session.execute(update(TrackedFinding), changed)
        self._insert_states((sighting, candidate.id) for sighting, candidate in pairs if candidate.own_state is None)
        if renewed := [self._renewed(*pair) for pair in pairs if pair[1].own_state is not None]:
            db.session.execute(update(TrackedFindingState), renewed)

    def _renewed(self, sighting: Sighting, candidate: Candidate) -> dict[str, Any]:
        """Return the values of the state of a finding that was on the branch before."""
        transition = TRANSITIONS[candidate.state, Observation.SEEN]
        values: dict[str, Any] = {"state": transition.state, "resolved_at": None, "resolved_pipeline_id": None}
        if transition.outcome is TrackingOutcome.REAPPEARED:
            values |= {"reappeared_at": self._now, "reappeared_pipeline_id": self._pipeline.id}
            values["reappearances"] = candidate.reappearances + 1
        if sighting.is_kept:
            values |= {"finding_id": sighting.finding_id, "severity_order": sighting.severity_order}
        return {"tracked_id": candidate.id, "ref": self._pipeline.ref, **self._seen(), **values}

    def _insert_states(self, items: Iterable[tuple[Sighting, int]]) -> None:
        values = [
            {
                "tracked_id": number,
                "ref": self._pipeline.ref,
                "project_id": self._pipeline.project_id,
                "state": TRANSITIONS[None, Observation.SEEN].state,
                "finding_id": sighting.finding_id,
                "severity_order": sighting.severity_order,
                "first_seen_pipeline_id": self._pipeline.id,
                "reappearances": 0,
                **self._seen(),
            }
            for sighting, number in items
        ]
        if values:
            db.session.execute(insert(TrackedFindingState), values)

    def _seen(self) -> dict[str, Any]:
        return {"last_seen_at": self._now, "last_seen_pipeline_id": self._pipeline.id}

    def _link(self, items: Iterable[tuple[Sighting, int]]) -> None:
        rows = [{"id": sighting.finding_id, "tracked_id": number} for sighting, number in items]
        if rows:
            db.session.execute(update(Finding), rows)

    def _set(self, condition: ColumnElement[bool], **values: Any) -> int:
        statement = update(TrackedFindingState).where(condition).values(**values)
        result: Any = db.session.execute(statement.execution_options(**NOT_SYNCHRONIZED))
        return int(result.rowcount)

    def _is_complete(self) -> bool:
        """Whether every report of the series in the pipeline is complete."""
        scans = select(SecurityReport.scan).where(
            SecurityReport.pipeline_id == self._pipeline.id, *self._reports_of_series()
        )
        return all((scan or {}).get("status") != FAILURE for scan in db.session.scalars(scans))

    def _reports_of_series(self) -> list[ColumnElement[bool]]:
        conditions = [
            SecurityReport.scanner == self._series.scanner,
            SecurityReport.category == self._series.category,
        ]
        if self._series.report_type is not None:
            conditions.append(SecurityReport.report_type == self._series.report_type)
        return conditions

    def _tracked_of_series(self) -> list[ColumnElement[bool]]:
        conditions = [
            TrackedFinding.project_id == self._pipeline.project_id,
            TrackedFinding.scanner == self._series.scanner,
            TrackedFinding.category == self._series.category,
        ]
        if self._series.report_type is not None:
            conditions.append(TrackedFinding.report_type == self._series.report_type)
        return conditions


def _identity(sighting: Sighting) -> dict[str, Any]:
    return {
        "key": sighting.key,
        "group_key": sighting.group,
        "marks": list(sighting.marks),
        "name": sighting.name,
        "start_line": sighting.start,
        "end_line": sighting.end,
        "version": sighting.version,
    }


def _place(one: Sighting | Candidate) -> tuple[int | None, int | None, str | None]:
    return one.start, one.end, one.version


def _batches(items: Iterable[Any]) -> Iterator[list[Any]]:
    iterator = iter(items)
    while batch := list(itertools.islice(iterator, BATCH_SIZE)):
        yield batch
