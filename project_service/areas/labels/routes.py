"""The API of labels, which are read-only: they are created by imports."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.identity import caller
from project_service.areas.labels import queries, schemas
from project_service.domain.projects import Project
from project_service.domain.tracker.labels import Label, find_label

api = ApiBlueprint("labels", __name__, description="Labels of a project.")

LABELS = "/projects/<project>/labels"


@api.get(LABELS)
@api.signed_in
@api.arguments(schemas.LabelFilterSchema)
@api.allow(Ability.READ_LABELS)
@api.response(200, schemas.LabelWithCountsSchema(many=True))
@api.paged
def list_labels(project: Project, fields: dict[str, Any]) -> WithSchema:
    """List the labels of a project; ``with_counts`` adds how often each is used."""
    requester, with_counts = caller(), fields["with_counts"]

    def prepare(rows: list[Label]) -> None:
        queries.add_priorities(rows)
        if with_counts:
            queries.add_counts(requester, project, rows)

    schema = schemas.LabelWithCountsSchema if with_counts else schemas.LabelSchema
    return WithSchema(schema, queries.labels_matching(project, **fields), prepare)


@api.get(f"{LABELS}/<label>")
@api.signed_in
@api.allow(Ability.READ_LABELS)
@api.response(200, schemas.LabelSchema)
def show_label(project: Project, label: str) -> Label:
    """Show one label, by its id or its title."""
    shown = find_label(project, label)
    queries.add_priorities([shown])
    return shown
