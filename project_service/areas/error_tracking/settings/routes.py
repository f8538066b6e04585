"""The API of error-tracking settings; parameters come first (error tracking reference, section 2)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.areas.error_tracking.settings import client_keys, ignore_rules, queries, schemas, service
from project_service.areas.error_tracking.settings.models import ClientKey, ErrorIgnoreRule, ErrorTrackingSetting
from project_service.domain.projects import Project

api = ApiBlueprint("error_tracking", __name__, description="Where the errors of a project are tracked.")

KEYS = "/projects/<project>/error_tracking/client_keys"
RULES = "/projects/<project>/error_tracking/ignore_rules"
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


@api.get(KEYS)
@api.signed_in
@api.allow(Ability.ADMIN_OPERATIONS)
@api.response(200, schemas.ClientKeySchema(many=True))
@api.paged
def list_client_keys(project: Project) -> Select[ClientKey]:
    """List the keys with which applications send events."""
    return client_keys.keys_of(project)


@api.post(KEYS)
@api.signed_in
@api.allow(Ability.ADMIN_OPERATIONS)
@api.response(201, schemas.ClientKeySchema)
def create_client_key(project: Project) -> ClientKey:
    """Create a client key."""
    return client_keys.create_key(project)


@api.delete(f"{KEYS}/<int:key_id>")
@api.signed_in
@api.allow(Ability.ADMIN_OPERATIONS)
@api.response(200, schemas.ClientKeySchema)
def delete_client_key(project: Project, key_id: int) -> ClientKey:
    """Remove a client key: its events are refused from then on."""
    key = client_keys.find_key(project, key_id)
    client_keys.delete_key(key)
    return key


@api.get(RULES)
@api.signed_in
@api.allow(Ability.ADMIN_OPERATIONS)
@api.response(200, schemas.ErrorIgnoreRuleSchema(many=True))
@api.paged
def list_ignore_rules(project: Project) -> Select[ErrorIgnoreRule]:
    """List the rules for events that are not stored."""
    return ignore_rules.rules_of(project)


@api.post(RULES)
@api.signed_in
@api.allow(Ability.ADMIN_OPERATIONS)
@api.arguments(schemas.ErrorIgnoreRuleCreateSchema)
@api.response(201, schemas.ErrorIgnoreRuleSchema)
def create_ignore_rule(project: Project, fields: dict[str, Any]) -> ErrorIgnoreRule:
    """Drop events that match all given patterns."""
    return ignore_rules.create_rule(project, **fields)


@api.delete(f"{RULES}/<int:rule_id>")
@api.signed_in
@api.allow(Ability.ADMIN_OPERATIONS)
@api.response(204)
def delete_ignore_rule(project: Project, rule_id: int) -> None:
    """Remove a rule: events that match it are stored again."""
    ignore_rules.delete_rule(project, ignore_rules.find_rule(project, rule_id))
