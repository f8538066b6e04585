"""Create and change issues and notes from validated request fields, with the permissions of the caller."""

from __future__ import annotations

import datetime as dt
from typing import Any, TypedDict, Unpack

from sqlalchemy import select

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.access.references import mentions
from project_service.access.rules import sees
from project_service.areas.issues.schemas import issue_url
from project_service.domain.accounts.users import User, users
from project_service.domain.projects import Project
from project_service.domain.tracker import issue_rules, issues
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.milestones import Milestone, usable_in
from project_service.domain.tracker.notes import Note, new_discussion_id
from project_service.kit.db.session import db
from project_service.kit.http.errors import Invalid, NotFound

MAX_ASSIGNEES = 200
# only for reporters and above; ignored from other callers (supporting resources reference, section 11)
REPORTER_FIELDS = ("assignees", "labels", "milestone_id", "due_date", "weight", "discussion_locked")


class RequestedIssueFields(TypedDict, total=False):
    """What requests and forms set, by the names of the API; the last three are for changes."""

    title: str | None
    description: str | None
    issue_type: str | None
    confidential: bool | None
    assignee_ids: list[int] | None
    assignee_id: int | None
    milestone_id: int | None
    labels: list[str] | None
    due_date: dt.date | None
    weight: int | None
    discussion_locked: bool | None
    add_labels: list[str] | None
    remove_labels: list[str] | None
    state_event: str | None


def create_issue(requester: Caller, project: Project, **fields: Unpack[RequestedIssueFields]) -> Issue:
    """Create an issue."""
    issue = issue_rules.create_issue(requester.load_user(), project, **_to_columns(requester, project, fields))
    _notify(requester, issue, issue.description)
    return issue


def update_issue(requester: Caller, issue: Issue, **fields: Unpack[RequestedIssueFields]) -> Issue:
    """Change an issue; ``add_labels`` and ``remove_labels`` apply to its labels or to ``labels``."""
    added, removed = fields.pop("add_labels", None), fields.pop("remove_labels", None)
    if added is not None or removed is not None:
        labels = fields.get("labels")
        labels = issue.labels if labels is None else labels
        lost = {label.strip() for label in removed or []}
        fields["labels"] = [label for label in [*labels, *(added or [])] if label.strip() not in lost]
    former = issue.description
    columns = _to_columns(requester, issue.project, fields, issue)
    changed = issue_rules.update_issue(requester.load_user(), issue, **columns)
    if changed.description != former:
        _notify(requester, changed, changed.description, former=former)
    return changed


def create_note(
    requester: Caller,
    issue: Issue,
    *,
    body: str | None,
    confidential: bool | None = False,
    internal: bool | None = None,
    discussion_id: str | None = None,
    created_at: dt.datetime | None = None,
) -> Note:
    """Comment on an issue; ``internal`` is another name of ``confidential``, which is for reporters and above."""
    is_internal = bool(internal or confidential) and allowed(requester, Ability.ADMIN_ISSUES, issue.project)
    note = issue_rules.create_note(
        requester.load_user(),
        issue,
        body=body,
        confidential=is_internal,
        discussion_id=discussion_id,
        created_at=created_at,
    )
    _notify(requester, issue, note.body, note=note)
    return note


def create_discussion(
    requester: Caller,
    issue: Issue,
    *,
    body: str | None,
    created_at: dt.datetime | None = None,
    confidential: bool | None = False,
    internal: bool | None = None,
) -> Note:
    """Comment on an issue with a note that begins a discussion; administrators and owners choose its time."""
    chosen = created_at if allowed(requester, Ability.OWN_PROJECT, issue.project) else None
    return create_note(
        requester,
        issue,
        body=body,
        confidential=confidential,
        internal=internal,
        discussion_id=new_discussion_id(),
        created_at=chosen,
    )


def reply(
    requester: Caller, issue: Issue, first: Note, *, body: str | None, created_at: dt.datetime | None = None
) -> Note:
    """Reply to a comment on an issue."""
    chosen = created_at if allowed(requester, Ability.OWN_PROJECT, issue.project) else None
    note = issue_rules.reply(requester.load_user(), issue, first, body=body, created_at=chosen)
    _notify(requester, issue, note.body, note=note)
    return note


def update_note(requester: Caller, note: Note, *, body: str | None) -> Note:
    """Change a comment on an issue; users whom only the new text mentions are notified."""
    former = note.body
    changed = issue_rules.update_note(requester.load_user(), note, body=body)
    if changed.body != former:
        issue = issues.find_issue(note.project, note.noteable_iid or 0)
        _notify(requester, issue, changed.body, former=former, note=changed)
    return changed


def _notify(
    requester: Caller, issue: Issue, text: str | None, *, former: str | None = None, note: Note | None = None
) -> None:
    """Notify the users whom a text mentions and who may see it."""

    def may_see(user: Caller) -> bool:
        if not allowed(user, Ability.READ_ISSUES, issue.project) or not allowed(user, Ability.READ_ISSUE, issue):
            return False
        return note is None or allowed(user, Ability.READ_NOTE, note)

    address = issue_url(issue) if note is None else f"{issue_url(issue)}?note={note.id}#note_{note.id}"
    mentions.notify(
        mentions.mentioned_users(text, may_see, former=former),
        requester.load_user(),
        issue.project,
        (issues.TARGET, issue.id),
        title=f"{issue.title} (#{issue.iid})",
        address=address,
        text=text or "",
        note=note,
    )


def _to_columns(
    requester: Caller, project: Project, requested: RequestedIssueFields, issue: Issue | None = None
) -> dict[str, Any]:
    """Return the columns to set; an issue that has more labels or assignees than allowed may keep as many."""
    fields: dict[str, Any] = {
        name: value
        for name, value in requested.items()
        if value is not None or name not in ("confidential", "issue_type")
    }
    ids = fields.pop("assignee_ids", None)
    assignee_id = fields.pop("assignee_id", None)
    if ids is None and assignee_id is not None:
        ids = [assignee_id]
    if ids is not None:
        fields["assignees"] = _assignees(project, ids, 0 if issue is None else len(issue.assignees))
    if "labels" in fields:
        fields["labels"] = sorted({label.strip() for label in fields["labels"] or [] if label.strip()})
        present = 0 if issue is None else len(issue.labels)
        if len(fields["labels"]) > max(issue_rules.MAX_LABELS, present):  # before a row is made of each
            raise Invalid(labels=f"are too many (maximum is {issue_rules.MAX_LABELS})")
    if "milestone_id" in fields:
        fields["milestone_id"] = _milestone_id(project, fields["milestone_id"])
    if "title" in fields:
        fields["title"] = (fields["title"] or "").strip()
    if not allowed(requester, Ability.ADMIN_ISSUES, project):
        fields = {name: value for name, value in fields.items() if name not in REPORTER_FIELDS}
    return fields


def _assignees(project: Project, ids: list[int], present: int) -> list[User]:
    nonzero_ids = {user_id for user_id in ids if user_id}
    if len(nonzero_ids) > max(MAX_ASSIGNEES, present):
        raise Invalid(assignees=f"total must be less than or equal to {MAX_ASSIGNEES}")
    existing = db.session.scalars(users().where(User.id.in_(nonzero_ids)).order_by(User.id))
    return [user for user in existing if sees(Caller.of(user), project)]


def _milestone_id(project: Project, milestone_id: int | None) -> int | None:
    if not milestone_id:
        return None
    if db.session.scalar(select(Milestone.id).where(usable_in(project), Milestone.id == milestone_id)):
        return milestone_id
    raise NotFound("Milestone")
