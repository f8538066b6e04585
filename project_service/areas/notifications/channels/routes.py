"""The API of channels and of the log of messages (notifications reference, sections 4 and 5)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability, allowed
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.guards import numeric
from project_service.access.identity import caller, current_user
from project_service.areas.notifications.channels import queries, schemas, service
from project_service.areas.notifications.models import NotificationChannel, NotificationDelivery
from project_service.areas.notifications.owners import Owner
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("notification_channels", __name__, description="Where notifications are sent, and what was sent.")
NAME = "notification_channels"
OF_PROJECT, OF_GROUP, OF_USER = f"/projects/<project>/{NAME}", f"/groups/<group>/{NAME}", f"/user/{NAME}"
LOG = "notification_deliveries"


@api.get(OF_PROJECT)
@api.signed_in
@api.allow(Ability.READ_NOTIFICATIONS)
@api.response(200, schemas.NotificationChannelSchema(many=True))
@api.paged
def list_project_notification_channels(project: Project) -> Select[NotificationChannel]:
    """List the channels that a project may use."""
    return queries.usable_channels(project)


@api.get(f"{OF_PROJECT}/<channel_id>")
@api.signed_in
@api.allow(Ability.READ_NOTIFICATIONS)
@api.response(200, schemas.NotificationChannelSchema)
def show_project_notification_channel(project: Project, channel_id: str) -> NotificationChannel:
    """Show one channel that a project may use."""
    return queries.find_usable_channel(project, numeric(channel_id))


@api.post(OF_PROJECT)
@api.signed_in
@api.allow(Ability.ADMIN_NOTIFICATIONS)
@api.arguments(schemas.NotificationChannelCreateSchema)
@api.response(201, schemas.NotificationChannelSchema)
def create_project_notification_channel(project: Project, fields: dict[str, Any]) -> NotificationChannel:
    """Create a channel of a project."""
    return service.create_channel(project, **fields)


@api.put(f"{OF_PROJECT}/<channel_id>")
@api.signed_in
@api.allow(Ability.ADMIN_NOTIFICATIONS)
@api.arguments(schemas.NotificationChannelUpdateSchema)
@api.response(200, schemas.NotificationChannelSchema)
def update_project_notification_channel(
    project: Project, fields: dict[str, Any], channel_id: str
) -> NotificationChannel:
    """Change a channel of a project."""
    return service.update_channel(project, queries.find_channel(project, numeric(channel_id)), **fields)


@api.delete(f"{OF_PROJECT}/<channel_id>")
@api.signed_in
@api.allow(Ability.ADMIN_NOTIFICATIONS)
@api.response(204)
def delete_project_notification_channel(project: Project, channel_id: str) -> None:
    """Delete a channel of a project; what waits for it is dropped."""
    service.delete_channel(project, unmodified(queries.find_channel(project, numeric(channel_id))))


@api.post(f"{OF_PROJECT}/<channel_id>/test")
@api.signed_in
@api.allow(Ability.ADMIN_NOTIFICATIONS)
@api.response(201, schemas.TestedChannelSchema)
def test_project_notification_channel(project: Project, channel_id: str) -> dict[str, Any]:
    """Send a test to a channel now."""
    return service.test_channel(project, queries.find_channel(project, numeric(channel_id)))


@api.get(f"/projects/<project>/{LOG}")
@api.signed_in
@api.allow(Ability.READ_NOTIFICATIONS)
@api.arguments(schemas.NotificationDeliveryFilterSchema)
@api.response(200, schemas.NotificationDeliverySchema(many=True))
@api.paged
def list_project_notification_deliveries(project: Project, fields: dict[str, Any]) -> WithSchema:
    """List the messages of a project, newest first; recipients are shown to those who may change channels."""
    return _log(project, fields, is_full=allowed(caller(), Ability.ADMIN_NOTIFICATIONS, project))


@api.post(f"/projects/<project>/{LOG}/<delivery_id>/resend")
@api.signed_in
@api.allow(Ability.ADMIN_NOTIFICATIONS)
@api.response(201, schemas.FullNotificationDeliverySchema)
def resend_project_notification_delivery(project: Project, delivery_id: str) -> NotificationDelivery:
    """Send a message of a project again."""
    return service.resend(project, queries.find_delivery(project, numeric(delivery_id)))


@api.get(OF_GROUP)
@api.signed_in
@api.allow(Ability.READ_GROUP_NOTIFICATIONS)
@api.response(200, schemas.NotificationChannelSchema(many=True))
@api.paged
def list_group_notification_channels(group: Group) -> Select[NotificationChannel]:
    """List the channels that a group may use."""
    return queries.usable_channels(group)


@api.get(f"{OF_GROUP}/<channel_id>")
@api.signed_in
@api.allow(Ability.READ_GROUP_NOTIFICATIONS)
@api.response(200, schemas.NotificationChannelSchema)
def show_group_notification_channel(group: Group, channel_id: str) -> NotificationChannel:
    """Show one channel that a group may use."""
    return queries.find_usable_channel(group, numeric(channel_id))


@api.post(OF_GROUP)
@api.signed_in
@api.allow(Ability.ADMIN_GROUP_NOTIFICATIONS)
@api.arguments(schemas.NotificationChannelCreateSchema)
@api.response(201, schemas.NotificationChannelSchema)
def create_group_notification_channel(group: Group, fields: dict[str, Any]) -> NotificationChannel:
    """Create a channel of a group."""
    return service.create_channel(group, **fields)


@api.put(f"{OF_GROUP}/<channel_id>")
@api.signed_in
@api.allow(Ability.ADMIN_GROUP_NOTIFICATIONS)
@api.arguments(schemas.NotificationChannelUpdateSchema)
@api.response(200, schemas.NotificationChannelSchema)
def update_group_notification_channel(group: Group, fields: dict[str, Any], channel_id: str) -> NotificationChannel:
    """Change a channel of a group."""
    return service.update_channel(group, queries.find_channel(group, numeric(channel_id)), **fields)


@api.delete(f"{OF_GROUP}/<channel_id>")
@api.signed_in
@api.allow(Ability.ADMIN_GROUP_NOTIFICATIONS)
@api.response(204)
def delete_group_notification_channel(group: Group, channel_id: str) -> None:
    """Delete a channel of a group; what waits for it is dropped."""
    service.delete_channel(group, unmodified(queries.find_channel(group, numeric(channel_id))))


@api.post(f"{OF_GROUP}/<channel_id>/test")
@api.signed_in
@api.allow(Ability.ADMIN_GROUP_NOTIFICATIONS)
@api.response(201, schemas.TestedChannelSchema)
def test_group_notification_channel(group: Group, channel_id: str) -> dict[str, Any]:
    """Send a test to a channel now."""
    return service.test_channel(group, queries.find_channel(group, numeric(channel_id)))


@api.get(f"/groups/<group>/{LOG}")
@api.signed_in
@api.allow(Ability.READ_GROUP_NOTIFICATIONS)
@api.arguments(schemas.NotificationDeliveryFilterSchema)
@api.response(200, schemas.NotificationDeliverySchema(many=True))
@api.paged
def list_group_notification_deliveries(group: Group, fields: dict[str, Any]) -> WithSchema:
    """List the messages of a group, newest first; recipients are shown to those who may change channels."""
    return _log(group, fields, is_full=allowed(caller(), Ability.ADMIN_GROUP_NOTIFICATIONS, group))


@api.post(f"/groups/<group>/{LOG}/<delivery_id>/resend")
@api.signed_in
@api.allow(Ability.ADMIN_GROUP_NOTIFICATIONS)
@api.response(201, schemas.FullNotificationDeliverySchema)
def resend_group_notification_delivery(group: Group, delivery_id: str) -> NotificationDelivery:
    """Send a message of a group again."""
    return service.resend(group, queries.find_delivery(group, numeric(delivery_id)))


@api.get(OF_USER)
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.response(200, schemas.NotificationChannelSchema(many=True))
@api.paged
def list_user_notification_channels() -> Select[NotificationChannel]:
    """List the channels of the current user."""
    return queries.usable_channels(current_user())


@api.get(f"{OF_USER}/<channel_id>")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.response(200, schemas.NotificationChannelSchema)
def show_user_notification_channel(channel_id: str) -> NotificationChannel:
    """Show one channel of the current user."""
    return queries.find_usable_channel(current_user(), numeric(channel_id))


@api.post(OF_USER)
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(schemas.PersonalChannelCreateSchema)
@api.response(201, schemas.NotificationChannelSchema)
def create_user_notification_channel(fields: dict[str, Any]) -> NotificationChannel:
    """Create a channel of a user."""
    return service.create_channel(current_user(), **fields)


@api.put(f"{OF_USER}/<channel_id>")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(schemas.NotificationChannelUpdateSchema)
@api.response(200, schemas.NotificationChannelSchema)
def update_user_notification_channel(fields: dict[str, Any], channel_id: str) -> NotificationChannel:
    """Change a channel of a user."""
    return service.update_channel(current_user(), queries.find_channel(current_user(), numeric(channel_id)), **fields)


@api.delete(f"{OF_USER}/<channel_id>")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.response(204)
def delete_user_notification_channel(channel_id: str) -> None:
    """Delete a channel of a user; what waits for it is dropped."""
    service.delete_channel(current_user(), unmodified(queries.find_channel(current_user(), numeric(channel_id))))


@api.post(f"{OF_USER}/<channel_id>/test")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.response(201, schemas.TestedChannelSchema)
def test_user_notification_channel(channel_id: str) -> dict[str, Any]:
    """Send a test to a channel now."""
    return service.test_channel(current_user(), queries.find_channel(current_user(), numeric(channel_id)))


@api.get(f"/user/{LOG}")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(schemas.NotificationDeliveryFilterSchema)
@api.response(200, schemas.NotificationDeliverySchema(many=True))
@api.paged
def list_user_notification_deliveries(fields: dict[str, Any]) -> WithSchema:
    """List the messages of a user, newest first; recipients are shown to those who may change channels."""
    return _log(current_user(), fields, is_full=True)


@api.post(f"/user/{LOG}/<delivery_id>/resend")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.response(201, schemas.FullNotificationDeliverySchema)
def resend_user_notification_delivery(delivery_id: str) -> NotificationDelivery:
    """Send a message of a user again."""
    return service.resend(current_user(), queries.find_delivery(current_user(), numeric(delivery_id)))


def _log(owner: Owner, fields: dict[str, Any], *, is_full: bool) -> WithSchema:
    schema = schemas.FullNotificationDeliverySchema if is_full else schemas.NotificationDeliverySchema
    return WithSchema(schema, queries.deliveries_of(owner, **fields))
