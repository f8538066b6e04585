"""The API of error-tracking settings; parameters are validated before the project (reference, section 2)."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.areas.error_tracking import queries, schemas, service
from project_service.areas.error_tracking.models import ErrorTrackingSetting
from project_service.domain.projects import Project

api = ApiBlueprint("error_tracking", __name__, description="Where the errors of a project are tracked.")

SETTINGS = "/projects/<project>/error_tracking/settings"


@api.get(SETTINGS)
@api.signed_in
@api.allow(Ability.ADMIN_OPERATIONS)
@api.response(200, schemas.ErrorTrackingSettingSchema)
def show_error_tracking_settings(project: Project) -> ErrorTrackingSetting:
    """Show the error-tracking settings of a project."""
    return queries.find_setting(project)


@api.patch(SETTINGS)
@api.signed_in
@api.arguments(schemas.ErrorTrackingSwitchSchema)
@api.allow(Ability.ADMIN_OPERATIONS)
@api.response(200, schemas.ErrorTrackingSettingSchema)
def switch_error_tracking_settings(project: Project, fields: dict[str, Any]) -> ErrorTrackingSetting:
    """Switch the configured settings on or off."""
    return service.switch(project, queries.find_setting(project), **fields)


@api.put(SETTINGS)
@api.signed_in
@api.arguments(schemas.ErrorTrackingCreateSchema)
@api.allow(Ability.ADMIN_OPERATIONS)
@api.response(200, schemas.ErrorTrackingSettingSchema)
def create_error_tracking_settings(project: Project, fields: dict[str, Any]) -> ErrorTrackingSetting:
    """Create the settings of the integrated tracker, or switch the existing ones."""
    return service.create_or_switch(project, **fields)
