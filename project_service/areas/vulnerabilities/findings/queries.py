"""Queries of pipelines, findings and feedback."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, literal, or_, select, tuple_, union_all
from sqlalchemy.orm import aliased, joinedload, selectinload

from project_service.areas.vulnerabilities.findings.dismissals import meanings_in
from project_service.areas.vulnerabilities.fingerprints import EMPTY
from project_service.areas.vulnerabilities.levels import FindingSeverity
from project_service.areas.vulnerabilities.models import (
    DISMISSAL,
    FEEDBACK_TYPES,
    Feedback,
    Finding,
    FindingCount,
    Pipeline,
    Remediation,
    SecurityReport,
    TrackedFinding,
    TrackedFindingState,
)
from project_service.areas.vulnerabilities.severity_order import FindingRank
from project_service.domain import instance_settings
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.kit.db import large_texts
from project_service.kit.db.session import NO_LAZY_LOADING, db, one
from project_service.kit.http.errors import NotFound, RecordNotFound
from project_service.kit.http.fields import LARGEST_INTEGER, whole_number

FALLBACK_BRANCH = "main"
SCOPES = ("all", "dismissed")
ALL = "all"


def default_branch(project: Project) -> str:
    """The branch whose findings are those of the project, also before it has a repository."""
    return project.default_branch or fallback_branch()


def fallback_branch() -> str:
    """The default branch of projects without a repository."""
    name: str | None = instance_settings.setting("default_branch_name")
    return name or FALLBACK_BRANCH


def pipelines_of(project: Project) -> Select[Pipeline]:
    """The pipelines of the default branch, newest first."""
    statement = select(Pipeline).where(Pipeline.project_id == project.id, Pipeline.ref == default_branch(project))
    return statement.order_by(Pipeline.id.desc())


def find_pipeline(project: Project, pipeline_id: int) -> Pipeline:
    """A pipeline of any branch of a project."""
    return one(_pipeline_of(project, pipeline_id), NotFound("Pipeline"))


def requested_pipeline(project: Project, pipeline_id: str | None = None) -> Pipeline | None:
    """The pipeline of a list: the newest of the default branch or the requested one; ``None`` if it does not exist."""
    text = (pipeline_id or "").strip()
    if not text:
        return db.session.scalar(pipelines_of(project).limit(1))
    number = whole_number(text)
    return None if number is None else db.session.scalar(_pipeline_of(project, number))


def _pipeline_of(project: Project, pipeline_id: int) -> Select[Pipeline]:
    return select(Pipeline).where(Pipeline.project_id == project.id, Pipeline.id == pipeline_id)


class RankCount(NamedTuple):
    """How many findings of one rank are listed."""

    rank: FindingRank
    listed: int


def findings_of(pipeline: Pipeline | None, *, scope: str = "dismissed", **wanted: Any) -> Findings:
    """The findings of a pipeline with the wanted kinds and levels; with ``scope`` all also those that are dismissed.

    They are ordered by severity, then by confidence, the highest first, then by when the kind of report first came.
    """
    if pipeline is None:
        return Findings(None)
    of_pipeline = SecurityReport.pipeline_id == pipeline.id
    report_types = db.session.scalars(select(SecurityReport.report_type).where(of_pipeline).order_by(SecurityReport.id))
    type_order = {kind: position for position, kind in enumerate(dict.fromkeys(report_types))}
    statement = select(FindingCount.sort, FindingCount.found, FindingCount.dismissed).where(
        FindingCount.pipeline_id == pipeline.id
    )
    dismissed_too = scope == ALL
    counts = [
        RankCount(rank, listed)
        for number, found_count, dismissed in db.session.execute(statement)
        if (listed := found_count - (0 if dismissed_too else dismissed))
        and _is_wanted(rank := FindingRank.of(number), wanted)
    ]
    counts.sort(key=lambda count: (-count.rank.severity, -count.rank.confidence, type_order[count.rank.report_type]))
    return Findings(pipeline, tuple(counts), dismissed_too)


def counts_of(findings: Findings) -> Counter[FindingSeverity]:
    """How many of some findings have each severity."""
    counted: Counter[FindingSeverity] = Counter()
    for count in findings.rank_counts:
        counted[count.rank.severity] += count.listed
    return counted


def find_finding(project: Project, finding_id: int) -> Finding:
    """A finding of any pipeline of a project."""
    statement = select(Finding).where(Finding.project_id == project.id, Finding.id == min(finding_id, LARGEST_INTEGER))
    return one(statement.options(joinedload(Finding.pipeline)), RecordNotFound())


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of a pipeline in their order, cut without reading those before: see ``models``."""

    pipeline: Pipeline | None
    rank_counts: tuple[RankCount, ...] = ()
    dismissed_too: bool = False

    @property
    def total(self) -> int:
        """The number of findings."""
        return sum(count.listed for count in self.rank_counts)

    def rows(self, offset: int, limit: int) -> list[Finding]:
        """Some of them: of most ranks all or nothing, of the first and the last perhaps a part."""
        if self.pipeline is None:
            return []
        whole: list[int] = []
        findings: list[Finding] = []
        loaded = selectinload(Finding.report), selectinload(Finding.pipeline), NO_LAZY_LOADING
        listed = select(Finding).where(*self._conditions(self.pipeline)).options(*loaded)
        for rank, count in self.rank_counts:
            taken = max(min(count - offset, limit), 0)
            if taken == count:
                whole.append(rank.number)
            elif taken:
                # the index alone selects these rows: only they are read
                of_rank = select(Finding.id).where(*self._conditions(self.pipeline), Finding.sort == rank.number)
                cut = of_rank.order_by(Finding.place).offset(offset).limit(taken)
                findings += large_texts.load(listed.where(Finding.id.in_(cut)))
            offset, limit = max(offset - count, 0), limit - taken
            if not limit:
                break
        if whole:
            findings += large_texts.load(listed.where(Finding.sort.in_(whole)))
        rank_order = {count.rank.number: position for position, count in enumerate(self.rank_counts)}
        return sorted(findings, key=lambda finding: (rank_order[finding.sort], finding.place))

    def _conditions(self, pipeline: Pipeline) -> Iterable[ColumnElement[bool]]:
        yield Finding.pipeline_id == pipeline.id
        yield Finding.kept.is_(True)
        if not self.dismissed_too:
            yield Finding.dismissed.is_(False)


def prepare(findings: list[Finding]) -> None:
    """Set ``remediations`` and ``feedback`` of findings; the number of statements is constant."""
    remediations = _remediations_of(findings)
    feedback, has_moved = _feedback_on(findings)
    pipeline_ids = {finding.pipeline_id for finding in findings} if feedback else set()
    meanings = meanings_in(pipeline_ids, feedback, with_places=has_moved)
    seen_times = _seen(findings)
    for finding in findings:
        data = remediations.get((finding.report_id, finding.remediation))
        finding.remediations = None if data is None else [data]
        times = seen_times.get((finding.tracked_id, finding.pipeline.ref), (None, None))
        finding.first_seen_at, finding.last_seen_at = times
        matching = (row for row in feedback if meanings[finding.pipeline_id].mean(row, finding))
        finding.feedback = _about(finding, matching)


def _seen(findings: Collection[Finding]) -> dict[tuple[int | None, str], tuple[dt.datetime, dt.datetime]]:
    """Return when the tracked findings were first seen, and last seen on the branches of the findings."""
    ids = {finding.tracked_id for finding in findings if finding.tracked_id is not None}
    if not ids:
        return {}
    state = TrackedFindingState
    rows = db.session.execute(
        select(state.tracked_id, state.ref, TrackedFinding.first_seen_at, state.last_seen_at)
        .join(TrackedFinding, TrackedFinding.id == state.tracked_id)
        .where(state.tracked_id.in_(ids), state.ref.in_({finding.pipeline.ref for finding in findings}))
    )
    return {(tracked_id, ref): (first, last) for tracked_id, ref, first, last in rows}


def find_dismissal(project: Project, feedback_id: int) -> Feedback:
    """One dismissal of a project."""
    return one(
        select(Feedback).where(
            Feedback.project_id == project.id,
            Feedback.feedback_type == DISMISSAL,
            Feedback.id == min(feedback_id, LARGEST_INTEGER),
        ),
        RecordNotFound(),
    )


def dismissals_meaning(finding: Finding) -> list[Feedback]:
    """The dismissals that match a finding, of any category."""
    named = Feedback.meant == finding.project_fingerprint
    if finding.uuid is not None:
        named = or_(named, Feedback.finding_uuid == finding.uuid)
    if finding.tracked_id is not None:
        named = or_(named, _names_place_of([finding.tracked_id]))
    statement = select(Feedback).where(
        Feedback.project_id == finding.project_id, Feedback.feedback_type == DISMISSAL, named
    )
    dismissals = db.session.scalars(statement.order_by(Feedback.id).options(joinedload(Feedback.author))).all()
    meanings = meanings_in([finding.pipeline_id], dismissals)[finding.pipeline_id]
    return [dismissal for dismissal in dismissals if meanings.mean(dismissal, finding)]


def _names_place_of(tracked_ids: Collection[int]) -> ColumnElement[bool]:
    """Whether feedback names a place of a tracked finding."""
    named = aliased(Finding)
    of_tracked = named.tracked_id.in_(tracked_ids)
    by_fingerprint = Feedback.meant.in_(select(named.project_fingerprint).where(of_tracked))
    return or_(
        Feedback.finding_uuid.in_(select(named.uuid).where(of_tracked, named.uuid.is_not(None))),
        and_(Feedback.finding_uuid.is_(None), by_fingerprint),
    )


def feedback_about(project: Project, finding: Finding | None, **meaning: Any) -> Feedback | None:
    """What is recorded already of a type, a category and a finding, which ``meant`` or ``finding_uuid`` names.

    That may be about another place of the same tracked finding.
    """
    same = [Feedback.meant == meaning["meant"]]
    if finding is not None and finding.tracked_id is not None:
        same.append(_names_place_of([finding.tracked_id]))
    if meaning["finding_uuid"] is not None:
        same.append(Feedback.finding_uuid == meaning["finding_uuid"])
    statement = select(Feedback).where(
        Feedback.project_id == project.id,
        Feedback.category == meaning["category"],
        Feedback.feedback_type == meaning["feedback_type"],
        or_(*same),
    )
    return db.session.scalar(statement.order_by((Feedback.meant == meaning["meant"]).desc(), Feedback.id).limit(1))


def finding_of_feedback(pipeline: Pipeline | None, uuid: str | None, project_fingerprint: str) -> Finding | None:
    """The finding of a pipeline that feedback refers to."""
    if pipeline is None:
        return None
    means = Finding.uuid == uuid if uuid is not None else Finding.project_fingerprint == project_fingerprint
    statement = select(Finding).where(
        Finding.pipeline_id == pipeline.id, Finding.project_id == pipeline.project_id, means
    )
    return db.session.scalar(statement.order_by(Finding.kept.desc(), Finding.id).limit(1))


def contradict(pipeline: Pipeline | None, uuid: str | None, project_fingerprint: str) -> bool:
    """Whether the finding of a pipeline with a uuid has another project fingerprint than this."""
    if pipeline is None or uuid is None:
        return False
    carried = select(Finding.project_fingerprint).where(
        Finding.project_id == pipeline.project_id, Finding.uuid == uuid, Finding.pipeline_id == pipeline.id
    )
    fingerprints = db.session.scalars(carried).all()
    return bool(fingerprints) and project_fingerprint not in fingerprints


def share_fingerprint(pipeline: Pipeline | None, project_fingerprint: str) -> bool:
    """Whether a project fingerprint matches several findings of a pipeline, or none in particular."""
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


def _is_wanted(sort: FindingRank, wanted: Mapping[str, Collection[str]]) -> bool:
    return all(not texts or sort.text(name) in texts for name, texts in wanted.items())


def _remediations_of(findings: Iterable[Finding]) -> dict[tuple[int, int | None], dict[str, Any]]:
    wanted = {(finding.report_id, finding.remediation) for finding in findings if finding.remediation is not None}
    if not wanted:
        return {}
    key = Remediation.report_id, Remediation.position
    rows = db.session.execute(select(*key, Remediation.data).where(tuple_(*key).in_(wanted)))
    return {(report_id, position): data for report_id, position, data in rows}


def _feedback_on(findings: Collection[Finding]) -> tuple[Sequence[Feedback], bool]:
    """Return the feedback on findings, and whether some of it names another place of a tracked finding."""
    if not findings:
        return (), False
    of_project = select(Feedback.id).where(
        Feedback.project_id == next(iter(findings)).project_id, Feedback.feedback_type.in_(FEEDBACK_TYPES)
    )
    # by uuid and by fingerprint, each by an index of its own
    by_uuid = of_project.where(Feedback.finding_uuid.in_({finding.uuid for finding in findings if finding.uuid}))
    by_fingerprint = of_project.where(Feedback.meant.in_({finding.project_fingerprint for finding in findings}))
    statements = [select(statement.subquery(), literal(False)) for statement in (by_uuid, by_fingerprint)]
    if tracked_ids := {finding.tracked_id for finding in findings if finding.tracked_id is not None}:
        by_place = of_project.where(_names_place_of(tracked_ids))
        statements.append(select(by_place.subquery(), literal(True)))
    rows = db.session.execute(union_all(*statements)).all()
    ids = {number for number, _ in rows}
    if not ids:
        return (), False
    has_moved = ids != {number for number, is_place in rows if not is_place}
    feedback = select(Feedback).where(Feedback.id.in_(ids)).order_by(Feedback.id)
    loaded = (
        selectinload(Feedback.author),
        selectinload(Feedback.comment_author),
        selectinload(Feedback.pipeline),
        selectinload(Feedback.issue).selectinload(Issue.assignees),
        selectinload(Feedback.merge_request),
    )
    return db.session.scalars(feedback.options(*loaded, NO_LAZY_LOADING)).all(), has_moved


def _about(finding: Finding, feedback: Iterable[Feedback]) -> dict[str, Feedback]:
    """One of each type: what names the uuid of the finding goes before what names its fingerprint."""
    by_type: dict[str, Feedback] = {}
    for row in feedback:
        if row.category != finding.report_type:
            continue
        if finding.uuid is not None and row.finding_uuid == finding.uuid:
            by_type[row.feedback_type] = row
        else:
            by_type.setdefault(row.feedback_type, row)
    return by_type
