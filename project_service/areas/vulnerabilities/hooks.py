"""Payloads of findings for web hooks (webhooks reference, section 13.6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import joinedload

from project_service.areas.vulnerabilities.models import DISMISSAL, ISSUE, Feedback, Finding, Pipeline
from project_service.domain import page_paths
from project_service.domain.hooks import hook_events
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.http import urls

FLAG = "vulnerability_events"
BATCH = 200


def announce_new(project: Project, finding_ids: Iterable[int]) -> None:
    """Announce findings that no earlier pipeline of the default branch had; they are loaded only if a hook listens."""
    listeners = hook_events.listeners(project.id, FLAG)
    ids = sorted(finding_ids) if listeners else []
    for start in range(0, len(ids), BATCH):
        findings = _loaded(ids[start : start + BATCH])
        hook_events.announce_all(
            FLAG, project, [partial(_payload, project, finding, []) for finding in findings], listeners
        )
        for finding in findings:
            db.session.expunge(finding)


def announce_feedback(project: Project, finding: Finding | None) -> None:
    """Announce that a finding was dismissed, is not dismissed any more, or has an issue."""
    if finding is None:
        return

    def payload() -> dict[str, Any]:
        db.session.flush()
        return _payload(project, finding, _feedback_on(finding))

    hook_events.announce(FLAG, project, payload)


def finding_of(feedback: Feedback) -> Finding | None:
    """Return the newest finding that feedback is about; ``None`` without one, or if no hook listens."""
    if not hook_events.listeners(feedback.project_id, FLAG):
        return None
    uuid = feedback.finding_uuid
    same = Finding.uuid == uuid if uuid else Finding.project_fingerprint == feedback.project_fingerprint
    newest = select(Finding.id).where(Finding.project_id == feedback.project_id, same).order_by(Finding.id.desc())
    return next(iter(_loaded(list(db.session.scalars(newest.limit(1))))), None)


def _loaded(ids: Sequence[int]) -> Sequence[Finding]:
    with_project = joinedload(Finding.pipeline).joinedload(Pipeline.project)
    return db.session.scalars(
        select(Finding).where(Finding.id.in_(ids)).options(with_project).order_by(Finding.id)
    ).all()


def _feedback_on(finding: Finding) -> Sequence[Feedback]:
    about = or_(Feedback.finding_uuid == finding.uuid, Feedback.meant == finding.project_fingerprint)
    wanted = select(Feedback).where(Feedback.project_id == finding.project_id, about)
    return db.session.scalars(wanted.order_by(Feedback.id)).all()


def _payload(project: Project, finding: Finding, feedback: Sequence[Feedback]) -> dict[str, Any]:
    dismissal = next((row for row in feedback if row.feedback_type == DISMISSAL), None)
    found_at = clock.isoformat(finding.pipeline.created_at)
    changed_at = max((row.updated_at for row in feedback), default=finding.pipeline.created_at)
    attributes = {
        "url": urls.absolute(f"/{project.full_path}{page_paths.finding(finding.id)}"),
        "title": finding.data["name"],
        "state": "detected" if dismissal is None else "dismissed",
        "project_id": project.id,
        "location": finding.data["location"],
        "cvss": [],
        "severity": finding.severity.text,
        "severity_overridden": False,
        "identifiers": [_identifier(identifier) for identifier in finding.data["identifiers"] or []],
        "issues": [
            _issue(project, row.issue) for row in feedback if row.feedback_type == ISSUE and row.issue is not None
        ],
        "report_type": finding.report_type,
        "confidence": finding.confidence.text,
        "confidence_overridden": False,
        "confirmed_at": None,
        "confirmed_by_id": None,
        "dismissed_at": None if dismissal is None else clock.isoformat(dismissal.updated_at),
        "dismissed_by_id": None if dismissal is None else dismissal.author_id,
        "resolved_at": None,
        "resolved_by_id": None,
        "auto_resolved": False,
        "resolved_on_default_branch": False,
        "created_at": found_at,
        "updated_at": clock.isoformat(changed_at),
        "uuid": finding.uuid,
    }
    return {"object_kind": "vulnerability", "object_attributes": attributes}


def _identifier(identifier: dict[str, Any]) -> dict[str, Any]:
    return {name: identifier.get(name) for name in ("name", "external_id", "external_type", "url")}


def _issue(project: Project, issue: Issue) -> dict[str, Any]:
    return {
        "title": issue.title,
        "url": urls.absolute(f"/{project.full_path}{page_paths.issue(issue.iid)}"),
        "created_at": clock.isoformat(issue.created_at),
        "updated_at": clock.isoformat(issue.updated_at),
    }


def _sample(project: Project) -> dict[str, Any] | None:
    newest = select(Finding.id).where(Finding.project_id == project.id).order_by(Finding.id.desc()).limit(1)
    finding = next(iter(_loaded(list(db.session.scalars(newest)))), None)
    return None if finding is None else _payload(project, finding, _feedback_on(finding))


hook_events.add_sample(FLAG, _sample)
