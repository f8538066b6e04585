"""Models: pipelines with their reports, findings with their counts by sort, and feedback.

The list of findings is long, is filtered by any combination of levels and types, and is ordered by level first. No
single index serves its pages, so a page is found in two steps: ``FindingCount`` has the number of findings of each
sort, and ``Finding.place`` orders the findings of a sort (``docs/decisions/lists-of-findings.md``).
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, UniqueConstraint, false, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.areas.vulnerabilities.levels import Confidence, FindingSeverity
from project_service.areas.vulnerabilities.severity_order import FindingRank
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.removal import DECISIONS
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.kit import clock
from project_service.kit.db import text_search
from project_service.kit.db.base import Base, Key, Model, Timestamps, index_where_present, table_of
from project_service.kit.db.large_texts import LargeJson
from project_service.kit.db.text_search import TextIndex

DISMISSAL = "dismissal"
ISSUE = "issue"
MERGE_REQUEST = "merge_request"
IS_CLOSED: dict[str, Any] = {
    "sqlite_where": text("dismissed IS 1 OR state = 'resolved'"),
    "postgresql_where": text("dismissed IS true OR state = 'resolved'"),
}
FEEDBACK_TYPES = (DISMISSAL, ISSUE, MERGE_REQUEST)
DISMISSAL_REASONS = {
    "acceptable_risk": "Acceptable risk",
    "false_positive": "False positive",
    "mitigating_control": "Mitigating control",
    "used_in_tests": "Used in tests",
    "not_applicable": "Not applicable",
}


class Pipeline(Model):
    """A pipeline with at least one security report.

    ``attempt`` counts the pipelines of a commit; it is empty without a ``sha``.
    """

    __tablename__ = "security_pipelines"
    __table_args__ = (
        Index("ix_security_pipelines_project_id", "project_id", "id"),
        Index("ix_security_pipelines_ref", "project_id", "ref", "id"),
        Index("uq_security_pipelines_attempt", "project_id", "ref", "sha", "attempt", unique=True),
    )

    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    ref: Mapped[str]
    sha: Mapped[str | None]
    attempt: Mapped[int | None]


class SecurityReport(Model):
    """One report of a pipeline. ``turn`` orders the reports of a type by their scanner (``deduplication``).

    ``category`` distinguishes several runs of one scanner. ``repetition`` counts the reports of one type and
    ``scanner`` that were added to the pipeline by its id.
    """

    __tablename__ = "security_reports"
    __table_args__ = (
        Index("ix_security_reports_pipeline_id", "pipeline_id", "id"),
        Index("uq_security_reports_scanner", "pipeline_id", "report_type", "scanner", "repetition", unique=True),
    )

    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    pipeline_id: Mapped[int] = mapped_column(ForeignKey("security_pipelines.id", ondelete="CASCADE"))
    report_type: Mapped[str]
    version: Mapped[str | None]
    scan: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    turn: Mapped[int]
    format: Mapped[str]
    category: Mapped[str]
    scanner: Mapped[str]
    repetition: Mapped[int]


class Remediation(Base):
    """A remediation of a report as it was uploaded; it may be large and fix many findings, so it is stored once."""

    __tablename__ = "security_remediations"

    report_id: Mapped[int] = mapped_column(Key, ForeignKey("security_reports.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    data: Mapped[dict[str, Any]]


class Component(Base):
    """A component of a bill of materials, for the list of dependencies. ``direct`` is null if that is unknown."""

    __tablename__ = "security_components"
    __table_args__ = (Index("ix_security_components_name", "report_id", "name", "version", "position"),)

    report_id: Mapped[int] = mapped_column(Key, ForeignKey("security_reports.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    name: Mapped[str]
    version: Mapped[str]
    package_manager: Mapped[str]
    dependency_file_path: Mapped[str]
    purl: Mapped[str | None]
    type: Mapped[str]
    direct: Mapped[bool | None]
    licenses: Mapped[list[dict[str, Any]]] = mapped_column(JSON)


class Finding(Model):
    """A vulnerability that a report has found. One that is not ``kept`` is a duplicate of another in the pipeline.

    ``place`` orders the findings of a report type in a pipeline, ``position`` is the index in the report. ``dismissed``
    is updated in the transaction that changes the feedback of the project; ``suppressed`` is a dismissal by the report,
    which no feedback ends. ``package`` is the name and version of the package that the finding is about, with an ``@``.
    """

    __tablename__ = "findings"
    __table_args__ = (
        Index(
            "ix_findings_list",
            *("pipeline_id", "kept", "sort", "place", "dismissed"),
        ),
        Index("ix_findings_uuid", "project_id", "uuid"),
        Index("ix_findings_project_fingerprint", "project_id", "project_fingerprint"),
        Index("ix_findings_report_id", "report_id", "position"),
        index_where_present("ix_findings_package", "package", "report_id"),
        index_where_present("ix_findings_tracked_id", "tracked_id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    pipeline_id: Mapped[int] = mapped_column(ForeignKey("security_pipelines.id", ondelete="CASCADE"))
    pipeline: Mapped[Pipeline] = relationship()
    report_id: Mapped[int] = mapped_column(ForeignKey("security_reports.id", ondelete="CASCADE"))
    report: Mapped[SecurityReport] = relationship()
    sort: Mapped[int]
    tracked_id: Mapped[int | None] = mapped_column(ForeignKey("tracked_findings.id", ondelete="SET NULL"))
    place: Mapped[int]
    position: Mapped[int]
    kept: Mapped[bool]
    dismissed: Mapped[bool]
    suppressed: Mapped[bool] = mapped_column(default=False, server_default=false())
    uuid: Mapped[str | None]
    project_fingerprint: Mapped[str]
    compare_key: Mapped[str]
    remediation: Mapped[int | None]
    package: Mapped[str | None]
    data: Mapped[LargeJson]
    # not columns; set by queries for a response
    remediations: list[Any] | None
    feedback: dict[str, Any]
    first_seen_at: dt.datetime | None
    last_seen_at: dt.datetime | None

    @property
    def report_type(self) -> str:
        """The type of its report."""
        return FindingRank.of(self.sort).report_type

    @property
    def severity(self) -> FindingSeverity:
        """Its severity."""
        return FindingRank.of(self.sort).severity

    @property
    def confidence(self) -> Confidence:
        """The confidence of its scanner."""
        return FindingRank.of(self.sort).confidence


class TrackedFinding(Model):
    """A finding of a scanner and category across reports (``tracking``), however its lines move.

    ``key``, ``group_key``, ``marks`` and the rest are those of its newest place (``matching.Sighting``).
    """

    __tablename__ = "tracked_findings"
    __table_args__ = (
        Index("ix_tracked_findings_key", "project_id", "scanner", "category", "key"),
        Index("ix_tracked_findings_group_key", "project_id", "scanner", "category", "group_key"),
        Index("ix_tracked_findings_first_seen", "project_id", "first_seen_at", "id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    scanner: Mapped[str]
    category: Mapped[str]
    report_type: Mapped[str]
    key: Mapped[str]
    group_key: Mapped[str]
    marks: Mapped[list[str]]
    name: Mapped[str]
    start_line: Mapped[int | None]
    end_line: Mapped[int | None]
    version: Mapped[str | None]
    first_seen_at: Mapped[dt.datetime]
    first_seen_pipeline_id: Mapped[int]


TEXTS = text_search.add(TextIndex(table_of(TrackedFinding), ("name",)))


class TrackedFindingState(Base):
    """The state of a tracked finding on a branch. ``finding`` is the newest finding of a report of the branch.

    Pipelines are removed with their project only, so their ids are no foreign keys here. ``severity_order`` is 0 for
    the worst severity. ``dismissed`` is that of the finding, written in the transaction that changes either. Each
    combination of states that a list may have is in order in one of the indexes.
    """

    __tablename__ = "tracked_finding_states"
    __table_args__ = (
        Index("ix_tracked_finding_states_list", "project_id", "ref", "state", "severity_order", "tracked_id"),
        Index(
            "ix_tracked_finding_states_dismissed",
            *("project_id", "ref", "state", "dismissed", "severity_order", "tracked_id"),
        ),
        Index("ix_tracked_finding_states_all", "project_id", "ref", "severity_order", "tracked_id"),
        Index("ix_tracked_finding_states_closed", "project_id", "ref", "severity_order", "tracked_id", **IS_CLOSED),
    )

    tracked_id: Mapped[int] = mapped_column(
        Key, ForeignKey("tracked_findings.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    tracked: Mapped[TrackedFinding] = relationship()
    ref: Mapped[str] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    state: Mapped[str]
    dismissed: Mapped[bool] = mapped_column(default=False, server_default=false())
    finding_id: Mapped[int] = mapped_column(ForeignKey("findings.id", ondelete="CASCADE"), index=True)
    finding: Mapped[Finding] = relationship()
    severity_order: Mapped[int]
    first_seen_pipeline_id: Mapped[int]
    last_seen_at: Mapped[dt.datetime]
    last_seen_pipeline_id: Mapped[int]
    resolved_at: Mapped[dt.datetime | None]
    resolved_pipeline_id: Mapped[int | None]
    reappeared_at: Mapped[dt.datetime | None]
    reappeared_pipeline_id: Mapped[int | None]
    reappearances: Mapped[int]


class OpenFindingDay(Base):
    """How many findings of a severity were open on a branch at the end of a day on which that has changed."""

    __tablename__ = "open_finding_days"

    project_id: Mapped[int] = mapped_column(Key, ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True)
    ref: Mapped[str] = mapped_column(primary_key=True)
    day: Mapped[dt.date] = mapped_column(primary_key=True)
    severity_order: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    open: Mapped[int]


class FindingCount(Base):
    """The number of findings of one sort in a pipeline, and how many of them are dismissed."""

    __tablename__ = "finding_tallies"

    pipeline_id: Mapped[int] = mapped_column(
        Key, ForeignKey("security_pipelines.id", ondelete="CASCADE"), primary_key=True
    )
    sort: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    found: Mapped[int]
    dismissed: Mapped[int]


class Feedback(Timestamps, Model):
    """A decision about a finding, in every pipeline that has it: a dismissal, an issue or a merge request.

    ``meant`` identifies the finding besides its uuid: the project fingerprint, if only one finding had it when the
    feedback was created, else the uuid itself. It is unique for a type. ``dismissals`` defines the findings a feedback
    matches.
    """

    __tablename__ = "vulnerability_feedback"
    __table_args__ = (
        UniqueConstraint("project_id", "category", "feedback_type", "meant", name="uq_vulnerability_feedback_meant"),
        Index("ix_vulnerability_feedback_meant", "project_id", "feedback_type", "meant"),
        Index("ix_vulnerability_feedback_finding_uuid", "project_id", "feedback_type", "finding_uuid"),
        {"info": {DECISIONS: True}},
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    author_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"), index=True)
    author: Mapped[User | None] = relationship(foreign_keys=[author_id])
    feedback_type: Mapped[str]
    category: Mapped[str]
    project_fingerprint: Mapped[str]
    finding_uuid: Mapped[str | None]
    meant: Mapped[str]
    pipeline_id: Mapped[int | None] = mapped_column(
        ForeignKey("security_pipelines.id", ondelete="SET NULL"), index=True
    )
    pipeline: Mapped[Pipeline | None] = relationship()
    issue_id: Mapped[int | None] = mapped_column(ForeignKey("issues.id", ondelete="CASCADE"), index=True)
    issue: Mapped[Issue | None] = relationship()
    merge_request_id: Mapped[int | None] = mapped_column(
        ForeignKey("merge_requests.id", ondelete="CASCADE"), index=True
    )
    merge_request: Mapped[MergeRequest | None] = relationship()
    comment: Mapped[str | None]
    comment_author_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"), index=True)
    comment_author: Mapped[User | None] = relationship(foreign_keys=[comment_author_id])
    commented_at: Mapped[dt.datetime | None]
    dismissal_reason: Mapped[str | None]
    vulnerability_data: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
