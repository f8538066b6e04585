"""Schemas of labels."""

from __future__ import annotations

from project_service.domain.tracker.labels import text_color
from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema


class LabelSchema(Schema):
    """A label; ``priority`` is set when a page is loaded."""

    id = fields.Integer()
    name = fields.String(attribute="title")
    description = fields.String()
    text_color = fields.Computed(lambda label: text_color(label.color))
    color = fields.String()
    subscribed = fields.Constant(False)
    priority = fields.Integer()
    is_project_label = fields.Constant(True)


class LabelWithCountsSchema(LabelSchema):
    """A label with how often it is used; ``counts`` are set when a page is loaded."""

    open_issues_count = fields.Integer(attribute="counts.open_issues", dump_only=True)
    closed_issues_count = fields.Integer(attribute="counts.closed_issues", dump_only=True)
    open_merge_requests_count = fields.Integer(attribute="counts.open_merge_requests", dump_only=True)


class LabelFilterSchema(Schema):
    """Filters of the list of labels."""

    with_counts = fields.Boolean(default=False)
    search = fields.String()
