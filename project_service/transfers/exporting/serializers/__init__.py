"""Serialization of project data, one module per relation (archive format reference, section 4).

A relation without an entry in ``SERIALIZERS`` has no table: its rows are written as they were imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import func, select

from project_service.domain.repositories.releases import Release
from project_service.domain.tracker.documents.snippets import Snippet
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.labels import Label
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.milestones import Milestone
from project_service.transfers.archive import layout
from project_service.transfers.exporting.context import ExportContext
from project_service.transfers.exporting.serializers.error_tracking import serialize_error_tracking
from project_service.transfers.exporting.serializers.issues import serialize_issues
from project_service.transfers.exporting.serializers.labels import serialize_labels
from project_service.transfers.exporting.serializers.members import serialize_members
from project_service.transfers.exporting.serializers.merge_requests import serialize_merge_requests
from project_service.transfers.exporting.serializers.milestones import serialize_milestones
from project_service.transfers.exporting.serializers.project import (
    serialize_auto_devops,
    serialize_ci_cd,
    serialize_features,
)
from project_service.transfers.exporting.serializers.protected_refs import (
    serialize_protected_branches,
    serialize_protected_tags,
)
from project_service.transfers.exporting.serializers.releases import serialize_releases
from project_service.transfers.exporting.serializers.snippets import serialize_snippets
from project_service.transfers.exporting.templates import Line
from project_service.transfers.models import ArchivedRow

SERIALIZERS: dict[str, Callable[[ExportContext], Iterator[Line]]] = {
    "labels": serialize_labels,
    "milestones": serialize_milestones,
    "issues": serialize_issues,
    "snippets": serialize_snippets,
    "releases": serialize_releases,
    "project_members": serialize_members,
    "merge_requests": serialize_merge_requests,
    "protected_branches": serialize_protected_branches,
    "protected_tags": serialize_protected_tags,
    "error_tracking_setting": serialize_error_tracking,
    "project_feature": serialize_features,
    "auto_devops": serialize_auto_devops,
    "ci_cd_settings": serialize_ci_cd,
}


def relations_of(context: ExportContext) -> list[str]:
    """Return the relations to write: those of the format, and others that were imported."""
    imported = select(ArchivedRow.relation).where(ArchivedRow.project_id == context.project.id).distinct()
    others = set(context.connection.scalars(imported)) - {*layout.RELATIONS, layout.PROJECT}
    return [*layout.RELATIONS, *sorted(others)]


def count_rows(context: ExportContext) -> int:
    """Return the number of rows to write, without nested ones; for the progress."""
    tables: tuple[Any, ...] = (Label, Milestone, Issue, MergeRequest, Snippet, Release, ArchivedRow)
    counted = (select(func.count()).where(model.project_id == context.project.id) for model in tables)
    return sum(context.connection.scalar(statement) or 0 for statement in counted)


def serialize(context: ExportContext, relation: str) -> Iterator[Line]:
    """Generate the rows of a relation."""
    serializer = SERIALIZERS.get(relation)
    return context.archived(relation) if serializer is None else serializer(context)
