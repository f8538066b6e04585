"""Routes of the pages of channels and messages of projects, groups and users."""

from __future__ import annotations

from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.identity import current_user
from project_service.access.page_parts import navigation
from project_service.access.pages import PageBlueprint
from project_service.areas.notifications.channels import page_views
from project_service.areas.notifications.owners import Owner
from project_service.areas.notifications.page_parts import OF_GROUP, OF_PROJECT, OF_USER

pages = PageBlueprint("notification_channel_pages", __name__)
ADDRESS = "/-/settings/notifications"
readers = pages.allow(
    project=Ability.READ_NOTIFICATIONS, group=Ability.READ_GROUP_NOTIFICATIONS, instance=Ability.SIGNED_IN
)
writers = pages.allow(
    project=Ability.ADMIN_NOTIFICATIONS, group=Ability.ADMIN_GROUP_NOTIFICATIONS, instance=Ability.SIGNED_IN
)

navigation.add(navigation.NavigationEntry("Notifications", ADDRESS, 86, Ability.READ_NOTIFICATIONS))
navigation.add(
    navigation.NavigationEntry("Notifications", ADDRESS, 40, Ability.READ_GROUP_NOTIFICATIONS), "group_settings"
)


@pages.get(OF_PROJECT, endpoint="list_project_channel_page")
@pages.get(OF_GROUP, endpoint="list_group_channel_page")
@pages.signed_in
@readers
def list_channel_page(owner: Owner | None) -> ResponseReturnValue:
    """Show channels."""
    return page_views.channel_list(owner or current_user())


@pages.get(f"{OF_PROJECT}/channels/new", endpoint="new_project_channel")
@pages.get(f"{OF_GROUP}/channels/new", endpoint="new_group_channel")
@pages.get(f"{OF_USER}/channels/new", endpoint="new_user_channel")
@pages.signed_in
@writers
def new_channel(owner: Owner | None) -> ResponseReturnValue:
    """Show the form of a new channel."""
    return page_views.new_channel(owner or current_user())


@pages.post(f"{OF_PROJECT}/channels/new", endpoint="create_project_channel", sends_requests=True)
@pages.post(f"{OF_GROUP}/channels/new", endpoint="create_group_channel", sends_requests=True)
@pages.post(f"{OF_USER}/channels/new", endpoint="create_user_channel", sends_requests=True)
@pages.signed_in
@writers
def create_channel(owner: Owner | None) -> ResponseReturnValue:
    """Create a channel."""
    return page_views.create_channel(owner or current_user())


@pages.get(f"{OF_PROJECT}/channels/<int:channel_id>/edit", endpoint="edit_project_channel")
@pages.get(f"{OF_GROUP}/channels/<int:channel_id>/edit", endpoint="edit_group_channel")
@pages.get(f"{OF_USER}/channels/<int:channel_id>/edit", endpoint="edit_user_channel")
@pages.signed_in
@writers
def edit_channel(owner: Owner | None, channel_id: int) -> ResponseReturnValue:
    """Show the form of a channel."""
    return page_views.edit_channel(owner or current_user(), channel_id)


@pages.post(f"{OF_PROJECT}/channels/<int:channel_id>/edit", endpoint="update_project_channel", sends_requests=True)
@pages.post(f"{OF_GROUP}/channels/<int:channel_id>/edit", endpoint="update_group_channel", sends_requests=True)
@pages.post(f"{OF_USER}/channels/<int:channel_id>/edit", endpoint="update_user_channel", sends_requests=True)
@pages.signed_in
@writers
def update_channel(owner: Owner | None, channel_id: int) -> ResponseReturnValue:
    """Change a channel."""
    return page_views.update_channel(owner or current_user(), channel_id)


@pages.post(f"{OF_PROJECT}/channels/<int:channel_id>/test", endpoint="test_project_channel", sends_requests=True)
@pages.post(f"{OF_GROUP}/channels/<int:channel_id>/test", endpoint="test_group_channel", sends_requests=True)
@pages.post(f"{OF_USER}/channels/<int:channel_id>/test", endpoint="test_user_channel", sends_requests=True)
@pages.signed_in
@writers
def send_test_channel(owner: Owner | None, channel_id: int) -> ResponseReturnValue:
    """Send a test to a channel."""
    return page_views.test_channel(owner or current_user(), channel_id)


@pages.get(f"{OF_PROJECT}/channels/<int:channel_id>/delete", endpoint="ask_delete_project_channel")
@pages.get(f"{OF_GROUP}/channels/<int:channel_id>/delete", endpoint="ask_delete_group_channel")
@pages.get(f"{OF_USER}/channels/<int:channel_id>/delete", endpoint="ask_delete_user_channel")
@pages.signed_in
@writers
def ask_delete_channel(owner: Owner | None, channel_id: int) -> ResponseReturnValue:
    """Ask before a channel is deleted."""
    return page_views.ask_delete_channel(owner or current_user(), channel_id)


@pages.post(f"{OF_PROJECT}/channels/<int:channel_id>/delete", endpoint="delete_project_channel")
@pages.post(f"{OF_GROUP}/channels/<int:channel_id>/delete", endpoint="delete_group_channel")
@pages.post(f"{OF_USER}/channels/<int:channel_id>/delete", endpoint="delete_user_channel")
@pages.signed_in
@writers
def delete_channel(owner: Owner | None, channel_id: int) -> ResponseReturnValue:
    """Delete a channel."""
    return page_views.delete_channel(owner or current_user(), channel_id)


@pages.get(f"{OF_PROJECT}/deliveries", endpoint="list_project_messages")
@pages.get(f"{OF_GROUP}/deliveries", endpoint="list_group_messages")
@pages.get(f"{OF_USER}/deliveries", endpoint="list_user_messages")
@pages.signed_in
@readers
def list_messages(owner: Owner | None) -> ResponseReturnValue:
    """Show messages."""
    return page_views.message_list(owner or current_user())


@pages.get(f"{OF_PROJECT}/deliveries/<int:delivery_id>", endpoint="show_project_message")
@pages.get(f"{OF_GROUP}/deliveries/<int:delivery_id>", endpoint="show_group_message")
@pages.get(f"{OF_USER}/deliveries/<int:delivery_id>", endpoint="show_user_message")
@pages.signed_in
@readers
def show_message(owner: Owner | None, delivery_id: int) -> ResponseReturnValue:
    """Show a message."""
    return page_views.message_page(owner or current_user(), delivery_id)


@pages.post(f"{OF_PROJECT}/deliveries/<int:delivery_id>/resend", endpoint="resend_project_message")
@pages.post(f"{OF_GROUP}/deliveries/<int:delivery_id>/resend", endpoint="resend_group_message")
@pages.post(f"{OF_USER}/deliveries/<int:delivery_id>/resend", endpoint="resend_user_message")
@pages.signed_in
@writers
def resend_message(owner: Owner | None, delivery_id: int) -> ResponseReturnValue:
    """Send a message again."""
    return page_views.resend_message(owner or current_user(), delivery_id)
