"""Queries of links between issues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from project_service.access.abilities import Ability, allowed, judge
from project_service.access.across_projects import issues_of_projects
from project_service.access.identity import Caller
from project_service.areas.issues.listing import IssueListing
from project_service.areas.issues.queries import IssueFilter
from project_service.domain.projects import Project, project_by
from project_service.domain.tracker.issue_links import MAX_LINKS, IssueLink, links_of
from project_service.domain.tracker.issues import Issue, find_issue
from project_service.kit.db.session import db
from project_service.kit.http.errors import RecordNotFound


@dataclass(frozen=True, slots=True)
class LinkedIssue:
    """An issue that another is linked to, with the link."""

    issue: Any
    link: IssueLink


def linked_issues(caller: Caller, issue: Issue) -> list[LinkedIssue]:
    """The issues that an issue is linked to and that the caller may see, the oldest link first."""
    links = {link.other(issue.id): link for link in links_of(issue)}
    if not links:
        return []
    present = Project.deleting_since.is_(None), Project.loading.is_(False)
    linked = select(Issue.id).join(Project).where(Issue.id.in_(links), *present, issues_of_projects(caller))
    filtered = IssueFilter((Issue.id.in_(list(db.session.scalars(linked))),), ())
    by_id = {row.id: row for row in IssueListing(filtered).rows(0, MAX_LINKS)}
    return [LinkedIssue(by_id[number], link) for number, link in links.items() if number in by_id]


def find_link(caller: Caller, issue: Issue, link_id: int) -> IssueLink:
    """One link of an issue whose other issue the caller may see."""
    link = db.session.get(IssueLink, link_id)
    if link is None or issue.id not in (link.source_id, link.target_id):
        raise RecordNotFound
    other = link.target if link.source_id == issue.id else link.source
    if not sees_issue(caller, other):
        raise RecordNotFound
    return link


def find_target(caller: Caller, project: str, iid: int) -> Issue:
    """The issue of a project, given by id or path, that the caller may see.

    Raises:
        RecordNotFound: there is none.

    """
    target_project = project_by(project)
    if target_project is None or not allowed(caller, Ability.READ_ISSUES, target_project):
        raise RecordNotFound
    target = find_issue(target_project, iid)
    judge(caller, Ability.READ_ISSUE, target)
    return target


def sees_issue(caller: Caller, issue: Issue) -> bool:
    """Whether the caller may see an issue of any project."""
    hidden = issue.project.deleting_since is not None or issue.project.loading
    may_see = allowed(caller, Ability.READ_ISSUES, issue.project) and allowed(caller, Ability.READ_ISSUE, issue)
    return may_see and not hidden
