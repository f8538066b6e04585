"""Which findings are dismissed. The mark on a finding follows the feedback of its project in the same transaction.

A dismissal with a uuid means the findings with that uuid; in a pipeline that has none, the finding moved, and it means
the one with the project fingerprint, if it is one. A dismissal without a uuid means all with the project fingerprint.
Both are asked for each pipeline anew (findings reference, sections 5 and 14).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, select, update
from sqlalchemy.orm import aliased

from project_service.areas.vulnerabilities.models import DISMISSAL, Feedback, Finding, Pipeline, Tally
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http.errors import NotFound


@dataclass(frozen=True, slots=True)
class Meanings:
    """What feedback means in one pipeline: the uuids that are in it, and the fingerprints that name one finding of it.

    Both are known as far as the feedback asks for them.
    """

    carried: frozenset[str]
    sole: frozenset[str]

    def mean(self, feedback: Feedback, finding: Finding) -> bool:
        """Whether a feedback means a finding of the pipeline."""
        if feedback.finding_uuid is None:
            return feedback.meant == finding.project_fingerprint
        if feedback.finding_uuid in self.carried:
            return feedback.finding_uuid == finding.uuid
        return feedback.meant == finding.project_fingerprint and feedback.meant in self.sole


def meanings_in(pipeline_id: int, feedback: Collection[Feedback]) -> Meanings:
    """What some feedback means in a pipeline."""
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


def hold(project: Project) -> None:
    """Have feedback and reports of a project wait for each other until this transaction has ended."""
    held = select(Project.id).where(Project.id == project.id, Project.deleting_since.is_(None))
    if db.session.scalar(held.with_for_update(key_share=True)) is None:
        raise NotFound("Project")


def mark(feedback: Feedback) -> None:
    """Mark the findings that a dismissal means."""
    _flip(and_(meant_by(feedback), Finding.dismissed.is_(False)), 1)


def unmark(feedback: Feedback) -> None:
    """Take the mark from the findings that a dismissal meant and no other one means."""
    meant = and_(meant_by(feedback), Finding.dismissed.is_(True))
    others = select(Feedback).where(
        Feedback.project_id == feedback.project_id,
        Feedback.feedback_type == DISMISSAL,
        Feedback.id != feedback.id,
        or_(
            Feedback.finding_uuid.in_(select(Finding.uuid).where(meant)),
            Feedback.meant.in_(select(Finding.project_fingerprint).where(meant)),
        ),
    )
    again = db.session.scalars(others).all()
    _flip(meant, -1)
    for other in again:
        mark(other)


def mark_anew(pipeline: Pipeline) -> None:
    """Mark the findings of a pipeline by all dismissals of its project: what it has may have changed what they mean.

    The rule is that of ``meant_by``, for all dismissals and one pipeline at once. Who asks for it counts them then.
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
    dismissed = func.coalesce(means, False)  # unknown where there is no uuid
    db.session.execute(
        update(Finding)
        .where(Finding.pipeline_id == pipeline.id, Finding.dismissed != dismissed)
        .values(dismissed=dismissed)
        .execution_options(synchronize_session=False)
    )


def meant_by(feedback: Feedback) -> ColumnElement[bool]:
    """The condition for the findings that a feedback means, in every pipeline of its project."""
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
    """Those values of a column that one kept finding has, of what is selected."""
    return select(column).where(finding.kept.is_(True)).group_by(column).having(func.count() == 1)


def _flip(condition: ColumnElement[bool], by: int) -> None:
    """Turn the mark of some findings, and count them; the project is held."""
    sort = (Finding.pipeline_id, Finding.sort)
    counted = db.session.execute(
        select(*sort, func.count()).where(condition, Finding.kept.is_(True)).group_by(*sort)
    ).all()
    db.session.execute(
        update(Finding).where(condition).values(dismissed=by > 0).execution_options(synchronize_session=False)
    )
    for pipeline_id, number, count in counted:
        db.session.execute(
            update(Tally)
            .where(Tally.pipeline_id == pipeline_id, Tally.sort == number)
            .values(dismissed=Tally.dismissed + by * count)
            .execution_options(synchronize_session=False)
        )
