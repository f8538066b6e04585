"""Dismissals of findings: keep ``dismissed`` of findings and states consistent with the feedback of the project.

A dismissal with a uuid matches the findings with that uuid. In a pipeline without such a finding it matches the finding
with the same project fingerprint, if there is exactly one (the finding has moved). A dismissal without a uuid matches
all findings with the project fingerprint. Both are evaluated per pipeline (findings reference, sections 5 and 14).
Besides, both match every other place of the same tracked finding (scanner formats reference, section 13).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, select, update
from sqlalchemy.orm import aliased

from project_service.areas.vulnerabilities.models import (
    DISMISSAL,
    Feedback,
    Finding,
    FindingCount,
    Pipeline,
    TrackedFindingState,
)
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http.errors import NotFound


@dataclass(frozen=True, slots=True)
class Meanings:
    """Matching of feedback with findings of one pipeline: its uuids, and the fingerprints that only one finding has.

    Both are limited to those that the feedback refers to. ``tracked`` are the tracked findings by the uuids and
    fingerprints of their places.
    """

    carried: frozenset[str]
    sole: frozenset[str]
    tracked: frozenset[tuple[str, int]]

    def mean(self, feedback: Feedback, finding: Finding) -> bool:
        """Whether a feedback matches a finding of the pipeline."""
        name = feedback.meant if feedback.finding_uuid is None else feedback.finding_uuid
        if finding.tracked_id is not None and (name, finding.tracked_id) in self.tracked:
            return True
        if feedback.finding_uuid is None:
            return feedback.meant == finding.project_fingerprint
        if feedback.finding_uuid in self.carried:
            return feedback.finding_uuid == finding.uuid
        return feedback.meant == finding.project_fingerprint and feedback.meant in self.sole


def meanings_in(
    pipeline_ids: Collection[int], feedback: Collection[Feedback], *, with_places: bool = True
) -> dict[int, Meanings]:
    """Load what is needed to match feedback with the findings of pipelines, in a constant number of statements.

    ``with_places`` is false if no feedback names another place of a tracked finding.
    """
    uuids = {row.finding_uuid for row in feedback if row.finding_uuid is not None}
    tracked: frozenset[tuple[str, int]] = _tracked_of(feedback, uuids) if with_places else frozenset()
    carried: defaultdict[int, set[str]] = defaultdict(set)
    sole: defaultdict[int, set[str]] = defaultdict(set)
    if uuids:
        of_project = Finding.project_id == next(iter(feedback)).project_id
        of_pipelines = (of_project, Finding.pipeline_id.in_(pipeline_ids))
        with_uuid = select(Finding.pipeline_id, Finding.uuid).where(*of_pipelines, Finding.uuid.in_(uuids))
        for number, uuid in db.session.execute(with_uuid):
            if uuid is not None:
                carried[number].add(uuid)
        is_named = Finding.project_fingerprint.in_({row.meant for row in feedback})
        by_fingerprint = _sole(Finding.pipeline_id, Finding.project_fingerprint).where(*of_pipelines, is_named)
        for number, fingerprint in db.session.execute(by_fingerprint):
            sole[number].add(fingerprint)
    return {number: Meanings(frozenset(carried[number]), frozenset(sole[number]), tracked) for number in pipeline_ids}


def _tracked_of(feedback: Collection[Feedback], uuids: set[str]) -> frozenset[tuple[str, int]]:
    """Return the tracked findings of the places that feedback names, each with the uuid or fingerprint."""
    first = next(iter(feedback), None)
    if first is None:
        return frozenset()
    of_project = (Finding.project_id == first.project_id, Finding.tracked_id.is_not(None))
    named = {row.meant for row in feedback if row.finding_uuid is None}
    statements = [
        select(column, Finding.tracked_id).where(*of_project, column.in_(values)).distinct()
        for column, values in ((Finding.uuid, uuids), (Finding.project_fingerprint, named))
        if values
    ]
    rows = (row for statement in statements for row in db.session.execute(statement))
    return frozenset((name, number) for name, number in rows if name is not None and number is not None)


def lock_feedback(project: Project) -> None:
    """Lock the project row, so that feedback and reports of a project are written one after the other."""
    locked = select(Project.id).where(Project.id == project.id, Project.deleting_since.is_(None))
    if db.session.scalar(locked.with_for_update(key_share=True)) is None:
        raise NotFound("Project")


def apply_dismissal(feedback: Feedback) -> None:
    """Set ``dismissed`` for the findings that a dismissal matches."""
    _set_dismissed(and_(matched_by(feedback), Finding.dismissed.is_(False)), True)


def withdraw_dismissal(feedback: Feedback) -> None:
    """Reset ``dismissed`` for the findings that a dismissal matched and no other one matches."""
    condition = and_(matched_by(feedback), Finding.dismissed.is_(True), Finding.suppressed.is_(False))
    others = select(Feedback).where(
        Feedback.project_id == feedback.project_id,
        Feedback.feedback_type == DISMISSAL,
        Feedback.id != feedback.id,
        or_(
            Feedback.finding_uuid.in_(select(Finding.uuid).where(condition)),
            Feedback.meant.in_(select(Finding.project_fingerprint).where(condition)),
        ),
    )
    remaining = db.session.scalars(others).all()
    _set_dismissed(condition, False)
    for other in remaining:
        apply_dismissal(other)


def reapply_dismissals(pipeline: Pipeline) -> None:
    """Set ``dismissed`` for all findings of a pipeline and its branch, by all dismissals of its project.

    Dismissals by reports are kept. The caller updates the counts.
    """
    dismissals = (Feedback.project_id == pipeline.project_id, Feedback.feedback_type == DISMISSAL)
    if db.session.scalar(select(Feedback.id).where(*dismissals).limit(1)) is not None:
        _dismiss_in(pipeline, *dismissals)
    _copy_to_states(pipeline)


def _dismiss_in(pipeline: Pipeline, *dismissals: ColumnElement[bool]) -> None:
    """Set ``dismissed`` by the rule of ``matched_by``, for all dismissals and one pipeline."""
    other = aliased(Finding)
    carried = select(other.uuid).where(other.pipeline_id == pipeline.id, other.uuid.is_not(None))
    sole = _sole(other.project_fingerprint, finding=other).where(other.pipeline_id == pipeline.id)
    by_fingerprint = or_(
        Feedback.finding_uuid.is_(None),
        and_(Feedback.finding_uuid.not_in(carried), Feedback.meant.in_(sole)),
    )
    means = or_(
        Finding.uuid.in_(select(Feedback.finding_uuid).where(*dismissals, Feedback.finding_uuid.is_not(None))),
        Finding.project_fingerprint.in_(select(Feedback.meant).where(*dismissals, by_fingerprint)),
    )
    named = aliased(Finding)
    without_uuid = select(Feedback.meant).where(*dismissals, Feedback.finding_uuid.is_(None))
    of_project = (named.project_id == pipeline.project_id, named.tracked_id.is_not(None))
    by_uuid = select(Feedback.finding_uuid).where(*dismissals, Feedback.finding_uuid.is_not(None))
    tracked = or_(
        Finding.tracked_id.in_(select(named.tracked_id).where(*of_project, named.uuid.in_(by_uuid))),
        Finding.tracked_id.in_(
            select(named.tracked_id).where(*of_project, named.project_fingerprint.in_(without_uuid))
        ),
    )
    means = or_(means, tracked)
    dismissed = or_(Finding.suppressed.is_(True), func.coalesce(means, False))  # NULL where there is no uuid
    db.session.execute(
        update(Finding)
        .where(Finding.pipeline_id == pipeline.id, Finding.dismissed != dismissed)
        .values(dismissed=dismissed)
        .execution_options(synchronize_session=False)
    )


def _copy_to_states(pipeline: Pipeline) -> None:
    """Copy ``dismissed`` of the findings of a pipeline to the states of its branch."""
    state = TrackedFindingState
    for value in (True, False):
        findings = select(Finding.id).where(Finding.pipeline_id == pipeline.id, Finding.dismissed.is_(value))
        db.session.execute(
            update(state)
            .where(state.finding_id.in_(findings), state.dismissed.is_(not value))
            .values(dismissed=value)
            .execution_options(synchronize_session=False)
        )


def matched_by(feedback: Feedback) -> ColumnElement[bool]:
    """Return the condition for the findings that a feedback matches, in every pipeline of its project."""
    of_project = Finding.project_id == feedback.project_id
    named = Finding.project_fingerprint == feedback.meant
    tracked = Finding.tracked_id.in_(select_tracked(feedback))
    if feedback.finding_uuid is None:
        return and_(of_project, or_(named, tracked))
    other = aliased(Finding)
    of_it = other.project_id == feedback.project_id
    carriers = select(other.pipeline_id).where(of_it, other.uuid == feedback.finding_uuid)
    sole = _sole(other.pipeline_id, finding=other).where(of_it, other.project_fingerprint == feedback.meant)
    moved = and_(named, Finding.pipeline_id.in_(sole), Finding.pipeline_id.not_in(carriers))
    return and_(of_project, or_(Finding.uuid == feedback.finding_uuid, moved, tracked))


def select_tracked(feedback: Feedback) -> Select[Any]:
    """Select the tracked findings of the places that a feedback names."""
    named = aliased(Finding)
    is_named = named.uuid == feedback.finding_uuid
    if feedback.finding_uuid is None:
        is_named = named.project_fingerprint == feedback.meant
    of_project = (named.project_id == feedback.project_id, named.tracked_id.is_not(None))
    return select(named.tracked_id).where(*of_project, is_named)


def _sole(*columns: Any, finding: type[Finding] = Finding) -> Select[Any]:
    """Select the values of columns that exactly one non-duplicate finding has."""
    return select(*columns).where(finding.kept.is_(True)).group_by(*columns).having(func.count() == 1)


def _set_dismissed(condition: ColumnElement[bool], dismissed: bool) -> None:
    """Set ``dismissed`` of findings that have the other value, and of their states; update the counts.

    The project is locked.
    """
    db.session.execute(
        update(TrackedFindingState)
        .where(TrackedFindingState.finding_id.in_(select(Finding.id).where(condition)))
        .values(dismissed=dismissed)
        .execution_options(synchronize_session=False)
    )
    rank = (Finding.pipeline_id, Finding.sort)
    counted = db.session.execute(
        select(*rank, func.count()).where(condition, Finding.kept.is_(True)).group_by(*rank)
    ).all()
    db.session.execute(
        update(Finding).where(condition).values(dismissed=dismissed).execution_options(synchronize_session=False)
    )
    for pipeline_id, number, count in counted:
        db.session.execute(
            update(FindingCount)
            .where(FindingCount.pipeline_id == pipeline_id, FindingCount.sort == number)
            .values(dismissed=FindingCount.dismissed + (count if dismissed else -count))
            .execution_options(synchronize_session=False)
        )
