"""Create and remove links between issues, with the permissions of the caller."""

from __future__ import annotations

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.areas.issues.links import queries
from project_service.domain.tracker import issue_links
from project_service.domain.tracker.issue_links import IssueLink
from project_service.domain.tracker.issues import Issue
from project_service.kit.http.errors import ServiceError


class LinkRefused(ServiceError):
    """The caller may see both issues, but not link them."""

    status = 403

    def __init__(self) -> None:
        super().__init__("Couldn't link issues. You must have at least the Reporter role in both projects.")


class LinkNotFound(ServiceError):
    """The caller may see a link, but not remove it."""

    status = 404

    def __init__(self) -> None:
        super().__init__("No Issue Link found")


def create_link(requester: Caller, issue: Issue, target_project: str, target_iid: int) -> IssueLink:
    """Link an issue to another one that the caller may see."""
    target = queries.find_target(requester, target_project, target_iid)
    if not may_link(requester, issue, target):
        raise LinkRefused
    return issue_links.link_issues(requester.load_user(), issue, target)


def delete_link(requester: Caller, issue: Issue, link_id: int) -> IssueLink:
    """Remove a link of an issue.

    Raises:
        LinkNotFound: the caller may see the link, but not remove it.

    """
    link = queries.find_link(requester, issue, link_id)
    if not may_link(requester, link.source, link.target):
        raise LinkNotFound
    issue_links.remove_link(requester.load_user(), link)
    return link


def may_link(requester: Caller, *issues: Issue) -> bool:
    """Whether the caller is a reporter or more where both issues are."""
    return all(allowed(requester, Ability.ADMIN_ISSUES, issue.project) for issue in issues)
