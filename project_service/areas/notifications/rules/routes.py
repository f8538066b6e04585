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

Owner = Project | Group
api = ApiBlueprint("notification_rules", __name__, description="Which events are told to which channels and people.")
OF_PROJECT, OF_GROUP = "/projects/<project>/notification_rules", "/groups/<group>/notification_rules"
readers = api.allow(project=Ability.READ_NOTIFICATIONS, group=Ability.READ_GROUP_NOTIFICATIONS)
writers = api.allow(project=Ability.ADMIN_NOTIFICATIONS, group=Ability.ADMIN_GROUP_NOTIFICATIONS)


@api.post(f"{OF_PROJECT}/preview")
@api.signed_in
@api.allow(Ability.READ_NOTIFICATIONS)
@api.arguments(schemas.PreviewRequestSchema)
@api.response(200, schemas.PreviewSchema)
def preview_notification_rules(project: Project, fields: dict[str, Any]) -> dict[str, Any]:
    """Say which rules an event would match and whom they would tell; nothing is sent."""
    return preview.preview(project, **fields)


@api.get(OF_PROJECT, endpoint="list_project_notification_rules")
@api.get(OF_GROUP, endpoint="list_group_notification_rules")
@api.signed_in
@readers
@api.response(200, schemas.NotificationRuleSchema(many=True))
@api.paged
def list_notification_rules(owner: Owner) -> Select[NotificationRule]:
    """List the rules that apply to a project or group: its own, and those of the groups above it."""
    return queries.applying_rules(owner)


@api.get(f"{OF_PROJECT}/<rule_id>", endpoint="show_project_notification_rule")
@api.get(f"{OF_GROUP}/<rule_id>", endpoint="show_group_notification_rule")
@api.signed_in
@readers
@api.response(200, schemas.NotificationRuleSchema)
def show_notification_rule(owner: Owner, rule_id: str) -> NotificationRule:
    """Show one rule that applies to a project or group."""
    return queries.find_applying_rule(owner, numeric(rule_id))


@api.post(OF_PROJECT, endpoint="create_project_notification_rule")
@api.post(OF_GROUP, endpoint="create_group_notification_rule")
@api.signed_in
@writers
@api.arguments(schemas.NotificationRuleCreateSchema)
@api.response(201, schemas.NotificationRuleSchema)
def create_notification_rule(owner: Owner, fields: dict[str, Any]) -> NotificationRule:
    """Create a rule of a project or group."""
    return service.create_rule(owner, **fields)


@api.put(f"{OF_PROJECT}/<rule_id>", endpoint="update_project_notification_rule")
@api.put(f"{OF_GROUP}/<rule_id>", endpoint="update_group_notification_rule")
@api.signed_in
@writers
@api.arguments(schemas.NotificationRuleUpdateSchema)
@api.response(200, schemas.NotificationRuleSchema)
def update_notification_rule(owner: Owner, fields: dict[str, Any], rule_id: str) -> NotificationRule:
    """Change a rule."""
    return service.update_rule(owner, queries.find_rule(owner, numeric(rule_id)), **fields)


@api.delete(f"{OF_PROJECT}/<rule_id>", endpoint="delete_project_notification_rule")
@api.delete(f"{OF_GROUP}/<rule_id>", endpoint="delete_group_notification_rule")
@api.signed_in
@writers
@api.response(204)
def delete_notification_rule(owner: Owner, rule_id: str) -> None:
    """Delete a rule; what waits in its groups is dropped."""
    service.delete_rule(owner, unmodified(queries.find_rule(owner, numeric(rule_id))))
