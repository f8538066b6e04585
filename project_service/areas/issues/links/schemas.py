"""Schemas of links between issues."""

from __future__ import annotations

from project_service.areas.issues.links.queries import LinkedIssue
from project_service.areas.issues.schemas import IssueSchema
from project_service.domain.tracker.issue_links import RELATES_TO
from project_service.kit import clock
from project_service.kit.http import fields
from project_service.kit.http.schemas import Embedded, Schema


class LinkedIssueSchema(IssueSchema):
    """An issue that another is linked to; ``link`` is set on the rows that it dumps."""

    issue_link_id = fields.Computed(lambda issue: issue.link.id, type="integer")
    link_type = fields.Constant(RELATES_TO)
    link_created_at = fields.Computed(lambda issue: clock.isoformat(issue.link.created_at), type="string")
    link_updated_at = fields.Computed(lambda issue: clock.isoformat(issue.link.updated_at), type="string")


def with_links(linked: list[LinkedIssue]) -> list[object]:
    """The issues as ``LinkedIssueSchema`` dumps them."""
    for each in linked:
        each.issue.link = each.link
    return [each.issue for each in linked]


class IssueLinkSchema(Schema):
    """A link between two issues."""

    id = fields.Integer()
    source_issue = Embedded(IssueSchema, attribute="source")
    target_issue = Embedded(IssueSchema, attribute="target")
    link_type = fields.Constant(RELATES_TO)


class IssueLinkCreateSchema(Schema):
    """The issue to link to."""

    target_project_id = fields.String(required=True, metadata={"description": "Id or full path of its project."})
    target_issue_iid = fields.Integer(required=True)
    link_type = fields.String(default=RELATES_TO, choices=(RELATES_TO,))
