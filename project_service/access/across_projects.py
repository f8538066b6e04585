"""Conditions for lists of what several projects have, by the rules of ``abilities``."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, or_, select, true

from project_service.access.identity import Caller
from project_service.access.rules import own_issues, projects_of_role, projects_with, visible_projects
from project_service.domain.access_levels import Role, Visibility
from project_service.domain.memberships import authorized_projects
from project_service.domain.projects import DISABLED, ENABLED, Project
from project_service.domain.tracker.issues import Issue

OPEN_VISIBILITIES = (Visibility.INTERNAL, Visibility.PUBLIC)


def issues_of_projects(caller: Caller) -> ColumnElement[bool]:
    """The condition for issues joined with their projects: ``READ_ISSUES`` and ``may_see_issue``."""
    return and_(visible_projects(caller), projects_with(caller, "issues"), _visible_issues_of_projects(caller))


def issues_across(caller: Caller, *projects: ColumnElement[bool]) -> ColumnElement[bool]:
    """The same condition without a join: for issues of the projects under more conditions."""
    present = Project.deleting_since.is_(None), Project.loading.is_(False)
    projects_with_issues = select(Project.id).where(
        visible_projects(caller), projects_with(caller, "issues"), *present, *projects
    )
    return and_(Issue.project_id.in_(projects_with_issues), _visible_issues_of_projects(caller))


def _visible_issues_of_projects(caller: Caller) -> ColumnElement[bool]:
    if caller.admin:
        return true()
    if caller.user_id is None:
        return Issue.confidential.is_(False)
    reported = Issue.project_id.in_(authorized_projects(caller.user_id, Role.REPORTER))
    return or_(Issue.confidential.is_(False), reported, Issue.id.in_(own_issues(caller.user_id)))


def merge_requests_of_projects(caller: Caller) -> ColumnElement[bool]:
    """The condition for lists of merge requests of several projects: that of ``READ_MERGE_REQUESTS``."""
    level = Project.merge_requests_access_level
    if caller.admin:
        return level != DISABLED
    opened = [Visibility.PUBLIC] if caller.external or caller.user_id is None else list(OPEN_VISIBILITIES)
    reported = Project.id.in_(authorized_projects(caller.user_id or 0, Role.REPORTER))
    return or_(and_(level == ENABLED, Project.visibility.in_(opened)), and_(level != DISABLED, reported))


def projects_with_errors(caller: Caller) -> ColumnElement[bool]:
    """The condition for lists of errors of several projects: that of ``READ_ERRORS``."""
    return projects_of_role(caller, "monitor", Role.REPORTER)


def projects_with_findings(caller: Caller) -> ColumnElement[bool]:
    """The condition for lists of findings of several projects: that of ``READ_VULNERABILITIES``."""
    return projects_of_role(caller, "security_and_compliance", Role.DEVELOPER)
