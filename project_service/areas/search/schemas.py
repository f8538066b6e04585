"""Parameters of the search (search reference, sections 1 to 3)."""

from __future__ import annotations

from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema

OF_INSTANCE = ("projects", "issues", "merge_requests", "milestones", "snippet_titles", "users")
OF_GROUP = ("projects", "issues", "merge_requests", "milestones", "users")
OF_PROJECT = ("issues", "merge_requests", "milestones", "notes", "wiki_blobs", "commits", "blobs", "users")
STATES = ("all", "opened", "closed", "merged")


class SearchSchema(Schema):
    """What is searched for, everywhere."""

    search = fields.String(required=True, metadata={"description": "Words, all of which a match contains."})
    scope = fields.String(required=True, choices=OF_INSTANCE)
    state = fields.String(choices=STATES, metadata={"description": "Of issues and merge requests."})
    confidential = fields.Boolean(metadata={"description": "Of issues."})
    order_by = fields.String(choices=("created_at",))
    sort = fields.String(default="desc", choices=("asc", "desc"))
    include_archived = fields.Boolean(default=False)


class GroupSearchSchema(SearchSchema):
    """What is searched for in a group and all below it."""

    scope = fields.String(required=True, choices=OF_GROUP)


class ProjectSearchSchema(SearchSchema):
    """What is searched for in a project."""

    scope = fields.String(required=True, choices=OF_PROJECT)
    ref = fields.String(metadata={"description": "Of commits and code; the default branch by default."})
