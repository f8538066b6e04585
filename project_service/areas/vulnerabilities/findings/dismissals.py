"""Dismissals of findings: keep ``Finding.dismissed`` consistent with the feedback of the project.

A dismissal with a uuid matches the findings with that uuid. In a pipeline without such a finding it matches the finding
with the same project fingerprint, if there is exactly one (the finding has moved). A dismissal without a uuid matches
all findings with the project fingerprint. Both are evaluated per pipeline (findings reference, sections 5 and 14).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, select, update
from sqlalchemy.orm import aliased

from project_service.areas.vulnerabilities.models import DISMISSAL, Feedback, Finding, FindingCount, Pipeline
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http.errors import NotFound


@dataclass(frozen=True, slots=True)
class Meanings:
    """Matching of feedback with findings of one pipeline: its uuids, and the fingerprints that only one finding has.

    Both are limited to those that the feedback refers to.
    """

    carried: frozenset[str]
    sole: frozenset[str]

    def mean(self, feedback: Feedback, finding: Finding) -> bool:
        """Whether a feedback matches a finding of the pipeline."""
        if feedback.finding_uuid is None:
            return feedback.meant == finding.project_fingerprint
        if feedback.finding_uuid in self.carried:
            return feedback.finding_uuid == finding.uuid
        return feedback.meant == finding.project_fingerprint and feedback.meant in self.sole


def meanings_in(pipeline_id: int, feedback: Collection[Feedback]) -> Meanings:
    """Load what is needed to match feedback with the findings of a pipeline."""
    uuids = {one.finding_uuid for one in feedback if one.finding_uuid is not None}
    if not uuids:
        return Meanings(frozenset(), frozenset())
    of_project = Finding.project_id == next(iter(feedback)).project_id
    carried = select(Finding.uuid).where(of_project, Finding.pipeline_id == pipeline_id, Finding.uuid.in_(uuids))
    named = {one.meant for one in feedback}
    sole = _sole(Finding.project_fingerprint).where(
        of_project, Finding.pipeline_id == pipeline_id, Finding.project_fingerprint.in_(named)
    )
    return Meanings(
        frozenset(uuid for uuid in db.session.scalars(carried) if uuid), frozenset(db.session.scalars(sole))
    )


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
    meant = and_(matched_by(feedback), Finding.dismissed.is_(True), Finding.suppressed.is_(False))
    others = select(Feedback).where(
        Feedback.project_id == feedback.project_id,
        Feedback.feedback_type == DISMISSAL,
        Feedback.id != feedback.id,
        or_(
            Feedback.finding_uuid.in_(select(Finding.uuid).where(meant)),
            Feedback.meant.in_(select(Finding.project_fingerprint).where(meant)),
        ),
    )
    remaining = db.session.scalars(others).all()
    _set_dismissed(meant, False)
    for other in remaining:
        apply_dismissal(other)


def reapply_dismissals(pipeline: Pipeline) -> None:
    """Set ``dismissed`` for all findings of a pipeline, by all dismissals of its project.

    The rule is that of ``matched_by``, for all dismissals and one pipeline. Dismissals by reports are kept.
    The caller updates the counts.
    """
    dismissals = (Feedback.project_id == pipeline.project_id, Feedback.feedback_type == DISMISSAL)
    if db.session.scalar(select(Feedback.id).where(*dismissals).limit(1)) is None:
        return
    other = aliased(Finding)
    carried = select(other.uuid).where(other.pipeline_id == pipeline.id, other.uuid.is_not(None))
    sole = _sole(other.project_fingerprint, other).where(other.pipeline_id == pipeline.id)
    by_fingerprint = or_(
        Feedback.finding_uuid.is_(None),
        and_(Feedback.finding_uuid.not_in(carried), Feedback.meant.in_(sole)),
    )
    means = or_(
        Finding.uuid.in_(select(Feedback.finding_uuid).where(*dismissals, Feedback.finding_uuid.is_not(None))),
        Finding.project_fingerprint.in_(select(Feedback.meant).where(*dismissals, by_fingerprint)),
    )
    dismissed = or_(Finding.suppressed.is_(True), func.coalesce(means, False))  # NULL where there is no uuid
    db.session.execute(
        update(Finding)
        .where(Finding.pipeline_id == pipeline.id, Finding.dismissed != dismissed)
        .values(dismissed=dismissed)
        .execution_options(synchronize_session=False)
    )


def matched_by(feedback: Feedback) -> ColumnElement[bool]:
    """Return the condition for the findings that a feedback matches, in every pipeline of its project."""
    of_project = Finding.project_id == feedback.project_id
    named = Finding.project_fingerprint == feedback.meant
    if feedback.finding_uuid is None:
        return and_(of_project, named)
    other = aliased(Finding)
    of_it = other.project_id == feedback.project_id
    carriers = select(other.pipeline_id).where(of_it, other.uuid == feedback.finding_uuid)
    sole = _sole(other.pipeline_id, other).where(of_it, other.project_fingerprint == feedback.meant)
    moved = and_(named, Finding.pipeline_id.in_(sole), Finding.pipeline_id.not_in(carriers))
    return and_(of_project, or_(Finding.uuid == feedback.finding_uuid, moved))


def _sole(column: Any, finding: type[Finding] = Finding) -> Select[Any]:
    """Select the values of a column that exactly one non-duplicate finding has."""
    return select(column).where(finding.kept.is_(True)).group_by(column).having(func.count() == 1)


def _set_dismissed(condition: ColumnElement[bool], dismissed: bool) -> None:
    """Set ``dismissed`` of findings that have the other value, and update the counts; the project is locked."""
    sort = (Finding.pipeline_id, Finding.sort)
    counted = db.session.execute(
        select(*sort, func.count()).where(condition, Finding.kept.is_(True)).group_by(*sort)
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
