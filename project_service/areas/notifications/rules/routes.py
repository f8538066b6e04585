"""The API of rules (notifications reference, section 7)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.guards import numeric
from project_service.areas.notifications.rules import preview, queries, schemas, service
from project_service.domain.namespaces import Group
from project_service.domain.notifications.models import NotificationRule
from project_service.domain.projects import Project
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("notification_rules", __name__, description="Which events are told to which channels and people.")
OF_PROJECT, OF_GROUP = "/projects/<project>/notification_rules", "/groups/<group>/notification_rules"


@api.post(f"{OF_PROJECT}/preview")
@api.signed_in
@api.allow(Ability.READ_NOTIFICATIONS)
@api.arguments(schemas.PreviewRequestSchema)
@api.response(200, schemas.PreviewSchema)
def preview_notification_rules(project: Project, fields: dict[str, Any]) -> dict[str, Any]:
    """Say which rules an event would match and whom they would tell; nothing is sent."""
    return preview.preview(project, **fields)


@api.get(OF_PROJECT)
@api.signed_in
@api.allow(Ability.READ_NOTIFICATIONS)
@api.response(200, schemas.NotificationRuleSchema(many=True))
@api.paged
def list_project_notification_rules(project: Project) -> Select[NotificationRule]:
    """List the rules that apply to a project: its own, and those of the groups above it."""
    return queries.applying_rules(project)


@api.get(f"{OF_PROJECT}/<rule_id>")
@api.signed_in
@api.allow(Ability.READ_NOTIFICATIONS)
@api.response(200, schemas.NotificationRuleSchema)
def show_project_notification_rule(project: Project, rule_id: str) -> NotificationRule:
    """Show one rule that applies to a project."""
    return queries.find_applying_rule(project, numeric(rule_id))


@api.post(OF_PROJECT)
@api.signed_in
@api.allow(Ability.ADMIN_NOTIFICATIONS)
@api.arguments(schemas.NotificationRuleCreateSchema)
@api.response(201, schemas.NotificationRuleSchema)
def create_project_notification_rule(project: Project, fields: dict[str, Any]) -> NotificationRule:
    """Create a rule of a project."""
    return service.create_rule(project, **fields)


@api.put(f"{OF_PROJECT}/<rule_id>")
@api.signed_in
@api.allow(Ability.ADMIN_NOTIFICATIONS)
@api.arguments(schemas.NotificationRuleUpdateSchema)
@api.response(200, schemas.NotificationRuleSchema)
def update_project_notification_rule(project: Project, fields: dict[str, Any], rule_id: str) -> NotificationRule:
    """Change a rule of a project."""
    return service.update_rule(project, queries.find_rule(project, numeric(rule_id)), **fields)


@api.delete(f"{OF_PROJECT}/<rule_id>")
@api.signed_in
@api.allow(Ability.ADMIN_NOTIFICATIONS)
@api.response(204)
def delete_project_notification_rule(project: Project, rule_id: str) -> None:
    """Delete a rule of a project; what waits in its groups is dropped."""
    service.delete_rule(project, unmodified(queries.find_rule(project, numeric(rule_id))))


@api.get(OF_GROUP)
@api.signed_in
@api.allow(Ability.READ_GROUP_NOTIFICATIONS)
@api.response(200, schemas.NotificationRuleSchema(many=True))
@api.paged
def list_group_notification_rules(group: Group) -> Select[NotificationRule]:
    """List the rules that apply to a group: its own, and those of the groups above it."""
    return queries.applying_rules(group)


@api.get(f"{OF_GROUP}/<rule_id>")
@api.signed_in
@api.allow(Ability.READ_GROUP_NOTIFICATIONS)
@api.response(200, schemas.NotificationRuleSchema)
def show_group_notification_rule(group: Group, rule_id: str) -> NotificationRule:
    """Show one rule that applies to a group."""
    return queries.find_applying_rule(group, numeric(rule_id))


@api.post(OF_GROUP)
@api.signed_in
@api.allow(Ability.ADMIN_GROUP_NOTIFICATIONS)
@api.arguments(schemas.NotificationRuleCreateSchema)
@api.response(201, schemas.NotificationRuleSchema)
def create_group_notification_rule(group: Group, fields: dict[str, Any]) -> NotificationRule:
    """Create a rule of a group."""
    return service.create_rule(group, **fields)


@api.put(f"{OF_GROUP}/<rule_id>")
@api.signed_in
@api.allow(Ability.ADMIN_GROUP_NOTIFICATIONS)
@api.arguments(schemas.NotificationRuleUpdateSchema)
@api.response(200, schemas.NotificationRuleSchema)
def update_group_notification_rule(group: Group, fields: dict[str, Any], rule_id: str) -> NotificationRule:
    """Change a rule of a group."""
    return service.update_rule(group, queries.find_rule(group, numeric(rule_id)), **fields)


@api.delete(f"{OF_GROUP}/<rule_id>")
@api.signed_in
@api.allow(Ability.ADMIN_GROUP_NOTIFICATIONS)
@api.response(204)
def delete_group_notification_rule(group: Group, rule_id: str) -> None:
    """Delete a rule of a group; what waits in its groups is dropped."""
    service.delete_rule(group, unmodified(queries.find_rule(group, numeric(rule_id))))
