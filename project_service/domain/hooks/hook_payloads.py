"""Parts of the payloads of web hooks that several events share (webhooks reference, sections 13.1, 13.3 to 13.5)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from typing import Any

from sqlalchemy import select

from project_service.domain import page_paths
from project_service.domain.accounts.user_pictures import picture_address
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.schemas import project_url
from project_service.domain.tracker.issues import CLOSED, INCIDENT, Issue, IssueLabel
from project_service.domain.tracker.labels import Label
from project_service.domain.tracker.milestones import Milestone
from project_service.kit.db.session import db
from project_service.kit.http import urls

REDACTED = "[REDACTED]"
UPLOADS = "/uploads/"
CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*`)", re.DOTALL)
RELATIVE_IMAGE = re.compile(r"!\[([^\]\n]*)\]\((?!https?://|//)([^)\s]+)\)")
STATE_IDS = {"opened": 1, "closed": 2}
COMPARED = (
    "title",
    "description",
    "confidential",
    "discussion_locked",
    "due_date",
    "milestone_id",
    "weight",
    "type",
    "severity",
    "state_id",
    "closed_at",
    "updated_at",
    "updated_by_id",
    "assignee_id",
)


def moment(value: dt.datetime | None) -> str | None:
    """Return a time as issues, notes, milestones and labels have it: ``2026-03-04 05:06:07 UTC``."""
    return None if value is None else value.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso_seconds(value: dt.datetime | None) -> str | None:
    """Return a time as members, projects and groups have it: ISO, in seconds."""
    return None if value is None else value.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def project_of(project: Project) -> dict[str, Any]:
    """Return the part ``project``."""
    url = project_url(project)
    ssh_url = f"git@{urls.host()}:{project.full_path}.git"
    return {
        "id": project.id,
        "name": project.name,
        "description": project.description,
        "web_url": url,
        "avatar_url": urls.absolute_or_none(project.avatar_url),
        "git_ssh_url": ssh_url,
        "git_http_url": f"{url}.git",
        "namespace": project.namespace.name,
        "visibility_level": int(project.visibility),
        "path_with_namespace": project.full_path,
        "default_branch": project.default_branch,
        "ci_config_path": project.attributes.get("ci_config_path") or None,
        "homepage": url,
        "url": ssh_url,
        "ssh_url": ssh_url,
        "http_url": f"{url}.git",
    }


def repository_of(project: Project, *, for_push: bool = False) -> dict[str, Any]:
    """Return the part ``repository``, which older clients read."""
    url = project_url(project)
    ssh_url = f"git@{urls.host()}:{project.full_path}.git"
    common = {"name": project.name, "url": ssh_url, "description": project.description, "homepage": url}
    if not for_push:
        return common
    return common | {
        "git_http_url": f"{url}.git",
        "git_ssh_url": ssh_url,
        "visibility_level": int(project.visibility),
    }


def user_of(user: User) -> dict[str, Any]:
    """Return the part ``user``, and an element of ``assignees``."""
    return {
        "id": user.id,
        "name": user.name,
        "username": user.username,
        "avatar_url": picture_address(user),
        "email": email_of(user),
    }


def email_of(user: User) -> str:
    """Return the public e-mail address of a user, or ``[REDACTED]`` without one."""
    return user.public_email or REDACTED


def with_absolute_images(project: Project, text: str | None) -> str | None:
    """Return Markdown whose relative image links are absolute; those of uploads are relative to the project."""
    if text is None or "![" not in text:
        return text

    def absolute(match: re.Match[str]) -> str:
        alternative, path = match.groups()
        start = project_url(project) if path.startswith(UPLOADS) else urls.absolute("")
        return f"![{alternative}]({start}/{path.lstrip('/')})"

    parts = CODE.split(text)  # code stands at odd places and stays as it is
    parts[::2] = [RELATIVE_IMAGE.sub(absolute, part) for part in parts[::2]]
    return "".join(parts)


def labels_of(project: Project, titles: Iterable[str]) -> list[dict[str, Any]]:
    """Return labels by their titles; the issue of a project may have labels that no row describes."""
    titles = list(titles)
    if not titles:
        return []
    rows = db.session.scalars(select(Label).where(Label.project_id == project.id, Label.title.in_(titles)))
    by_title = {label.title: label for label in rows}
    return [_label(project, title, by_title.get(title)) for title in titles]


def stored_labels_of(issue: Issue) -> list[dict[str, Any]]:
    """Return the labels of an issue whose labels were not loaded, in one statement."""
    is_described = (Label.project_id == issue.project_id) & (Label.title == IssueLabel.title)
    rows = select(IssueLabel.title, Label).outerjoin(Label, is_described)
    rows = rows.where(IssueLabel.issue_id == issue.id).order_by(IssueLabel.title)
    return [_label(issue.project, title, label) for title, label in db.session.execute(rows)]


def _label(project: Project, title: str, label: Label | None) -> dict[str, Any]:
    return {
        "id": None if label is None else label.id,
        "title": title,
        "color": None if label is None else label.color,
        "project_id": project.id,
        "created_at": None if label is None else moment(label.created_at),
        "updated_at": None if label is None else moment(label.updated_at),
        "template": False,
        "description": None if label is None else label.description,
        "type": "ProjectLabel",
        "group_id": None,
    }


def issue_url(issue: Issue) -> str:
    """Return the page of an issue or incident."""
    return f"{project_url(issue.project)}{page_paths.issue(issue.iid)}"


def issue_attributes(issue: Issue) -> dict[str, Any]:
    """Return the attributes of an issue, without its labels."""
    ids = [user.id for user in issue.assignees]
    attributes: dict[str, Any] = {
        "assignee_id": ids[0] if ids else None,
        "author_id": issue.author_id,
        "closed_at": moment(issue.closed_at),
        "confidential": issue.confidential,
        "created_at": moment(issue.created_at),
        "description": with_absolute_images(issue.project, issue.description),
        "discussion_locked": issue.discussion_locked,
        "due_date": issue.due_date.isoformat() if issue.due_date else None,
        "id": issue.id,
        "iid": issue.iid,
        "last_edited_at": None,
        "last_edited_by_id": None,
        "milestone_id": issue.milestone_id,
        "moved_to_id": None,
        "duplicated_to_id": None,
        "project_id": issue.project_id,
        "relative_position": None,
        "state_id": STATE_IDS.get(issue.state, 1),
        "time_estimate": 0,
        "title": issue.title,
        "updated_at": moment(issue.updated_at),
        "updated_by_id": issue.updated_by_id,
        "weight": issue.weight,
        "health_status": None,
        "type": issue.issue_type.capitalize(),
        "url": issue_url(issue),
        "total_time_spent": 0,
        "time_change": 0,
        "human_total_time_spent": None,
        "human_time_change": None,
        "human_time_estimate": None,
        "assignee_ids": ids,
        "state": CLOSED if issue.state == CLOSED else "opened",
        "severity": issue.severity,
        "customer_relations_contacts": [],
    }
    if issue.issue_type == INCIDENT:
        attributes["escalation_status"] = "resolved" if issue.state == CLOSED else "triggered"
    return attributes


class IssueSnapshot:
    """An issue before a change: what ``changes`` compares with."""

    def __init__(self, issue: Issue) -> None:
        self.attributes = issue_attributes(issue)
        self.labels = list(issue.labels)
        self.assignees = list(issue.assignees)

    def changes_to(self, issue: Issue) -> dict[str, Any]:
        """Return the changed attributes with their values before and now; empty if nothing but times changed."""
        now = issue_attributes(issue)
        changes: dict[str, Any] = {
            name: {"previous": self.attributes[name], "current": now[name]}
            for name in COMPARED
            if self.attributes[name] != now[name]
        }
        if sorted(self.labels) != sorted(issue.labels):
            changes["labels"] = {
                "previous": labels_of(issue.project, self.labels),
                "current": labels_of(issue.project, issue.labels),
            }
        if self.assignees != list(issue.assignees):
            changes["assignees"] = {
                "previous": list(map(user_of, self.assignees)),
                "current": list(map(user_of, issue.assignees)),
            }
        if not set(changes) - {"updated_at", "updated_by_id"}:
            return {}
        # also if both are in the same second: GitLab compares them exactly
        changes["updated_at"] = {"previous": self.attributes["updated_at"], "current": now["updated_at"]}
        return changes


def issue_payload(
    issue: Issue, author: User, action: str, changes: dict[str, Any], labels: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the payload of an event of an issue with these labels."""
    payload = {
        "object_kind": "issue",
        "event_type": "confidential_issue" if issue.confidential else "issue",
        "user": user_of(author),
        "project": project_of(issue.project),
        "object_attributes": issue_attributes(issue) | {"labels": labels, "action": action},
        "labels": labels,
        "changes": changes,
        "repository": repository_of(issue.project),
    }
    if issue.assignees:
        payload["assignees"] = list(map(user_of, issue.assignees))
    return payload


def milestone_attributes(milestone: Milestone) -> dict[str, Any]:
    """Return the attributes of a milestone."""
    return {
        "id": milestone.id,
        "iid": milestone.iid,
        "title": milestone.title,
        "description": milestone.description,
        "state": milestone.state,
        "created_at": moment(milestone.created_at),
        "updated_at": moment(milestone.updated_at),
        "due_date": milestone.due_date.isoformat() if milestone.due_date else None,
        "start_date": milestone.start_date.isoformat() if milestone.start_date else None,
        "project_id": milestone.project_id,
        "group_id": None,
    }


def milestone_event(project: Project, attributes: dict[str, Any], action: str) -> dict[str, Any]:
    """Return the payload of an event of a milestone with these attributes."""
    return {
        "object_kind": "milestone",
        "event_type": "milestone",
        "project": project_of(project),
        "group": None,
        "object_attributes": attributes,
        "action": action,
    }


def milestone_payload(milestone: Milestone, project: Project, action: str) -> dict[str, Any]:
    """Return the payload of an event of a milestone of a project."""
    return milestone_event(project, milestone_attributes(milestone), action)
