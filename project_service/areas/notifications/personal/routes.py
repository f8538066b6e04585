"""The API of personal settings (notifications reference, section 8)."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.identity import current_user
from project_service.areas.notifications.personal import schemas, service
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project

api = ApiBlueprint("notification_settings", __name__, description="What the current user is notified of.")
NAME = "notification_settings"


@api.get(f"/{NAME}")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.response(200, schemas.NotificationSettingSchema)
def show_notification_settings() -> dict[str, Any]:
    """Show the level that the current user has everywhere."""
    return service.shown_setting(current_user(), None)


@api.put(f"/{NAME}")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(schemas.GlobalSettingUpdateSchema)
@api.response(200, schemas.NotificationSettingSchema)
def update_notification_settings(fields: dict[str, Any]) -> dict[str, Any]:
    """Change the level that the current user has everywhere."""
    return service.save_setting(current_user(), None, **fields)


@api.get(f"/projects/<project>/{NAME}")
@api.signed_in
@api.allow(Ability.READ_PROJECT)
@api.response(200, schemas.NotificationSettingSchema)
def show_project_notification_settings(project: Project) -> dict[str, Any]:
    """Show the level that the current user has for a project."""
    return service.shown_setting(current_user(), project)


@api.put(f"/projects/<project>/{NAME}")
@api.signed_in
@api.allow(Ability.READ_PROJECT)
@api.arguments(schemas.ProjectSettingUpdateSchema)
@api.response(200, schemas.NotificationSettingSchema)
def update_project_notification_settings(project: Project, fields: dict[str, Any]) -> dict[str, Any]:
    """Change the level that the current user has for a project."""
    return service.save_setting(current_user(), project, **fields)


@api.get(f"/groups/<group>/{NAME}")
@api.signed_in
@api.allow(Ability.READ_GROUP)
@api.response(200, schemas.NotificationSettingSchema)
def show_group_notification_settings(group: Group) -> dict[str, Any]:
    """Show the level that the current user has for a group."""
    return service.shown_setting(current_user(), group)


@api.put(f"/groups/<group>/{NAME}")
@api.signed_in
@api.allow(Ability.READ_GROUP)
@api.arguments(schemas.GroupSettingUpdateSchema)
@api.response(200, schemas.NotificationSettingSchema)
def update_group_notification_settings(group: Group, fields: dict[str, Any]) -> dict[str, Any]:
    """Change the level that the current user has for a group."""
    return service.save_setting(current_user(), group, **fields)


@api.get("/user/quiet_hours")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.response(200, schemas.QuietHoursSchema)
def show_quiet_hours() -> dict[str, Any]:
    """Show the hours in which personal messages wait."""
    return service.shown_quiet_hours(current_user())


@api.put("/user/quiet_hours")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(schemas.QuietHoursSchema)
@api.response(200, schemas.QuietHoursSchema)
def update_quiet_hours(fields: dict[str, Any]) -> dict[str, Any]:
    """Change the hours in which personal messages wait."""
    return service.save_quiet_hours(current_user(), **fields)
