"""Routes of the pages of channels and messages of projects, groups and users."""

from __future__ import annotations

from typing import Any

from project_service.access import navigation
from project_service.access.abilities import Ability
from project_service.access.identity import current_user
from project_service.access.pages import PageBlueprint
from project_service.areas.notifications.channels import page_views
from project_service.areas.notifications.page_parts import OF_GROUP, OF_PROJECT, OF_USER
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project

pages = PageBlueprint("notification_channel_pages", __name__)
READ, WRITE = Ability.READ_NOTIFICATIONS, Ability.ADMIN_NOTIFICATIONS
READ_GROUP, WRITE_GROUP = Ability.READ_GROUP_NOTIFICATIONS, Ability.ADMIN_GROUP_NOTIFICATIONS
ADDRESS = "/-/settings/notifications"

navigation.add(navigation.NavigationEntry("Notifications", ADDRESS, 86, READ))
navigation.add(navigation.NavigationEntry("Notifications", ADDRESS, 40, READ_GROUP), "group_settings")


@pages.get(OF_PROJECT)
@pages.signed_in
@pages.allow(READ)
def list_project_channel_page(project: Project) -> Any:
    """Show the channels of a project."""
    return page_views.channel_list(project)


@pages.get(f"{OF_PROJECT}/channels/new")
@pages.signed_in
@pages.allow(WRITE)
def new_project_channel(project: Project) -> Any:
    """Show the form of a new channel of a project."""
    return page_views.new_channel(project)


@pages.post(f"{OF_PROJECT}/channels/new")
@pages.signed_in
@pages.allow(WRITE)
def create_project_channel(project: Project) -> Any:
    """Create a channel of a project."""
    return page_views.create_channel(project)


@pages.get(f"{OF_PROJECT}/channels/<int:channel_id>/edit")
@pages.signed_in
@pages.allow(WRITE)
def edit_project_channel(project: Project, channel_id: int) -> Any:
    """Show the form of a channel of a project."""
    return page_views.edit_channel(project, channel_id)


@pages.post(f"{OF_PROJECT}/channels/<int:channel_id>/edit")
@pages.signed_in
@pages.allow(WRITE)
def update_project_channel(project: Project, channel_id: int) -> Any:
    """Change a channel of a project."""
    return page_views.update_channel(project, channel_id)


@pages.post(f"{OF_PROJECT}/channels/<int:channel_id>/test")
@pages.signed_in
@pages.allow(WRITE)
def test_project_channel(project: Project, channel_id: int) -> Any:
    """Send a test to a channel of a project."""
    return page_views.test_channel(project, channel_id)


@pages.get(f"{OF_PROJECT}/channels/<int:channel_id>/delete")
@pages.signed_in
@pages.allow(WRITE)
def ask_delete_project_channel(project: Project, channel_id: int) -> Any:
    """Ask before a channel of a project is deleted."""
    return page_views.ask_delete_channel(project, channel_id)


@pages.post(f"{OF_PROJECT}/channels/<int:channel_id>/delete")
@pages.signed_in
@pages.allow(WRITE)
def delete_project_channel(project: Project, channel_id: int) -> Any:
    """Delete a channel of a project."""
    return page_views.delete_channel(project, channel_id)


@pages.get(f"{OF_PROJECT}/deliveries")
@pages.signed_in
@pages.allow(READ)
def list_project_messages(project: Project) -> Any:
    """Show the messages of a project."""
    return page_views.message_list(project)


@pages.get(f"{OF_PROJECT}/deliveries/<int:delivery_id>")
@pages.signed_in
@pages.allow(READ)
def show_project_message(project: Project, delivery_id: int) -> Any:
    """Show a message of a project."""
    return page_views.message_page(project, delivery_id)


@pages.post(f"{OF_PROJECT}/deliveries/<int:delivery_id>/resend")
@pages.signed_in
@pages.allow(WRITE)
def resend_project_message(project: Project, delivery_id: int) -> Any:
    """Send a message of a project again."""
    return page_views.resend_message(project, delivery_id)


@pages.get(OF_GROUP)
@pages.signed_in
@pages.allow(READ_GROUP)
def list_group_channel_page(group: Group) -> Any:
    """Show the channels of a group."""
    return page_views.channel_list(group)


@pages.get(f"{OF_GROUP}/channels/new")
@pages.signed_in
@pages.allow(WRITE_GROUP)
def new_group_channel(group: Group) -> Any:
    """Show the form of a new channel of a group."""
    return page_views.new_channel(group)


@pages.post(f"{OF_GROUP}/channels/new")
@pages.signed_in
@pages.allow(WRITE_GROUP)
def create_group_channel(group: Group) -> Any:
    """Create a channel of a group."""
    return page_views.create_channel(group)


@pages.get(f"{OF_GROUP}/channels/<int:channel_id>/edit")
@pages.signed_in
@pages.allow(WRITE_GROUP)
def edit_group_channel(group: Group, channel_id: int) -> Any:
    """Show the form of a channel of a group."""
    return page_views.edit_channel(group, channel_id)


@pages.post(f"{OF_GROUP}/channels/<int:channel_id>/edit")
@pages.signed_in
@pages.allow(WRITE_GROUP)
def update_group_channel(group: Group, channel_id: int) -> Any:
    """Change a channel of a group."""
    return page_views.update_channel(group, channel_id)


@pages.post(f"{OF_GROUP}/channels/<int:channel_id>/test")
@pages.signed_in
@pages.allow(WRITE_GROUP)
def test_group_channel(group: Group, channel_id: int) -> Any:
    """Send a test to a channel of a group."""
    return page_views.test_channel(group, channel_id)


@pages.get(f"{OF_GROUP}/channels/<int:channel_id>/delete")
@pages.signed_in
@pages.allow(WRITE_GROUP)
def ask_delete_group_channel(group: Group, channel_id: int) -> Any:
    """Ask before a channel of a group is deleted."""
    return page_views.ask_delete_channel(group, channel_id)


@pages.post(f"{OF_GROUP}/channels/<int:channel_id>/delete")
@pages.signed_in
@pages.allow(WRITE_GROUP)
def delete_group_channel(group: Group, channel_id: int) -> Any:
    """Delete a channel of a group."""
    return page_views.delete_channel(group, channel_id)


@pages.get(f"{OF_GROUP}/deliveries")
@pages.signed_in
@pages.allow(READ_GROUP)
def list_group_messages(group: Group) -> Any:
    """Show the messages of a group."""
    return page_views.message_list(group)


@pages.get(f"{OF_GROUP}/deliveries/<int:delivery_id>")
@pages.signed_in
@pages.allow(READ_GROUP)
def show_group_message(group: Group, delivery_id: int) -> Any:
    """Show a message of a group."""
    return page_views.message_page(group, delivery_id)


@pages.post(f"{OF_GROUP}/deliveries/<int:delivery_id>/resend")
@pages.signed_in
@pages.allow(WRITE_GROUP)
def resend_group_message(group: Group, delivery_id: int) -> Any:
    """Send a message of a group again."""
    return page_views.resend_message(group, delivery_id)


@pages.get(f"{OF_USER}/channels/new")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def new_user_channel() -> Any:
    """Show the form of a new channel of a user."""
    return page_views.new_channel(current_user())


@pages.post(f"{OF_USER}/channels/new")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def create_user_channel() -> Any:
    """Create a channel of a user."""
    return page_views.create_channel(current_user())


@pages.get(f"{OF_USER}/channels/<int:channel_id>/edit")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def edit_user_channel(channel_id: int) -> Any:
    """Show the form of a channel of a user."""
    return page_views.edit_channel(current_user(), channel_id)


@pages.post(f"{OF_USER}/channels/<int:channel_id>/edit")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def update_user_channel(channel_id: int) -> Any:
    """Change a channel of a user."""
    return page_views.update_channel(current_user(), channel_id)


@pages.post(f"{OF_USER}/channels/<int:channel_id>/test")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def test_user_channel(channel_id: int) -> Any:
    """Send a test to a channel of a user."""
    return page_views.test_channel(current_user(), channel_id)


@pages.get(f"{OF_USER}/channels/<int:channel_id>/delete")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def ask_delete_user_channel(channel_id: int) -> Any:
    """Ask before a channel of a user is deleted."""
    return page_views.ask_delete_channel(current_user(), channel_id)


@pages.post(f"{OF_USER}/channels/<int:channel_id>/delete")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def delete_user_channel(channel_id: int) -> Any:
    """Delete a channel of a user."""
    return page_views.delete_channel(current_user(), channel_id)


@pages.get(f"{OF_USER}/deliveries")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def list_user_messages() -> Any:
    """Show the messages of a user."""
    return page_views.message_list(current_user())


@pages.get(f"{OF_USER}/deliveries/<int:delivery_id>")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def show_user_message(delivery_id: int) -> Any:
    """Show a message of a user."""
    return page_views.message_page(current_user(), delivery_id)


@pages.post(f"{OF_USER}/deliveries/<int:delivery_id>/resend")
@pages.signed_in
@pages.allow(Ability.SIGNED_IN)
def resend_user_message(delivery_id: int) -> Any:
    """Send a message of a user again."""
    return page_views.resend_message(current_user(), delivery_id)
