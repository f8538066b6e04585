"""The API of links between issues."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.guards import numeric
from project_service.access.identity import caller
from project_service.areas.issues.links import queries, schemas, service
from project_service.domain.tracker.issue_links import IssueLink
from project_service.domain.tracker.issues import Issue

api = ApiBlueprint("issue_links", __name__, description="Links between related issues.")

LINKS = "/projects/<project>/issues/<iid>/links"


@api.get(LINKS)
@api.signed_in
@api.allow(Ability.READ_ISSUE)
@api.response(200, schemas.LinkedIssueSchema(many=True))
def list_issue_links(issue: Issue) -> list[object]:
    """List the issues that an issue is linked to and that you may see; the list has no pages."""
    return schemas.with_links(queries.linked_issues(caller(), issue))


@api.post(LINKS)
@api.signed_in
@api.arguments(schemas.IssueLinkCreateSchema)
@api.allow(Ability.READ_ISSUE)
@api.response(201, schemas.IssueLinkSchema)
def create_issue_link(issue: Issue, fields: dict[str, Any]) -> IssueLink:
    """Link an issue to another; for reporters of both projects."""
    return service.create_link(
        caller(), issue, fields["target_project_id"] or "", numeric(fields["target_issue_iid"] or 0)
    )


@api.get(f"{LINKS}/<issue_link_id>")
@api.signed_in
@api.allow(Ability.READ_ISSUE)
@api.response(200, schemas.IssueLinkSchema)
def show_issue_link(issue: Issue, issue_link_id: str) -> IssueLink:
    """Show one link."""
    return queries.find_link(caller(), issue, numeric(issue_link_id))


@api.delete(f"{LINKS}/<issue_link_id>")
@api.signed_in
@api.allow(Ability.READ_ISSUE)
@api.response(200, schemas.IssueLinkSchema)
def delete_issue_link(issue: Issue, issue_link_id: str) -> IssueLink:
    """Remove a link; for reporters of both projects."""
    return service.delete_link(caller(), issue, numeric(issue_link_id))
