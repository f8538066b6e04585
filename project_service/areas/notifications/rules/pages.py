"""Routes of the pages of rules of projects and groups."""

from __future__ import annotations

from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.pages import PageBlueprint
from project_service.areas.notifications.page_parts import OF_GROUP, OF_PROJECT
from project_service.areas.notifications.rules import page_views
from project_service.areas.notifications.rules.page_views import RuleOwner
from project_service.domain.projects import Project

pages = PageBlueprint("notification_rule_pages", __name__)
readers = pages.allow(project=Ability.READ_NOTIFICATIONS, group=Ability.READ_GROUP_NOTIFICATIONS)
writers = pages.allow(project=Ability.ADMIN_NOTIFICATIONS, group=Ability.ADMIN_GROUP_NOTIFICATIONS)


@pages.get(f"{OF_PROJECT}/rules/replay")
@pages.signed_in
@pages.allow(Ability.READ_NOTIFICATIONS)
def replay_project_rules(project: Project) -> ResponseReturnValue:
    """Show which messages the stored alerts of a project would have been."""
    return page_views.replay_page(project)


@pages.get(f"{OF_PROJECT}/rules", endpoint="list_project_rule_page")
@pages.get(f"{OF_GROUP}/rules", endpoint="list_group_rule_page")
@pages.signed_in
@readers
def list_rule_page(owner: RuleOwner) -> ResponseReturnValue:
    """Show rules."""
    return page_views.rule_list(owner)


@pages.get(f"{OF_PROJECT}/rules/new", endpoint="new_project_rule")
@pages.get(f"{OF_GROUP}/rules/new", endpoint="new_group_rule")
@pages.signed_in
@writers
def new_rule(owner: RuleOwner) -> ResponseReturnValue:
    """Show the form of a new rule."""
    return page_views.new_rule(owner)


@pages.post(f"{OF_PROJECT}/rules/new", endpoint="create_project_rule")
@pages.post(f"{OF_GROUP}/rules/new", endpoint="create_group_rule")
@pages.signed_in
@writers
def create_rule(owner: RuleOwner) -> ResponseReturnValue:
    """Create a rule."""
    return page_views.create_rule(owner)


@pages.post(f"{OF_PROJECT}/rules/starter", endpoint="create_project_starter_rule")
@pages.post(f"{OF_GROUP}/rules/starter", endpoint="create_group_starter_rule")
@pages.signed_in
@writers
def create_starter_rule(owner: RuleOwner) -> ResponseReturnValue:
    """Create the rule that mails maintainers."""
    return page_views.create_starter(owner)


@pages.get(f"{OF_PROJECT}/rules/<int:notification_rule_id>/edit", endpoint="edit_project_rule")
@pages.get(f"{OF_GROUP}/rules/<int:notification_rule_id>/edit", endpoint="edit_group_rule")
@pages.signed_in
@writers
def edit_rule(owner: RuleOwner, notification_rule_id: int) -> ResponseReturnValue:
    """Show the form of a rule."""
    return page_views.edit_rule(owner, notification_rule_id)


@pages.post(f"{OF_PROJECT}/rules/<int:notification_rule_id>/edit", endpoint="update_project_rule")
@pages.post(f"{OF_GROUP}/rules/<int:notification_rule_id>/edit", endpoint="update_group_rule")
@pages.signed_in
@writers
def update_rule(owner: RuleOwner, notification_rule_id: int) -> ResponseReturnValue:
    """Change a rule."""
    return page_views.update_rule(owner, notification_rule_id)


@pages.post(f"{OF_PROJECT}/rules/<int:notification_rule_id>/toggle", endpoint="toggle_project_rule")
@pages.post(f"{OF_GROUP}/rules/<int:notification_rule_id>/toggle", endpoint="toggle_group_rule")
@pages.signed_in
@writers
def toggle_rule(owner: RuleOwner, notification_rule_id: int) -> ResponseReturnValue:
    """Switch a rule on or off."""
    return page_views.toggle_rule(owner, notification_rule_id)


@pages.get(f"{OF_PROJECT}/rules/<int:notification_rule_id>/delete", endpoint="ask_delete_project_rule")
@pages.get(f"{OF_GROUP}/rules/<int:notification_rule_id>/delete", endpoint="ask_delete_group_rule")
@pages.signed_in
@writers
def ask_delete_rule(owner: RuleOwner, notification_rule_id: int) -> ResponseReturnValue:
    """Ask before a rule is deleted."""
    return page_views.ask_delete_rule(owner, notification_rule_id)


@pages.post(f"{OF_PROJECT}/rules/<int:notification_rule_id>/delete", endpoint="delete_project_rule")
@pages.post(f"{OF_GROUP}/rules/<int:notification_rule_id>/delete", endpoint="delete_group_rule")
@pages.signed_in
@writers
def delete_rule(owner: RuleOwner, notification_rule_id: int) -> ResponseReturnValue:
    """Delete a rule."""
    return page_views.delete_rule(owner, notification_rule_id)
