"""Labels as they travel, in the forms of the real product."""

from __future__ import annotations

import re

from project_service.kit import fields
from project_service.kit.schemas import Schema
from project_service.tracker.labels import Label

DARK, LIGHT = "#333333", "#FFFFFF"
HEX = re.compile(r"#(?:([0-9a-f])([0-9a-f])([0-9a-f])|([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2}))", re.IGNORECASE)
BRIGHT = 500


def text_color(label: Label) -> str:
    """The colour in which its title can be read: dark on what is bright."""
    found = HEX.fullmatch(label.color)
    parts = [part * (2 // len(part)) for part in found.groups() if part] if found else []
    return DARK if sum(int(part, 16) for part in parts) > BRIGHT else LIGHT


class LabelSchema(Schema):
    """A label; ``priority`` is prepared with the page."""

    id = fields.Integer()
    name = fields.String(attribute="title")
    description = fields.String()
    text_color = fields.Computed(text_color)
    color = fields.String()
    subscribed = fields.Constant(False)
    priority = fields.Integer()
    is_project_label = fields.Constant(True)


class LabelWithCountsSchema(LabelSchema):
    """A label with how often it is used; ``counts`` are prepared with the page."""

    open_issues_count = fields.Integer(attribute="counts.open_issues", dump_only=True)
    closed_issues_count = fields.Integer(attribute="counts.closed_issues", dump_only=True)
    open_merge_requests_count = fields.Integer(attribute="counts.open_merge_requests", dump_only=True)


class LabelFilterSchema(Schema):
    """Which labels to list."""

    with_counts = fields.Boolean(default=False)
    search = fields.String()
