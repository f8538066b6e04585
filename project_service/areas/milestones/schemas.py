"""Schemas of the parameters of milestones."""

from __future__ import annotations

from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema


class MilestoneFilterSchema(Schema):
    """Filters of the list of milestones."""

    exclusive = (("include_ancestors", "include_parent_milestones"),)

    state = fields.String(default="all", choices=("active", "closed", "all"))
    iids = fields.Array(fields.Integer())
    title = fields.String()
    search = fields.String()
    search_title = fields.String()
    include_ancestors = fields.Boolean(metadata={"description": "With the milestones of the groups above."})
    include_parent_milestones = fields.Boolean(metadata={"description": "The former name of `include_ancestors`."})
    updated_after = fields.DateTime()
    updated_before = fields.DateTime()
    containing_date = fields.Date(metadata={"description": "A day between start date and due date."})


class GroupMilestoneFilterSchema(MilestoneFilterSchema):
    """Filters of the list of milestones of a group."""

    include_descendants = fields.Boolean(metadata={"description": "With those of subgroups and of projects below."})


class MilestoneFieldsSchema(Schema):
    """Fields shared by creating and updating a milestone."""

    description = fields.String()
    due_date = fields.Date()
    start_date = fields.Date()


class MilestoneCreateSchema(MilestoneFieldsSchema):
    """A new milestone."""

    title = fields.String(required=True)


class MilestoneUpdateSchema(MilestoneFieldsSchema):
    """Changes of a milestone."""

    at_least_one = ("title", "description", "start_date", "due_date", "state_event")

    title = fields.String()
    state_event = fields.String(choices=("close", "activate"))
