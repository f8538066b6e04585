"""The API of alert integrations; GitLab has the same fields in GraphQL only."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.guards import numeric
from project_service.areas.alerts import queries
from project_service.areas.alerts.integrations import api_fields, schemas, service
from project_service.areas.alerts.models import AlertIntegration
from project_service.domain.projects import Project
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("alert_integrations", __name__, description="Receivers of the alerts of a project.")

INTEGRATIONS = "/projects/<project>/alert_integrations"
ONE = f"{INTEGRATIONS}/<integration>"


@api.get(INTEGRATIONS)
@api.signed_in
@api.allow(Ability.ADMIN_OPERATIONS)
@api.response(200, schemas.AlertIntegrationSchema(many=True))
@api.paged
def list_alert_integrations(project: Project) -> Select[AlertIntegration]:
    """List the alert integrations of a project, newest first."""
    return queries.integrations_of(project)


@api.get(ONE)
@api.signed_in
@api.allow(Ability.ADMIN_OPERATIONS)
@api.response(200, schemas.AlertIntegrationSchema)
def show_alert_integration(project: Project, integration: str) -> AlertIntegration:
    """Show one alert integration."""
    return queries.find_integration(project, numeric(integration))


@api.post(INTEGRATIONS)
@api.signed_in
@api.allow(Ability.ADMIN_OPERATIONS)
@api.arguments(schemas.AlertIntegrationCreateSchema)
@api.response(201, schemas.AlertIntegrationWithKeySchema)
def create_alert_integration(project: Project, fields: dict[str, Any]) -> AlertIntegration:
    """Add an alert integration; only this answer and that of ``reset_key`` have its key."""
    return service.create_integration(project, **api_fields.of_new(fields))


@api.put(ONE)
@api.signed_in
@api.allow(Ability.ADMIN_OPERATIONS)
@api.arguments(schemas.AlertIntegrationUpdateSchema)
@api.response(200, schemas.AlertIntegrationSchema)
def update_alert_integration(project: Project, fields: dict[str, Any], integration: str) -> AlertIntegration:
    """Change an alert integration; its type, URL and key stay."""
    alert_integration = queries.find_integration(project, numeric(integration))
    return service.update_integration(alert_integration, **api_fields.of_stored(alert_integration, fields))


@api.delete(ONE)
@api.signed_in
@api.allow(Ability.ADMIN_OPERATIONS)
@api.response(204)
def delete_alert_integration(project: Project, integration: str) -> None:
    """Delete an alert integration; its alerts stay."""
    service.delete_integration(unmodified(queries.find_integration(project, numeric(integration))))


@api.post(f"{ONE}/reset_key")
@api.signed_in
@api.allow(Ability.ADMIN_OPERATIONS)
@api.response(200, schemas.AlertIntegrationWithKeySchema)
def reset_alert_integration_key(project: Project, integration: str) -> AlertIntegration:
    """Generate a new key; the old one is refused from then on."""
    alert_integration = queries.find_integration(project, numeric(integration))
    service.reset_key(alert_integration)
    return alert_integration


@api.post(f"{ONE}/test")
@api.signed_in
@api.allow(Ability.READ_ALERTS)
@api.arguments(schemas.AlertTestSchema)
@api.response(201, schemas.SentAlertTestSchema)
def send_test_alert(project: Project, fields: dict[str, Any], integration: str) -> service.SentTest:
    """Send a test alert, from which follows all that follows from an alert."""
    alert_integration = queries.find_integration(project, numeric(integration))
    return service.send_test(alert_integration, fields.get("payload") or alert_integration.payload_example or "")
