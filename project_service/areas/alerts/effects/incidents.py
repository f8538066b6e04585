"""Incidents created from alerts: issues of type incident (alert management reference, section 7)."""

from __future__ import annotations

from typing import Any

from project_service.areas.alerts import queries
from project_service.areas.alerts.effects import hooks, notifying
from project_service.areas.alerts.effects.hooks import address_of
from project_service.areas.alerts.models import TARGET, Alert, Severity, Status
from project_service.areas.alerts.payloads.elements import PROMETHEUS_TOOL, query_of
from project_service.areas.alerts.payloads.payload_values import storable
from project_service.areas.alerts.receivers.reports import DEFAULT_TITLE
from project_service.domain.accounts.resource_bots import is_bot
from project_service.domain.accounts.users import User
from project_service.domain.events import recording
from project_service.domain.events.models import Action
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.issues import CLOSED, INCIDENT, SEVERITIES, UNKNOWN, Issue
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db
from project_service.kit.http.errors import Invalid

SAME_TITLE = "New: Incident {iid}"


def create_incident(author: User, alert: Alert) -> Issue:
    """Open an incident for an alert; an alert has at most one."""
    # locked, so that of two concurrent requests only one creates an incident
    lock_row(alert, "issue_id")
    if alert.issue_id is not None:
        raise Invalid(base="An issue already exists")
    severity = Severity(alert.severity).name.lower()
    issue = issue_rules.create_issue(
        author,
        alert.project,
        alert_id=alert.id,
        title=alert.title,
        description=description_of(alert),
        issue_type=INCIDENT,
        severity=severity if severity in SEVERITIES else UNKNOWN,
        labels=["incident"],
    )
    if alert.title == DEFAULT_TITLE:
        issue.title = SAME_TITLE.format(iid=issue.iid)
    alert.issue_id = issue.id
    alert.issue = issue
    hooks.announce(alert, None if is_bot(author.id) else author, hooks.UPDATE, _issue_change(issue))
    note(author, alert, f"created issue #{issue.iid} for this alert")
    return issue


def _issue_change(issue: Issue) -> dict[str, Any]:
    return {"issue_iid": {"previous": None, "current": issue.iid}}


def close_incident(author: User, alert: Alert) -> None:
    """Close the incident of a resolved alert if it is still open."""
    if alert.issue_id is None:
        return
    issue = db.session.get(Issue, alert.issue_id)
    if issue is not None and issue.issue_type == INCIDENT and issue.state != CLOSED:
        issue_rules.close_issue(author, issue)


def on_issue_closed(issue: Issue, by: User) -> None:
    """Resolve the alerts of a closed incident, in the transaction that closes it."""
    for alert in db.session.query(Alert).filter(Alert.issue_id == issue.id, Alert.status != Status.RESOLVED):
        before = Status(alert.status)
        alert.status, alert.ended_at = Status.RESOLVED, clock.now()
        hooks.announce_status(alert, by, before)
        notifying.record_status(alert, by, before)
        note(by, alert, f"changed the status to **{Status.RESOLVED.title}** by closing issue #{issue.iid}")


def comment(author: User, alert: Alert, body: str) -> Note:
    """Comment on an alert and record an event."""
    comment_note = note(author, alert, body, system=False)
    db.session.flush()
    recording.record(author, Action.COMMENTED, alert.project, comment_note)
    issue_rules.announce_note(comment_note, "create")
    return comment_note


def description_of(alert: Alert) -> str:
    """Return the description of the incident of an alert."""
    started = alert.started_at.strftime("%d %B %Y, %-I:%M%p (UTC)")
    query = query_of(alert.payload) if alert.monitoring_tool == PROMETHEUS_TOOL else None
    facts = [
        ("Start time", started),
        ("Severity", Severity(alert.severity).name.lower()),
        ("full_query", f"`{query}`" if query else None),
        ("Service", alert.service),
        ("Monitoring tool", alert.monitoring_tool),
        ("Hosts", " ".join(alert.hosts)),
        ("Description", alert.description),
        ("GitLab alert", address_of(alert)),
    ]
    blocks = ["  \n".join(f"**{name}:** {value}" for name, value in facts if value)]
    annotations = alert.payload.get("annotations")
    markdown = annotations.get("gitlab_incident_markdown") if isinstance(annotations, dict) else None
    if isinstance(markdown, str) and markdown.strip():
        blocks.append(markdown)
    template = queries.incident_setting_of(alert.project_id).issue_template
    if template and template.strip():
        blocks.append(template)
    # an alert must not be refused because the text of its incident is too long
    return storable("\n\n---\n\n".join(blocks))[: issue_rules.LONGEST_TEXT]


def note(author: User, alert: Alert, body: str, *, system: bool = True) -> Note:
    """Add a note to an alert, a system note by default."""
    alert_note = Note(
        project_id=alert.project_id,
        noteable_type=TARGET,
        noteable_id=alert.id,
        body=body,
        system=system,
        author_id=author.id,
        author=author,
        extra=None,
    )
    db.session.add(alert_note)
    return alert_note
