"""Schemas of labels."""

from __future__ import annotations

from project_service.domain.tracker.labels import text_color
from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema
from project_service.kit.texts import markdown

CHANGES: tuple[str, ...] = ("new_name", "color", "description")


class GroupLabelSchema(Schema):
    """A label of a group: of a ``ShownLabel``."""

    id = fields.Integer(attribute="label.id")
    name = fields.String(attribute="label.title")
    description = fields.String(attribute="label.description")
    description_html = fields.Computed(lambda shown: str(markdown.line(shown.label.description)))
    text_color = fields.Computed(lambda shown: text_color(shown.label.color))
    color = fields.String(attribute="label.color")
    subscribed = fields.Boolean()


class GroupLabelWithCountsSchema(GroupLabelSchema):
    """A label of a group with how often it is used."""

    open_issues_count = fields.Integer(attribute="uses.open_issues", dump_only=True)
    closed_issues_count = fields.Integer(attribute="uses.closed_issues", dump_only=True)
    open_merge_requests_count = fields.Integer(attribute="uses.open_merge_requests", dump_only=True)


class LabelSchema(GroupLabelSchema):
    """A label of a project."""

    priority = fields.Integer()
    is_project_label = fields.Computed(lambda shown: shown.label.project_id is not None, type="boolean")


class LabelWithCountsSchema(GroupLabelWithCountsSchema):
    """A label of a project with how often it is used there."""

    priority = fields.Integer()
    is_project_label = fields.Computed(lambda shown: shown.label.project_id is not None, type="boolean")


class LabelShowSchema(Schema):
    """Where labels are looked for."""

    include_ancestor_groups = fields.Boolean(default=True)


class LabelFilterSchema(LabelShowSchema):
    """Filters of the list of labels."""

    with_counts = fields.Boolean(default=False)
    search = fields.String()


class GroupLabelFilterSchema(LabelFilterSchema):
    """Filters of the list of labels of a group."""

    include_descendant_groups = fields.Boolean(default=False)
    only_group_labels = fields.Boolean(default=True)


class GroupLabelCreateSchema(Schema):
    """A new label of a group."""

    name = fields.String(required=True)
    color = fields.String(required=True)
    description = fields.String()


class LabelCreateSchema(GroupLabelCreateSchema):
    """A new label of a project."""

    priority = fields.Integer()


class GroupLabelUpdateSchema(Schema):
    """Changes of a label of a group."""

    at_least_one = CHANGES

    new_name = fields.String()
    color = fields.String()
    description = fields.String()


class LabelUpdateSchema(GroupLabelUpdateSchema):
    """Changes of a label of a project; ``priority`` of ``null`` removes it."""

    at_least_one = (*CHANGES, "priority")

    priority = fields.Integer()


class LabelNameSchema(Schema):
    """A label by its id or its title, as older clients name it."""

    exactly_one = ("label_id", "name")

    label_id = fields.Integer()
    name = fields.String()


class NamedLabelUpdateSchema(LabelUpdateSchema, LabelNameSchema):
    """Changes of a label of a project that the parameters name."""


class NamedGroupLabelUpdateSchema(GroupLabelUpdateSchema, LabelNameSchema):
    """Changes of a label of a group that the parameters name."""


class LabelPromoteSchema(Schema):
    """The label to promote."""

    name = fields.String(required=True)
