"""Which pipelines, findings and feedback there are."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, or_, select, tuple_, union_all
from sqlalchemy.orm import joinedload

from project_service.core import instance
from project_service.core.projects import Project
from project_service.kit.database import db
from project_service.kit.errors import NotFound, RecordNotFound
from project_service.kit.fields import LARGEST_INTEGER
from project_service.vulnerabilities.fingerprints import EMPTY
from project_service.vulnerabilities.levels import CONFIDENCES, SEVERITIES
from project_service.vulnerabilities.models import (
    DISMISSAL,
    Feedback,
    Finding,
    Pipeline,
    Remediation,
    SecurityReport,
    Tally,
)

FALLBACK_BRANCH = "main"
SCOPES = ("all", "dismissed")
ALL = "all"


def default_branch(project: Project) -> str:
    """The branch whose findings are those of the project, also before it has a repository."""
    return project.default_branch or instance.setting("default_branch_name") or FALLBACK_BRANCH


def pipelines_of(project: Project) -> Select[Pipeline]:
    """The pipelines of the default branch, newest first."""
    statement = select(Pipeline).where(Pipeline.project_id == project.id, Pipeline.ref == default_branch(project))
    return statement.order_by(Pipeline.id.desc())


def find_pipeline(project: Project, pipeline_id: int) -> Pipeline:
    """One pipeline of a project, of whatever branch."""
    found = db.session.scalar(select(Pipeline).where(Pipeline.project_id == project.id, Pipeline.id == pipeline_id))
    if found is None:
        raise NotFound("Pipeline")
    return found


def pipeline_meant(project: Project, pipeline_id: str | None = None) -> Pipeline | None:
    """The pipeline that a list is of: the newest of the default branch, or the one asked for; ``None`` if not there."""
    text = (pipeline_id or "").strip()
    if not text:
        return db.session.scalar(pipelines_of(project).limit(1))
    if not text.isascii() or not text.isdigit():
        return None
    number = min(int(text), LARGEST_INTEGER)
    return db.session.scalar(select(Pipeline).where(Pipeline.project_id == project.id, Pipeline.id == number))


def tallies_of(pipeline: Pipeline, **wanted: Any) -> list[Row[Any]]:
    """How many findings a pipeline has of each sort that is wanted, in the order of lists.

    That is: by severity, then by confidence, the highest first, then by when the kind of report first came.
    """
    first = (
        select(SecurityReport.report_type, func.min(SecurityReport.id).label("first"))
        .where(SecurityReport.pipeline_id == pipeline.id)
        .group_by(SecurityReport.report_type)
        .subquery()
    )
    statement = (
        select(Tally.report_type, Tally.severity, Tally.confidence, Tally.found, Tally.dismissed)
        .join(first, first.c.report_type == Tally.report_type)
        .where(Tally.pipeline_id == pipeline.id, *_conditions(wanted))
        .order_by(Tally.severity.desc(), Tally.confidence.desc(), first.c.first)
    )
    return list(db.session.execute(statement))


def findings_of(pipeline: Pipeline | None, *, scope: str = "dismissed", **wanted: Any) -> Findings:
    """The findings of a pipeline with the wanted kinds and levels; with ``scope`` all also those that are dismissed."""
    if pipeline is None:
        return Findings(0)
    return Findings(pipeline.id, tuple(tallies_of(pipeline, **wanted)), dismissed_too=scope == ALL)


def counts_of(findings: Findings) -> dict[int, int]:
    """How many of some findings have each severity."""
    counted: dict[int, int] = {}
    for tally in findings.tallies:
        counted[tally.severity] = counted.get(tally.severity, 0) + findings.count(tally)
    return counted


def find_finding(project: Project, finding_id: int) -> Finding:
    """One finding of a project, of whatever pipeline."""
    found = db.session.scalar(
        _with_origins(Finding.project_id == project.id, Finding.id == min(finding_id, LARGEST_INTEGER))
    )
    if found is None:
        raise RecordNotFound
    return found


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of a pipeline in their order, cut without reading those before: see ``models``.

    ``tallies`` are those of the sorts that are wanted, in the order of the list.
    """

    pipeline_id: int
    tallies: tuple[Row[Any], ...] = ()
    dismissed_too: bool = False

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.count(tally) for tally in self.tallies)

    def rows(self, offset: int, limit: int) -> list[Finding]:
        """Some of them."""
        parts = []
        for tally in self.tallies:
            count = self.count(tally)
            if offset < count:
                taken = min(count - offset, limit)
                parts.append(self._sort(tally).offset(offset).limit(taken).subquery())
                limit -= taken
            offset = max(offset - count, 0)
            if not limit:
                break
        if not parts:
            return []
        ids = list(db.session.scalars(union_all(*(select(part.c.id) for part in parts))))
        found = {finding.id: finding for finding in db.session.scalars(_with_origins(Finding.id.in_(ids)))}
        return [found[one] for one in ids]

    def count(self, tally: Row[Any]) -> int:
        """How many of one sort are listed."""
        return int(tally.found if self.dismissed_too else tally.found - tally.dismissed)

    def _sort(self, tally: Row[Any]) -> Select[Any]:
        statement = select(Finding.id).where(
            Finding.pipeline_id == self.pipeline_id,
            Finding.report_type == tally.report_type,
            Finding.kept.is_(True),
            Finding.severity == tally.severity,
            Finding.confidence == tally.confidence,
        )
        if not self.dismissed_too:
            statement = statement.where(Finding.dismissed.is_(False))
        return statement.order_by(Finding.place)


def prepare(findings: list[Finding]) -> None:
    """Fetch for all findings of a page what each shows: its remediation, and what people decided about it."""
    remediations = _remediations_of(findings)
    feedback = list(_feedback_on(findings))
    for finding in findings:
        data = remediations.get((finding.report_id, finding.remediation))
        finding.remediations = None if data is None else [data]  # type: ignore[attr-defined]  # shown, never stored
        finding.feedback = _about(finding, feedback)  # type: ignore[attr-defined]  # as above


def find_dismissal(project: Project, feedback_id: int) -> Feedback:
    """One dismissal of a project."""
    found = db.session.scalar(
        select(Feedback).where(
            Feedback.project_id == project.id,
            Feedback.feedback_type == DISMISSAL,
            Feedback.id == min(feedback_id, LARGEST_INTEGER),
        )
    )
    if found is None:
        raise RecordNotFound
    return found


def dismissals_meaning(finding: Finding) -> list[Feedback]:
    """The dismissals that mean a finding, of whatever category."""
    means = Feedback.meant == finding.project_fingerprint
    if finding.uuid is not None:
        means = or_(means, Feedback.finding_uuid == finding.uuid)
    statement = select(Feedback).where(
        Feedback.project_id == finding.project_id, Feedback.feedback_type == DISMISSAL, means
    )
    return list(db.session.scalars(statement.order_by(Feedback.id).options(joinedload(Feedback.author))))


def feedback_about(project: Project, **meaning: Any) -> Feedback | None:
    """What is recorded already of a type, a category and a finding, which ``meant`` or ``finding_uuid`` names."""
    same = [Feedback.meant == meaning["meant"]]
    if meaning["finding_uuid"] is not None:
        same.append(Feedback.finding_uuid == meaning["finding_uuid"])
    statement = select(Feedback).where(
        Feedback.project_id == project.id,
        Feedback.category == meaning["category"],
        Feedback.feedback_type == meaning["feedback_type"],
        or_(*same),
    )
    return db.session.scalar(statement.order_by((Feedback.meant == meaning["meant"]).desc(), Feedback.id).limit(1))


def finding_meant(pipeline: Pipeline | None, uuid: str | None, project_fingerprint: str) -> Finding | None:
    """The finding of a pipeline that a feedback speaks of."""
    if pipeline is None:
        return None
    means = Finding.uuid == uuid if uuid is not None else Finding.project_fingerprint == project_fingerprint
    statement = _with_origins(Finding.pipeline_id == pipeline.id, Finding.project_id == pipeline.project_id, means)
    return db.session.scalar(statement.order_by(Finding.kept.desc(), Finding.id).limit(1))


def share_fingerprint(pipeline: Pipeline | None, project_fingerprint: str) -> bool:
    """Whether a project fingerprint stands for more than one finding of a pipeline, or for none in particular."""
    if project_fingerprint == EMPTY:
        return True
    if pipeline is None:
        return False
    same = select(Finding.id).where(
        Finding.project_id == pipeline.project_id,
        Finding.project_fingerprint == project_fingerprint,
        Finding.pipeline_id == pipeline.id,
        Finding.kept.is_(True),
    )
    return len(db.session.scalars(same.limit(2)).all()) > 1


def _conditions(wanted: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    if wanted.get("report_type"):
        yield Tally.report_type.in_(wanted["report_type"])
    if wanted.get("severity"):
        yield Tally.severity.in_([int(SEVERITIES[name]) for name in wanted["severity"]])
    if wanted.get("confidence"):
        yield Tally.confidence.in_([int(CONFIDENCES[name]) for name in wanted["confidence"]])


def _with_origins(*conditions: ColumnElement[bool]) -> Select[Finding]:
    statement = select(Finding).where(*conditions)
    return statement.options(joinedload(Finding.report, innerjoin=True), joinedload(Finding.pipeline, innerjoin=True))


def _remediations_of(findings: Iterable[Finding]) -> dict[tuple[int, int | None], dict[str, Any]]:
    wanted = {(one.report_id, one.remediation) for one in findings if one.remediation is not None}
    if not wanted:
        return {}
    key = tuple_(Remediation.report_id, Remediation.position)
    rows = db.session.scalars(select(Remediation).where(key.in_(list(wanted))))
    return {(row.report_id, row.position): row.data for row in rows}


def _feedback_on(findings: Collection[Finding]) -> Iterable[Feedback]:
    if not findings:
        return ()
    uuids = {one.uuid for one in findings if one.uuid}
    means = or_(Feedback.finding_uuid.in_(uuids), Feedback.meant.in_({one.project_fingerprint for one in findings}))
    project_id = next(iter(findings)).project_id
    statement = select(Feedback).where(Feedback.project_id == project_id, means)
    return db.session.scalars(
        statement.order_by(Feedback.id).options(
            joinedload(Feedback.author),
            joinedload(Feedback.comment_author),
            joinedload(Feedback.pipeline),
            joinedload(Feedback.issue),
            joinedload(Feedback.merge_request),
        )
    )


def _about(finding: Finding, feedback: Iterable[Feedback]) -> dict[str, Feedback]:
    """One of each type: what names the finding's uuid goes before what names its fingerprint."""
    found: dict[str, Feedback] = {}
    for one in feedback:
        if one.category != finding.report_type:
            continue
        if finding.uuid is not None and one.finding_uuid == finding.uuid:
            found[one.feedback_type] = one
        elif one.meant == finding.project_fingerprint:
            found.setdefault(one.feedback_type, one)
    return found
