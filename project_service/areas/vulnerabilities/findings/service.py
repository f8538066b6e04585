"""Feedback on findings: dismissals, issues, links to merge requests (findings reference, section 14)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypedDict, Unpack, cast

from sqlalchemy import select

from project_service.areas.vulnerabilities import hooks
from project_service.areas.vulnerabilities.findings import queries
from project_service.areas.vulnerabilities.findings.dismissals import apply_dismissal, lock_feedback, withdraw_dismissal
from project_service.areas.vulnerabilities.fingerprints import EMPTY
from project_service.areas.vulnerabilities.formats.documents.report_json import storable
from project_service.areas.vulnerabilities.locations import lines_of
from project_service.areas.vulnerabilities.models import (
    DISMISSAL,
    DISMISSAL_REASONS,
    FEEDBACK_TYPES,
    ISSUE,
    MERGE_REQUEST,
    Feedback,
    Finding,
    Pipeline,
)
from project_service.areas.vulnerabilities.report_types import REPORT_TYPES
from project_service.areas.vulnerabilities.tracking import trend
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.issue_rules import LONGEST_TEXT, LONGEST_TITLE
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.kit import clock
from project_service.kit.db.locking import delete_locked
from project_service.kit.db.session import db
from project_service.kit.http.errors import Unprocessable

MAX_COMMENT_LENGTH = 50_000
FINGERPRINT = re.compile(r"[0-9a-f]{40}")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NO_KEY = "The finding has neither a key nor identifiers: it could not be recognised again"
WRONG_FINGERPRINT = "Project fingerprint is not that of the finding with this uuid"
ISSUE_TITLE = "Investigate vulnerability: {}"


class DismissalFields(TypedDict, total=False):
    """Why a finding is dismissed."""

    dismissal_reason: str | None
    comment: str | None


class FeedbackSubject(TypedDict, total=False):
    """What feedback is about; the finding is named by its fingerprint, and by its UUID if it has one."""

    feedback_type: str | None
    category: str | None
    project_fingerprint: str | None
    finding_uuid: str | None
    pipeline_id: int | None


class FeedbackFields(FeedbackSubject, DismissalFields, total=False):
    """What may be given of feedback."""

    merge_request_iid: int | None
    vulnerability_data: dict[str, Any] | None


def write_feedback(
    author: User, project: Project, *, records_trend: bool = True, **given: Unpack[FeedbackFields]
) -> tuple[Feedback, bool]:
    """Create feedback on a finding, or overwrite that of the same type; return it and whether it is new.

    Without ``records_trend`` the caller records the open findings by day.

    Raises:
        Unprocessable: fields are invalid, or contradict the finding.

    """
    fields = _checked(given)
    lock_feedback(project)
    pipeline = _pipeline(project, fields.pop("pipeline_id", None))
    about = pipeline or queries.requested_pipeline(project)
    uuid, project_fingerprint = fields["finding_uuid"], fields["project_fingerprint"]
    if queries.contradict(about, uuid, project_fingerprint):
        raise Unprocessable([WRONG_FINGERPRINT])
    by_uuid = uuid is not None and queries.share_fingerprint(about, project_fingerprint)
    fields["meant"] = uuid if by_uuid else project_fingerprint
    named = queries.finding_of_feedback(about, uuid, project_fingerprint)
    feedback = queries.feedback_about(project, named, **fields)
    is_new = feedback is None
    if feedback is None:
        feedback = Feedback(project_id=project.id, project=project)
    elif feedback.feedback_type == DISMISSAL:
        withdraw_dismissal(feedback)
    _write(feedback, author, pipeline, fields)
    if feedback.feedback_type == ISSUE and feedback.issue_id is None:
        feedback.issue = _create_issue(author, project, named, fields.get("vulnerability_data") or {})
    if is_new:
        db.session.add(feedback)
    db.session.flush()
    if feedback.feedback_type == DISMISSAL:
        apply_dismissal(feedback)
        if records_trend:
            _record_trend(project, about)
    if feedback.feedback_type in (DISMISSAL, ISSUE):
        hooks.announce_feedback(project, named)
    return feedback, is_new


def dismiss(
    author: User, project: Project, finding: Finding, *, records_trend: bool = True, **why: Unpack[DismissalFields]
) -> Feedback:
    """Dismiss one finding of a pipeline."""
    about = _about(finding, DISMISSAL)
    return write_feedback(author, project, records_trend=records_trend, **about, **why)[0]


def create_issue(author: User, project: Project, finding: Finding) -> Issue:
    """Create an issue for a finding, or return the existing one."""
    feedback, _ = write_feedback(author, project, **_about(finding, ISSUE))
    return cast(Issue, feedback.issue)  # feedback of this type has one


def undo_dismissal(project: Project, feedback: Feedback) -> None:
    """Delete a dismissal."""
    lock_feedback(project)
    named = hooks.finding_of(feedback)
    withdraw_dismissal(feedback)
    delete_locked(feedback)
    hooks.announce_feedback(project, named)
    _record_trend(project, feedback.pipeline)


def is_recognised(finding: Finding) -> bool:
    """Whether a finding can be recognised again, so that feedback on it has a meaning."""
    return finding.uuid is not None or finding.project_fingerprint != EMPTY


def _record_trend(project: Project, pipeline: Pipeline | None) -> None:
    """Record the open findings of the branches that a dismissal has most likely changed."""
    branches = {queries.default_branch(project)} | ({pipeline.ref} if pipeline is not None else set())
    trend.record(project.id, sorted(branches))


def _about(finding: Finding, feedback_type: str) -> FeedbackSubject:
    return {
        "feedback_type": feedback_type,
        "category": finding.report_type,
        "project_fingerprint": finding.project_fingerprint,
        "finding_uuid": finding.uuid,
        "pipeline_id": finding.pipeline_id,
    }


def _checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    problems = []
    feedback_type, category = fields.get("feedback_type"), fields.get("category")
    reason = fields.get("dismissal_reason")
    if feedback_type not in FEEDBACK_TYPES:
        problems.append(f"'{feedback_type or ''}' is not a valid feedback_type")
    if category not in REPORT_TYPES:
        problems.append(f"'{category or ''}' is not a valid category")
    if reason and reason not in DISMISSAL_REASONS:
        problems.append(f"'{reason}' is not a valid dismissal_reason")
    project_fingerprint = (fields.get("project_fingerprint") or "").lower()
    uuid = (fields.get("finding_uuid") or "").lower() or None
    if not FINGERPRINT.fullmatch(project_fingerprint):
        problems.append(
            "Project fingerprint is invalid" if project_fingerprint else "Project fingerprint can't be blank"
        )
    if uuid is not None and not UUID.fullmatch(uuid):
        problems.append("Finding uuid is invalid")
    if len(fields.get("comment") or "") > MAX_COMMENT_LENGTH:
        problems.append(f"Comment is too long (maximum is {MAX_COMMENT_LENGTH} characters)")
    if not problems and uuid is None and project_fingerprint == EMPTY:
        problems.append(NO_KEY)
    if problems:
        raise Unprocessable(problems)
    data = storable(fields.get("vulnerability_data"))
    return {**fields, "project_fingerprint": project_fingerprint, "finding_uuid": uuid, "vulnerability_data": data}


def _pipeline(project: Project, pipeline_id: int | None) -> Pipeline | None:
    if pipeline_id is None:
        return None
    pipeline = queries.requested_pipeline(project, str(pipeline_id))
    if pipeline is None:
        raise Unprocessable(["Pipeline must belong to the project"])
    return db.session.get_one(Pipeline, pipeline.id)


def _write(feedback: Feedback, author: User, pipeline: Pipeline | None, fields: dict[str, Any]) -> None:
    for name in ("feedback_type", "category", "project_fingerprint", "meant"):
        setattr(feedback, name, fields[name])
    feedback.author = author
    for name in ("finding_uuid", "vulnerability_data", "dismissal_reason"):
        if fields.get(name):
            setattr(feedback, name, fields[name])
    if pipeline is not None:
        feedback.pipeline = pipeline
    if (fields.get("comment") or "").strip():
        feedback.comment, feedback.comment_author, feedback.commented_at = fields["comment"], author, clock.now()
    if feedback.feedback_type == MERGE_REQUEST:
        feedback.merge_request = _merge_request(feedback.project, fields.get("merge_request_iid"))


def _merge_request(project: Project, iid: int | None) -> MergeRequest:
    statement = select(MergeRequest).where(MergeRequest.project_id == project.id, MergeRequest.iid == iid)
    merge_request = db.session.scalar(statement) if iid is not None else None
    if merge_request is None:
        raise Unprocessable(["Merge request can't be blank"])
    return merge_request


def _create_issue(author: User, project: Project, finding: Finding | None, sent: dict[str, Any]) -> Issue:
    data: dict[str, Any] = sent if finding is None else _issue_data(finding)
    title = ISSUE_TITLE.format(data.get("name") or data.get("title") or "")
    return issue_rules.create_issue(
        author, project, title=title[:LONGEST_TITLE], description=_description(data)[:LONGEST_TEXT], confidential=True
    )


def _issue_data(finding: Finding) -> dict[str, Any]:
    levels = {"severity": finding.severity.text, "confidence": finding.confidence.text}
    return {**finding.data, **levels}


def _description(data: dict[str, Any]) -> str:
    """Return the description of the issue in Markdown."""
    blocks = [f"### Description:\n\n{data['description']}"] if data.get("description") else []
    location = data.get("location")
    lines = lines_of(location) if isinstance(location, dict) else ""
    facts = [("Severity", data.get("severity")), ("Confidence", data.get("confidence")), ("Location", lines)]
    if written := "\n".join(f"* {name}: {value}" for name, value in facts if value):
        blocks.append(written)
    if data.get("solution"):
        blocks.append(f"### Solution:\n\n{data['solution']}")
    for title, name in (("Identifiers", "identifiers"), ("Links", "links")):
        listed = data.get(name)
        items = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
        if items:
            blocks.append(f"### {title}:\n\n" + "\n".join(f"* {_linked(item)}" for item in items))
    return "\n\n".join(blocks)


def _linked(item: dict[str, Any]) -> str:
    name, url = item.get("name") or item.get("url") or "", item.get("url")
    return f"[{name}]({url})" if url else str(name)
