"""The API of namespaces (namespaces reference)."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.identity import caller
from project_service.areas.namespaces import queries, schemas, suggestions
from project_service.domain.namespaces import Namespace

api = ApiBlueprint("namespaces", __name__, description="Personal namespaces and groups.")


@api.get("/namespaces")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(schemas.NamespaceFilterSchema)
@api.response(200, schemas.NamespaceSchema(many=True))
@api.paged
def list_namespaces(fields: dict[str, Any]) -> WithSchema:
    """List your namespaces; administrators get all."""
    requester, plan = caller(), fields.get("requested_hosted_plan")
    statement = queries.namespaces_matching(requester, **fields)
    return WithSchema(schemas.NamespaceSchema, statement, lambda rows: queries.add_details(requester, rows, plan))


@api.get("/namespaces/<namespace>")
@api.signed_in
@api.arguments(schemas.NamespaceShowSchema)
@api.allow(Ability.READ_NAMESPACE)
@api.response(200, schemas.NamespaceSchema)
def show_namespace(namespace: Namespace, fields: dict[str, Any]) -> Namespace:
    """Show one namespace."""
    queries.add_details(caller(), [namespace], fields.get("requested_hosted_plan"))
    return namespace


@api.get("/namespaces/<path>/exists")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(schemas.ExistenceFilterSchema)
@api.response(200, schemas.ExistenceSchema)
def show_namespace_existence(fields: dict[str, Any], path: str) -> dict[str, Any]:
    """Return whether a path is in use, and suggest a free one."""
    existing = queries.namespace_below(fields.get("parent_id"), path)
    return {"exists": existing is not None, "suggests": [suggestions.suggest(path)] if existing else []}
