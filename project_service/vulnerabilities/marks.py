"""Which findings are dismissed. The mark on a finding follows the feedback of its project in the same transaction.

A dismissal means the findings with its uuid, and those with the project fingerprint it means, if that stands for one
finding (findings reference, sections 5 and 14).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, func, or_, select, update

from project_service.core.projects import Project
from project_service.kit.database import db
from project_service.kit.errors import NotFound
from project_service.vulnerabilities.models import DISMISSAL, Feedback, Finding, Tally


@dataclass(frozen=True, slots=True)
class Dismissals:
    """What all dismissals of a project mean."""

    uuids: frozenset[str]
    fingerprints: frozenset[str]

    def mean(self, uuid: str | None, project_fingerprint: str) -> bool:
        """Whether one of them means the finding."""
        return uuid in self.uuids or project_fingerprint in self.fingerprints


def hold(project: Project) -> None:
    """Have feedback and reports of a project wait for each other until this transaction has ended."""
    held = select(Project.id).where(Project.id == project.id, Project.deleting_since.is_(None))
    if db.session.scalar(held.with_for_update(key_share=True)) is None:
        raise NotFound("Project")


def dismissals_of(project_id: int) -> Dismissals:
    """The dismissals of a project."""
    rows = db.session.execute(
        select(Feedback.finding_uuid, Feedback.meant).where(
            Feedback.project_id == project_id, Feedback.feedback_type == DISMISSAL
        )
    ).all()
    return Dismissals(frozenset(uuid for uuid, _ in rows if uuid), frozenset(meant for _, meant in rows))


def mark(feedback: Feedback) -> None:
    """Mark the findings that a dismissal means."""
    _flip(and_(meant_by(feedback), Finding.dismissed.is_(False)), 1)


def unmark(feedback: Feedback) -> None:
    """Take the mark from the findings that a dismissal meant and no other one means."""
    others = (
        Feedback.project_id == feedback.project_id,
        Feedback.feedback_type == DISMISSAL,
        Feedback.id != feedback.id,
    )
    still = or_(
        Finding.uuid.in_(select(Feedback.finding_uuid).where(*others, Feedback.finding_uuid.is_not(None))),
        Finding.project_fingerprint.in_(select(Feedback.meant).where(*others)),
    )
    _flip(and_(meant_by(feedback), Finding.dismissed.is_(True), func.coalesce(still, False).is_(False)), -1)


def meant_by(feedback: Feedback) -> ColumnElement[bool]:
    """The condition for the findings that a feedback means, in every pipeline of its project."""
    means = Finding.project_fingerprint == feedback.meant
    if feedback.finding_uuid is not None:
        means = or_(Finding.uuid == feedback.finding_uuid, means)
    return and_(Finding.project_id == feedback.project_id, means)


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
