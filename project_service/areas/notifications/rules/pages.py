"""Routes of the pages of rules of projects and groups."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability
from project_service.access.pages import PageBlueprint
from project_service.areas.notifications.page_parts import OF_GROUP, OF_PROJECT
from project_service.areas.notifications.rules import page_views
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project

pages = PageBlueprint("notification_rule_pages", __name__)
READ, WRITE = Ability.READ_NOTIFICATIONS, Ability.ADMIN_NOTIFICATIONS
READ_GROUP, WRITE_GROUP = Ability.READ_GROUP_NOTIFICATIONS, Ability.ADMIN_GROUP_NOTIFICATIONS


@pages.get(f"{OF_PROJECT}/rules/replay")
@pages.signed_in
@pages.allow(READ)
def replay_project_rules(project: Project) -> Any:
    """Show which messages the stored alerts of a project would have been."""
    return page_views.replay_page(project)


@pages.get(f"{OF_PROJECT}/rules")
@pages.signed_in
@pages.allow(READ)
def list_project_rule_page(project: Project) -> Any:
    """Show the rules of a project."""
    return page_views.rule_list(project)


@pages.get(f"{OF_PROJECT}/rules/new")
@pages.signed_in
@pages.allow(WRITE)
def new_project_rule(project: Project) -> Any:
    """Show the form of a new rule of a project."""
    return page_views.new_rule(project)


@pages.post(f"{OF_PROJECT}/rules/new")
@pages.signed_in
@pages.allow(WRITE)
def create_project_rule(project: Project) -> Any:
    """Create a rule of a project."""
    return page_views.create_rule(project)


@pages.post(f"{OF_PROJECT}/rules/starter")
@pages.signed_in
@pages.allow(WRITE)
def create_project_starter_rule(project: Project) -> Any:
    """Create the rule that mails maintainers of a project."""
    return page_views.create_starter(project)


@pages.get(f"{OF_PROJECT}/rules/<int:notification_rule_id>/edit")
@pages.signed_in
@pages.allow(WRITE)
def edit_project_rule(project: Project, notification_rule_id: int) -> Any:
    """Show the form of a rule of a project."""
    return page_views.edit_rule(project, notification_rule_id)


@pages.post(f"{OF_PROJECT}/rules/<int:notification_rule_id>/edit")
@pages.signed_in
@pages.allow(WRITE)
def update_project_rule(project: Project, notification_rule_id: int) -> Any:
    """Change a rule of a project."""
    return page_views.update_rule(project, notification_rule_id)


@pages.post(f"{OF_PROJECT}/rules/<int:notification_rule_id>/toggle")
@pages.signed_in
@pages.allow(WRITE)
def toggle_project_rule(project: Project, notification_rule_id: int) -> Any:
    """Switch a rule of a project on or off."""
    return page_views.toggle_rule(project, notification_rule_id)


@pages.get(f"{OF_PROJECT}/rules/<int:notification_rule_id>/delete")
@pages.signed_in
@pages.allow(WRITE)
def ask_delete_project_rule(project: Project, notification_rule_id: int) -> Any:
    """Ask before a rule of a project is deleted."""
    return page_views.ask_delete_rule(project, notification_rule_id)


@pages.post(f"{OF_PROJECT}/rules/<int:notification_rule_id>/delete")
@pages.signed_in
@pages.allow(WRITE)
def delete_project_rule(project: Project, notification_rule_id: int) -> Any:
    """Delete a rule of a project."""
    return page_views.delete_rule(project, notification_rule_id)


@pages.get(f"{OF_GROUP}/rules")
@pages.signed_in
@pages.allow(READ_GROUP)
def list_group_rule_page(group: Group) -> Any:
    """Show the rules of a group."""
    return page_views.rule_list(group)


@pages.get(f"{OF_GROUP}/rules/new")
@pages.signed_in
@pages.allow(WRITE_GROUP)
def new_group_rule(group: Group) -> Any:
    """Show the form of a new rule of a group."""
    return page_views.new_rule(group)


@pages.post(f"{OF_GROUP}/rules/new")
@pages.signed_in
@pages.allow(WRITE_GROUP)
def create_group_rule(group: Group) -> Any:
    """Create a rule of a group."""
    return page_views.create_rule(group)


@pages.post(f"{OF_GROUP}/rules/starter")
@pages.signed_in
@pages.allow(WRITE_GROUP)
def create_group_starter_rule(group: Group) -> Any:
    """Create the rule that mails maintainers of a group."""
    return page_views.create_starter(group)


@pages.get(f"{OF_GROUP}/rules/<int:notification_rule_id>/edit")
@pages.signed_in
@pages.allow(WRITE_GROUP)
def edit_group_rule(group: Group, notification_rule_id: int) -> Any:
    """Show the form of a rule of a group."""
    return page_views.edit_rule(group, notification_rule_id)


@pages.post(f"{OF_GROUP}/rules/<int:notification_rule_id>/edit")
@pages.signed_in
@pages.allow(WRITE_GROUP)
def update_group_rule(group: Group, notification_rule_id: int) -> Any:
    """Change a rule of a group."""
    return page_views.update_rule(group, notification_rule_id)


@pages.post(f"{OF_GROUP}/rules/<int:notification_rule_id>/toggle")
@pages.signed_in
@pages.allow(WRITE_GROUP)
def toggle_group_rule(group: Group, notification_rule_id: int) -> Any:
    """Switch a rule of a group on or off."""
    return page_views.toggle_rule(group, notification_rule_id)


@pages.get(f"{OF_GROUP}/rules/<int:notification_rule_id>/delete")
@pages.signed_in
@pages.allow(WRITE_GROUP)
def ask_delete_group_rule(group: Group, notification_rule_id: int) -> Any:
    """Ask before a rule of a group is deleted."""
    return page_views.ask_delete_rule(group, notification_rule_id)


@pages.post(f"{OF_GROUP}/rules/<int:notification_rule_id>/delete")
@pages.signed_in
@pages.allow(WRITE_GROUP)
def delete_group_rule(group: Group, notification_rule_id: int) -> Any:
    """Delete a rule of a group."""
    return page_views.delete_rule(group, notification_rule_id)
