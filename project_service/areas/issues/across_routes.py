"""The API of issues of several projects, and of their numbers."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.guards import numeric
from project_service.access.identity import caller
from project_service.areas.issues import schemas
from project_service.areas.issues.listing import IssueListing, listed
from project_service.areas.issues.queries import IssueFilter, statistics_of
from project_service.domain.namespaces import Group
from project_service.domain.project_access import ProjectAccess
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.milestones import find_milestone
from project_service.kit.db.session import one
from project_service.kit.http.errors import RecordNotFound

api = ApiBlueprint("issues_across_projects", __name__, description="Issues of several projects, and their numbers.")


@api.get("/issues")
@api.signed_in
@api.arguments(schemas.OwnIssueFilterSchema)
@api.allow(Ability.SIGNED_IN)
@api.response(200, schemas.IssueSchema(many=True))
@api.paged
def list_all_issues(fields: dict[str, Any]) -> Any:
    """List the issues that you opened, or with ``scope`` all that you may see."""
    return listed(IssueFilter.across(caller(), **fields), details=fields["with_labels_details"])


@api.get("/issues/<issue_id>")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.response(200, schemas.IssueSchema)
def show_any_issue(issue_id: str) -> Issue:
    """Show one issue by its id in the whole instance; for administrators."""
    return one(select(Issue).where(Issue.id == numeric(issue_id)), RecordNotFound())


@api.get("/groups/<group>/issues")
@api.signed_in
@api.arguments(schemas.GroupIssueFilterSchema)
@api.allow(Ability.READ_GROUP)
@api.response(200, schemas.IssueSchema(many=True))
@api.paged
def list_group_issues(group: Group, fields: dict[str, Any]) -> Any:
    """List the issues of the projects in a group and below."""
    return listed(IssueFilter.across(caller(), group, **fields), details=fields["with_labels_details"])


@api.get("/groups/<group>/milestones/<milestone>/issues")
@api.signed_in
@api.allow(Ability.READ_GROUP)
@api.response(200, schemas.IssueSchema(many=True))
@api.paged
def list_group_milestone_issues(group: Group, milestone: str) -> IssueListing:
    """List the issues of a milestone of a group, in all projects below that you see."""
    return IssueListing(IssueFilter.of_milestone(caller(), find_milestone(group, numeric(milestone))))


@api.get("/issues_statistics")
@api.signed_in
@api.arguments(schemas.OwnIssueConditionsSchema)
@api.allow(Ability.SIGNED_IN)
@api.response(200, schemas.IssueCountsSchema)
def count_all_issues(fields: dict[str, Any]) -> dict[str, Any]:
    """Count the issues that you opened, or with ``scope`` all that you may see."""
    return statistics_of(IssueFilter.across(caller(), **fields))


@api.get("/groups/<group>/issues_statistics")
@api.signed_in
@api.arguments(schemas.GroupIssueConditionsSchema)
@api.allow(Ability.READ_GROUP)
@api.response(200, schemas.IssueCountsSchema)
def count_group_issues(group: Group, fields: dict[str, Any]) -> dict[str, Any]:
    """Count the issues of the projects in a group and below."""
    return statistics_of(IssueFilter.across(caller(), group, **fields))


@api.get("/projects/<project>/issues_statistics")
@api.signed_in
@api.arguments(schemas.IssueConditionsSchema)
@api.allow(Ability.READ_ISSUES, access_only=True)
@api.response(200, schemas.IssueCountsSchema)
def count_issues(project: ProjectAccess, fields: dict[str, Any]) -> dict[str, Any]:
    """Count the issues of a project."""
    return statistics_of(IssueFilter.of(caller(), project, **fields))
