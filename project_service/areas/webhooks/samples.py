"""Payloads for tests of hooks (webhooks reference, section 7).

Areas whose tables this one does not know register the makers of theirs in ``domain.hook_events``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import select

from project_service.areas.webhooks.queries import Owner
from project_service.domain.hooks import hook_events, hook_payloads, note_payloads
from project_service.domain.namespaces import Group, NamespaceAncestor
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue, issues_of
from project_service.domain.tracker.milestones import ACTIVE, Milestone, milestones_of
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.session import db

UNAVAILABLE = "Testing not available for this hook"
MISSING = {
    "issues_events": "Ensure the project has issues.",
    "confidential_issues_events": "Ensure the project has issues.",
    "note_events": "Ensure the project has notes.",
    "merge_requests_events": "Ensure the project has merge requests.",
    "error_events": "Ensure the project has errors.",
    "releases_events": "Ensure the project has releases.",
    "vulnerability_events": "Ensure the project has vulnerabilities.",
}
OF_SYSTEM = {
    "event_name": "project_create",
    "name": "Ruby",
    "path": "ruby",
    "project_id": 1,
    "owner_name": "Someone",
    "owner_email": "example@gitlabhq.com",
}


def payload_for(owner: Owner, flag: str) -> dict[str, Any] | None:
    """Return a payload of an event, ``None`` if there is nothing to make it of."""
    if owner is None:
        return dict(OF_SYSTEM)
    project = _newest_project(owner) if isinstance(owner, Group) else owner
    make = MAKERS.get(flag) or hook_events.SAMPLES.get(flag)
    return None if project is None or make is None else make(project)


def can_be_tested(flag: str) -> bool:
    """Whether there is a payload of an event at all."""
    return flag in MAKERS or flag in hook_events.SAMPLES


def _newest_project(group: Group) -> Project | None:
    """Return the newest project below a group."""
    newest = select(Project).join(NamespaceAncestor, NamespaceAncestor.namespace_id == Project.namespace_id)
    newest = newest.where(NamespaceAncestor.ancestor_id == group.id, Project.deleting_since.is_(None))
    return db.session.scalar(newest.order_by(Project.id.desc()).limit(1))


def _issue(project: Project) -> dict[str, Any] | None:
    issue = db.session.scalar(issues_of(project).where(~Issue.confidential).order_by(Issue.id.desc()).limit(1))
    if issue is None or issue.author is None:
        return None
    return hook_payloads.issue_payload(issue, issue.author, "open", {}, hook_payloads.labels_of(project, issue.labels))


def _note(project: Project) -> dict[str, Any] | None:
    on_issues = (
        select(Note)
        .join(Issue, (Issue.id == Note.noteable_id) & ~Issue.confidential)
        .where(Note.project_id == project.id, Note.noteable_type == "Issue", ~Note.system, ~Note.confidential)
    )
    note = db.session.scalar(on_issues.order_by(Note.id.desc()).limit(1))
    return None if note is None else note_payloads.note_payload(note, "create")


def _milestone(project: Project) -> dict[str, Any]:
    milestone = db.session.scalar(milestones_of(project).order_by(Milestone.id).limit(1))
    if milestone is None:
        now = clock.now()
        milestone = Milestone(id=1, iid=1, title="v1.0", state=ACTIVE, project_id=project.id)
        milestone.created_at = milestone.updated_at = now
        payload = hook_payloads.milestone_attributes(milestone)
        return hook_payloads.milestone_event(project, payload, "create")
    return hook_payloads.milestone_payload(milestone, project, "create")


MAKERS: dict[str, Callable[[Project], dict[str, Any] | None]] = {
    "issues_events": _issue,
    "confidential_issues_events": _issue,
    "note_events": _note,
    "milestone_events": _milestone,
}
