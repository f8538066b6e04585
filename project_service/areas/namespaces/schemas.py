"""Schemas of namespaces (namespaces reference, sections 1, 3 and 5)."""

from __future__ import annotations

from typing import Any

from project_service.domain.schemas import NamespaceBasicSchema
from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema


def _detail(name: str, kind: type[Any]) -> Any:
    # left out unless ``details`` were loaded for this caller
    return kind(attribute=f"details.{name}", dump_only=True)


class NamespaceSchema(NamespaceBasicSchema):
    """A namespace; the details are only for callers who may see them."""

    members_count_with_descendants = _detail("members_count_with_descendants", fields.Integer)
    billable_members_count = _detail("billable_members_count", fields.Integer)
    seats_in_use = _detail("seats_in_use", fields.Integer)
    max_seats_used = _detail("max_seats_used", fields.Integer)
    plan = _detail("plan", fields.String)
    trial_ends_on = _detail("trial_ends_on", fields.Day)
    trial = _detail("trial", fields.Boolean)


class NamespaceFilterSchema(Schema):
    """Filters of the list of namespaces."""

    search = fields.String()
    requested_hosted_plan = fields.String()
    owned_only = fields.Boolean(default=False)
    top_level_only = fields.Boolean(default=False)
    full_path_search = fields.Boolean(default=False)


class NamespaceShowSchema(Schema):
    """Options for showing a namespace."""

    requested_hosted_plan = fields.String()


class ExistenceFilterSchema(Schema):
    """The namespace in which a path is looked up."""

    parent_id = fields.Integer()


class ExistenceSchema(Schema):
    """Whether a path is in use, and a free one."""

    exists = fields.Boolean()
    suggests = fields.Array(fields.String())
