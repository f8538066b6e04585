"""Which pipelines, findings and feedback there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, bindparam, or_, select, union_all
from sqlalchemy.orm import joinedload

from project_service.areas.vulnerabilities.dismissals import meanings_in
from project_service.areas.vulnerabilities.fingerprints import EMPTY
from project_service.areas.vulnerabilities.levels import Severity
from project_service.areas.vulnerabilities.models import (
    DISMISSAL,
    FEEDBACK_TYPES,
    Feedback,
    Finding,
    Pipeline,
    Remediation,
    SecurityReport,
    Tally,
)
from project_service.areas.vulnerabilities.severity_order import Sort
from project_service.domain import instance_settings
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.kit.db.base import Key
from project_service.kit.db.bulk import among, numbers
from project_service.kit.db.reading import Given, along, by_id, made_once, remember, rows
from project_service.kit.db.session import db
from project_service.kit.db.statements import Rows, packed, prepared
from project_service.kit.http.errors import NotFound, RecordNotFound
from project_service.kit.http.fields import LARGEST_INTEGER, whole_number

FALLBACK_BRANCH = "main"
SCOPES = ("all", "dismissed")
ALL = "all"


def default_branch(project: Project) -> str:
    """The branch whose findings are those of the project, also before it has a repository."""
    return project.default_branch or instance_settings.setting("default_branch_name") or FALLBACK_BRANCH


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
        return _first(_newest(project=project.id, ref=default_branch(project)))
    number = whole_number(text)
    return None if number is None else _first(_numbered(project=project.id, pipeline=number))


def _first(pipelines: Given) -> Pipeline | None:
    return next(iter(rows(pipelines, limit=1)), None)


@made_once
def _newest() -> Select[Pipeline]:
    return _along_project(Pipeline.ref == bindparam("ref")).order_by(Pipeline.id.desc())


@made_once
def _numbered() -> Select[Pipeline]:
    return _along_project(Pipeline.id == bindparam("pipeline"))


def _along_project(condition: ColumnElement[bool]) -> Select[Pipeline]:
    return along(select(Pipeline).where(Pipeline.project_id == bindparam("project"), condition), Pipeline.project)


class Tallied(NamedTuple):
    """How many findings of one sort are listed."""

    sort: Sort
    listed: int


def findings_of(pipeline: Pipeline | None, *, scope: str = "dismissed", **wanted: Any) -> Findings:
    """The findings of a pipeline with the wanted kinds and levels; with ``scope`` all also those that are dismissed.

    They are ordered by severity, then by confidence, the highest first, then by when the kind of report first came.
    """
    if pipeline is None:
        return Findings(None)
    reports: list[SecurityReport] = rows(_reports(pipeline=pipeline.id))
    turns = {kind: turn for turn, kind in enumerate(dict.fromkeys(report.report_type for report in reports))}
    dismissed_too = scope == ALL
    tallied = [
        Tallied(sort, listed)
        for number, found, dismissed in rows(_tallies(pipeline=pipeline.id))
        if (listed := found - (0 if dismissed_too else dismissed)) and _is_wanted(sort := Sort.of(number), wanted)
    ]
    tallied.sort(key=lambda one: (-one.sort.severity, -one.sort.confidence, turns[one.sort.report_type]))
    remember(pipeline, *reports)
    return Findings(pipeline, tuple(tallied), dismissed_too)


@made_once
def _reports() -> Select[SecurityReport]:
    of_pipeline = SecurityReport.pipeline_id == bindparam("pipeline")
    return select(SecurityReport).where(of_pipeline).order_by(SecurityReport.id)


@made_once
def _tallies() -> Select[int, int, int]:
    return select(Tally.sort, Tally.found, Tally.dismissed).where(Tally.pipeline_id == bindparam("pipeline"))


def counts_of(findings: Findings) -> Counter[Severity]:
    """How many of some findings have each severity."""
    counted: Counter[Severity] = Counter()
    for tallied in findings.tallied:
        counted[tallied.sort.severity] += tallied.listed
    return counted


def find_finding(project: Project, finding_id: int) -> Finding:
    """One finding of a project, of whatever pipeline."""
    found = db.session.scalar(
        select(Finding).where(Finding.project_id == project.id, Finding.id == min(finding_id, LARGEST_INTEGER))
    )
    if found is None:
        raise RecordNotFound
    return found


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of a pipeline in their order, cut without reading those before: see ``models``."""

    pipeline: Pipeline | None
    tallied: tuple[Tallied, ...] = ()
    dismissed_too: bool = False

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(tallied.listed for tallied in self.tallied)

    def rows(self, offset: int, limit: int) -> list[Finding]:
        """Some of them: of most sorts all or nothing, of the first and the last perhaps a part."""
        if self.pipeline is None:
            return []
        whole: list[int] = []
        found: list[Finding] = []
        of_pipeline = {"pipeline": self.pipeline.id}
        for sort, count in self.tallied:
            taken = max(min(count - offset, limit), 0)
            if taken == count:
                whole.append(sort.number)
            elif taken:
                cut = {"sort": sort.number, "first": offset, "taken": taken}
                found += rows(_part_of_one(self.dismissed_too, **of_pipeline, **cut))
            offset, limit = max(offset - count, 0), limit - taken
            if not limit:
                break
        if whole:
            found += rows(_whole(self.dismissed_too, **of_pipeline, sorts=numbers(whole)))
        turns = {tallied.sort.number: turn for turn, tallied in enumerate(self.tallied)}
        return sorted(found, key=lambda one: (turns[one.sort], one.place))


@made_once
def _whole(dismissed_too: bool) -> Select[Finding]:
    """All findings of some sorts."""
    return _shown(*_listed(dismissed_too), among(Finding.sort, "sorts"))


@made_once
def _part_of_one(dismissed_too: bool) -> Select[Finding]:
    """Some findings of a sort."""
    of_sort = select(Finding.id).where(*_listed(dismissed_too), Finding.sort == bindparam("sort"))
    first, taken = bindparam("first", type_=Key), bindparam("taken", type_=Key)
    return _shown(Finding.id.in_(of_sort.order_by(Finding.place).offset(first).limit(taken)))


def _listed(dismissed_too: bool) -> Iterable[ColumnElement[bool]]:
    yield Finding.pipeline_id == bindparam("pipeline")
    yield Finding.kept.is_(True)
    if not dismissed_too:
        yield Finding.dismissed.is_(False)


def _shown(*conditions: ColumnElement[bool]) -> Select[Finding]:
    return along(select(Finding).where(*conditions), Finding.report, (Finding.pipeline, Pipeline.project))


def prepare(findings: list[Finding]) -> None:
    """Fetch for findings of one pipeline what each shows: its remediation, and what people decided about it."""
    remediations = _remediations_of(findings)
    feedback = list(_feedback_on(findings))
    meanings = meanings_in(findings[0].pipeline_id, feedback) if feedback else None
    for finding in findings:
        data = remediations.get((finding.report_id, finding.remediation))
        finding.remediations = None if data is None else [data]  # type: ignore[attr-defined]  # shown, never stored
        meant = (one for one in feedback if meanings and meanings.mean(one, finding))
        finding.feedback = _about(finding, meant)  # type: ignore[attr-defined]  # as above


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
    named = Feedback.meant == finding.project_fingerprint
    if finding.uuid is not None:
        named = or_(named, Feedback.finding_uuid == finding.uuid)
    statement = select(Feedback).where(
        Feedback.project_id == finding.project_id, Feedback.feedback_type == DISMISSAL, named
    )
    found = db.session.scalars(statement.order_by(Feedback.id).options(joinedload(Feedback.author))).all()
    meanings = meanings_in(finding.pipeline_id, found)
    return [one for one in found if meanings.mean(one, finding)]


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
    known = db.session.scalars(carried).all()
    return bool(known) and project_fingerprint not in known


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


def _is_wanted(sort: Sort, wanted: Mapping[str, Collection[str]]) -> bool:
    return all(not texts or sort.text(name) in texts for name, texts in wanted.items())


def _remediations_of(findings: Iterable[Finding]) -> dict[tuple[int, int | None], dict[str, Any]]:
    wanted = {(one.report_id, one.remediation) for one in findings if one.remediation is not None}
    if not wanted:
        return {}
    found = _remediations(places=packed({"report": report, "position": position} for report, position in wanted))
    return {(one.report_id, one.position): one.data for one in found}


@prepared
def _remediations() -> Any:
    place = Rows("places")
    here = (Remediation.report_id == place.whole("report"), Remediation.position == place.whole("position"))
    return select(Remediation.report_id, Remediation.position, Remediation.data).where(*here)


def _feedback_on(findings: Collection[Finding]) -> Iterable[Feedback]:
    if not findings:
        return ()
    ids = _feedback_meaning(
        project=next(iter(findings)).project_id,
        types=numbers(FEEDBACK_TYPES),
        uuids=numbers({one.uuid for one in findings if one.uuid}),
        fingerprints=numbers({one.project_fingerprint for one in findings}),
    )
    found = by_id(
        Feedback,
        (number for (number,) in ids),
        Feedback.project,
        Feedback.author,
        Feedback.comment_author,
        Feedback.pipeline,
        (Feedback.issue, Issue.project),
        (Feedback.issue, Issue.assignees),
        Feedback.merge_request,
    )
    return [found[number] for number in sorted(found)]


@prepared
def _feedback_meaning() -> Any:
    """The ids of what was decided about findings: by their uuids and by their fingerprints, each in its own index."""
    of_project = select(Feedback.id).where(
        Feedback.project_id == bindparam("project"), among(Feedback.feedback_type, "types")
    )
    by_uuid, by_fingerprint = among(Feedback.finding_uuid, "uuids"), among(Feedback.meant, "fingerprints")
    return union_all(of_project.where(by_uuid), of_project.where(by_fingerprint))


def _about(finding: Finding, feedback: Iterable[Feedback]) -> dict[str, Feedback]:
    """One of each type: what names the uuid of the finding goes before what names its fingerprint."""
    found: dict[str, Feedback] = {}
    for one in feedback:
        if one.category != finding.report_type:
            continue
        if finding.uuid is not None and one.finding_uuid == finding.uuid:
            found[one.feedback_type] = one
        else:
            found.setdefault(one.feedback_type, one)
    return found
