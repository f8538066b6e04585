"""Schemas of the parameters of milestones."""

from __future__ import annotations

from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema


class MilestoneFilterSchema(Schema):
    """Filters of the list of milestones."""

    state = fields.String(default="all", choices=("active", "closed", "all"))
    iids = fields.Array(fields.Integer())
    title = fields.String()
    search = fields.String()


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
