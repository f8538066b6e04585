"""The API of channels and of the log of messages (notifications reference, sections 4 and 5)."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.guards import numeric
from project_service.access.identity import current_user
from project_service.areas.notifications.channels import queries, schemas, service
from project_service.areas.notifications.models import NotificationChannel, NotificationDelivery
from project_service.areas.notifications.owners import Owner, may_change
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("notification_channels", __name__, description="Where notifications are sent, and what was sent.")
NAME, LOG = "notification_channels", "notification_deliveries"
OF_PROJECT, OF_GROUP, OF_USER = f"/projects/<project>/{NAME}", f"/groups/<group>/{NAME}", f"/user/{NAME}"
LOG_OF_PROJECT, LOG_OF_GROUP, LOG_OF_USER = f"/projects/<project>/{LOG}", f"/groups/<group>/{LOG}", f"/user/{LOG}"
readers = api.allow(
    project=Ability.READ_NOTIFICATIONS, group=Ability.READ_GROUP_NOTIFICATIONS, instance=Ability.SIGNED_IN
)
writers = api.allow(
    project=Ability.ADMIN_NOTIFICATIONS, group=Ability.ADMIN_GROUP_NOTIFICATIONS, instance=Ability.SIGNED_IN
)


@api.get(OF_PROJECT, endpoint="list_project_notification_channels")
@api.get(OF_GROUP, endpoint="list_group_notification_channels")
@api.get(OF_USER, endpoint="list_user_notification_channels")
@api.signed_in
@readers
@api.response(200, schemas.NotificationChannelSchema(many=True))
@api.paged
def list_notification_channels(owner: Owner | None) -> WithSchema:
    """List the channels that a project, a group or the current user may use."""
    owner = owner or current_user()
    shows_settings = may_change(owner)
    return WithSchema(
        schemas.NotificationChannelSchema,
        queries.usable_channels(owner),
        lambda channels: queries.show_settings(channels, owner, shown=shows_settings),
    )


@api.get(f"{OF_PROJECT}/<channel_id>", endpoint="show_project_notification_channel")
@api.get(f"{OF_GROUP}/<channel_id>", endpoint="show_group_notification_channel")
@api.get(f"{OF_USER}/<channel_id>", endpoint="show_user_notification_channel")
@api.signed_in
@readers
@api.response(200, schemas.NotificationChannelSchema)
def show_notification_channel(owner: Owner | None, channel_id: str) -> NotificationChannel:
    """Show one channel that a project, a group or the current user may use."""
    owner = owner or current_user()
    channel = queries.find_usable_channel(owner, numeric(channel_id))
    queries.show_settings([channel], owner, shown=may_change(owner))
    return channel


@api.post(OF_PROJECT, endpoint="create_project_notification_channel", sends_requests=True)
@api.post(OF_GROUP, endpoint="create_group_notification_channel", sends_requests=True)
@api.signed_in
@api.allow(project=Ability.ADMIN_NOTIFICATIONS, group=Ability.ADMIN_GROUP_NOTIFICATIONS)
@api.arguments(schemas.NotificationChannelCreateSchema)
@api.response(201, schemas.NotificationChannelSchema)
def create_notification_channel(owner: Owner, fields: dict[str, Any]) -> NotificationChannel:
    """Create a channel of a project or group."""
    return _shown(service.create_channel(owner, **fields))


@api.post(OF_USER, sends_requests=True)
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(schemas.PersonalChannelCreateSchema)
@api.response(201, schemas.NotificationChannelSchema)
def create_user_notification_channel(fields: dict[str, Any]) -> NotificationChannel:
    """Create a channel of the current user."""
    return _shown(service.create_channel(current_user(), **fields))


@api.put(f"{OF_PROJECT}/<channel_id>", endpoint="update_project_notification_channel", sends_requests=True)
@api.put(f"{OF_GROUP}/<channel_id>", endpoint="update_group_notification_channel", sends_requests=True)
@api.put(f"{OF_USER}/<channel_id>", endpoint="update_user_notification_channel", sends_requests=True)
@api.signed_in
@writers
@api.arguments(schemas.NotificationChannelUpdateSchema)
@api.response(200, schemas.NotificationChannelSchema)
def update_notification_channel(owner: Owner | None, fields: dict[str, Any], channel_id: str) -> NotificationChannel:
    """Change a channel."""
    owner = owner or current_user()
    return _shown(service.update_channel(owner, queries.find_channel(owner, numeric(channel_id)), **fields))


@api.delete(f"{OF_PROJECT}/<channel_id>", endpoint="delete_project_notification_channel")
@api.delete(f"{OF_GROUP}/<channel_id>", endpoint="delete_group_notification_channel")
@api.delete(f"{OF_USER}/<channel_id>", endpoint="delete_user_notification_channel")
@api.signed_in
@writers
@api.response(204)
def delete_notification_channel(owner: Owner | None, channel_id: str) -> None:
    """Delete a channel; what waits for it is dropped."""
    owner = owner or current_user()
    service.delete_channel(owner, unmodified(queries.find_channel(owner, numeric(channel_id))))


@api.post(f"{OF_PROJECT}/<channel_id>/test", endpoint="test_project_notification_channel", sends_requests=True)
@api.post(f"{OF_GROUP}/<channel_id>/test", endpoint="test_group_notification_channel", sends_requests=True)
@api.post(f"{OF_USER}/<channel_id>/test", endpoint="test_user_notification_channel", sends_requests=True)
@api.signed_in
@writers
@api.response(201, schemas.TestedChannelSchema)
def test_notification_channel(owner: Owner | None, channel_id: str) -> dict[str, Any]:
    """Send a test to a channel now."""
    owner = owner or current_user()
    return service.test_channel(owner, queries.find_channel(owner, numeric(channel_id)))


@api.get(LOG_OF_PROJECT, endpoint="list_project_notification_deliveries")
@api.get(LOG_OF_GROUP, endpoint="list_group_notification_deliveries")
@api.get(LOG_OF_USER, endpoint="list_user_notification_deliveries")
@api.signed_in
@readers
@api.arguments(schemas.NotificationDeliveryFilterSchema)
@api.response(200, schemas.NotificationDeliverySchema(many=True))
@api.paged
def list_notification_deliveries(owner: Owner | None, fields: dict[str, Any]) -> WithSchema:
    """List messages, newest first; recipients are shown to those who may change channels."""
    owner = owner or current_user()
    is_full = may_change(owner)
    schema = schemas.FullNotificationDeliverySchema if is_full else schemas.NotificationDeliverySchema
    return WithSchema(schema, queries.deliveries_of(owner, **fields))


@api.post(f"{LOG_OF_PROJECT}/<delivery_id>/resend", endpoint="resend_project_notification_delivery")
@api.post(f"{LOG_OF_GROUP}/<delivery_id>/resend", endpoint="resend_group_notification_delivery")
@api.post(f"{LOG_OF_USER}/<delivery_id>/resend", endpoint="resend_user_notification_delivery")
@api.signed_in
@writers
@api.response(201, schemas.FullNotificationDeliverySchema)
def resend_notification_delivery(owner: Owner | None, delivery_id: str) -> NotificationDelivery:
    """Send a message again."""
    owner = owner or current_user()
    return service.resend(owner, queries.find_delivery(owner, numeric(delivery_id)))


def _shown(channel: NotificationChannel) -> NotificationChannel:
    """Return a channel with its settings, for those who have changed it."""
    channel.shows_settings = True
    return channel
