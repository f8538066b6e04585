"""The blueprints of all areas, and the pages at full paths: with ``factory`` the only module that knows every area."""

from __future__ import annotations

from flask import g
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, judge
from project_service.access.identity import caller
from project_service.access.pages import PageBlueprint
from project_service.areas.accounts import routes as accounts
from project_service.areas.accounts.administration import pages as accounts_admin
from project_service.areas.accounts.profile import pages as profile_pages
from project_service.areas.accounts.sign_in import pages as sign_in_pages
from project_service.areas.accounts.sign_in import password_pages, two_factor_pages
from project_service.areas.accounts.tokens import pages as token_pages
from project_service.areas.accounts.tokens import resource_token_pages
from project_service.areas.accounts.tokens import resource_token_routes as resource_tokens
from project_service.areas.activity import pages as activity_pages
from project_service.areas.activity import routes as activity
from project_service.areas.alerts.alerts import home as alerts_home
from project_service.areas.alerts.alerts import list_pages as alert_list_pages
from project_service.areas.alerts.alerts import pages as alerts_pages
from project_service.areas.alerts.alerts import routes as alerts
from project_service.areas.alerts.integrations import pages as alerts_settings
from project_service.areas.alerts.integrations import request_pages as alerts_requests
from project_service.areas.alerts.integrations import routes as alert_integrations
from project_service.areas.alerts.statistics import statistics_pages as alert_statistics_pages
from project_service.areas.audit import pages as audit_pages
from project_service.areas.audit import routes as audit
from project_service.areas.avatars import pages as avatar_pages
from project_service.areas.avatars import routes as avatars
from project_service.areas.environments import pages as environments_pages
from project_service.areas.environments import routes as environments
from project_service.areas.error_tracking.effects import home as errors_home
from project_service.areas.error_tracking.errors import comment_pages as error_comment_pages
from project_service.areas.error_tracking.errors import pages as error_pages
from project_service.areas.error_tracking.errors import routes as error_routes
from project_service.areas.error_tracking.events import event_pages as error_event_pages
from project_service.areas.error_tracking.releases import pages as error_release_pages
from project_service.areas.error_tracking.releases import routes as error_release_routes
from project_service.areas.error_tracking.settings import pages as error_tracking_pages
from project_service.areas.error_tracking.settings import routes as error_tracking
from project_service.areas.groups import admin_pages as group_admin_pages
from project_service.areas.groups import lookup_routes as group_lookups
from project_service.areas.groups import pages as groups_pages
from project_service.areas.groups import routes as groups
from project_service.areas.groups import settings_pages as groups_settings
from project_service.areas.heartbeats import pages as heartbeat_pages
from project_service.areas.heartbeats import routes as heartbeats
from project_service.areas.instance import overview_pages, styleguide
from project_service.areas.instance import pages as instance_pages
from project_service.areas.instance import routes as instance
from project_service.areas.issues import across_routes
from project_service.areas.issues import home as issues_home
from project_service.areas.issues import list_pages as issue_list_pages
from project_service.areas.issues import pages as issues_pages
from project_service.areas.issues import routes as issues
from project_service.areas.issues.discussions import routes as discussions
from project_service.areas.issues.label_events import panel as issue_label_events_panel
from project_service.areas.issues.label_events import routes as issue_label_events
from project_service.areas.issues.links import pages as issue_link_pages
from project_service.areas.issues.links import routes as issue_links
from project_service.areas.labels import pages as label_pages
from project_service.areas.labels import routes as labels
from project_service.areas.members import invitation_pages, invitation_routes
from project_service.areas.members import pages as members_pages
from project_service.areas.members import routes as members
from project_service.areas.merge_requests import pages as merge_requests_pages
from project_service.areas.merge_requests import routes as merge_requests
from project_service.areas.milestones import pages as milestones_pages
from project_service.areas.milestones import routes as milestones
from project_service.areas.namespaces import routes as namespaces
from project_service.areas.notifications import project_panels as notification_panels
from project_service.areas.notifications import timeline as notification_timeline
from project_service.areas.notifications.actions import pages as notification_actions
from project_service.areas.notifications.actions import unsubscribing as notification_unsubscribing
from project_service.areas.notifications.channels import confirmation_pages as notification_links
from project_service.areas.notifications.channels import pages as notification_channel_pages
from project_service.areas.notifications.channels import routes as notification_channels
from project_service.areas.notifications.personal import pages as notification_setting_pages
from project_service.areas.notifications.personal import routes as notification_settings
from project_service.areas.notifications.rules import pages as notification_rule_pages
from project_service.areas.notifications.rules import routes as notification_rules
from project_service.areas.projects import admin_pages as project_admin_pages
from project_service.areas.projects import home_pages
from project_service.areas.projects import pages as projects_pages
from project_service.areas.projects import routes as projects
from project_service.areas.projects import settings_pages as projects_settings
from project_service.areas.protected_refs import pages as protected_ref_pages
from project_service.areas.protected_refs import routes as protected_refs
from project_service.areas.repositories.content import commit_routes, compare_pages, file_pages, file_routes
from project_service.areas.repositories.content import overview_pages as repository_overview_pages
from project_service.areas.repositories.content import pages as repositories_pages
from project_service.areas.repositories.content import routes as content_routes
from project_service.areas.repositories.refs import pages as ref_pages
from project_service.areas.repositories.refs import routes as ref_routes
from project_service.areas.repositories.releases import pages as release_pages
from project_service.areas.repositories.releases import routes as release_routes
from project_service.areas.repositories.writing import pages as writing_pages
from project_service.areas.repositories.writing import routes as writing_routes
from project_service.areas.search import pages as search_pages
from project_service.areas.search import routes as search
from project_service.areas.silences import pages as silence_pages
from project_service.areas.silences import routes as silences
from project_service.areas.todos import home as todos_home
from project_service.areas.todos import pages as todo_pages
from project_service.areas.todos import routes as todos
from project_service.areas.uploads import pages as upload_pages
from project_service.areas.uploads import routes as uploads
from project_service.areas.variables import pages as variables_pages
from project_service.areas.variables import routes as variables
from project_service.areas.variables.effective import pages as effective_variable_pages
from project_service.areas.variables.effective import routes as effective_variables
from project_service.areas.vulnerabilities.findings import home as findings_home
from project_service.areas.vulnerabilities.findings import list_pages as vulnerabilities_lists
from project_service.areas.vulnerabilities.findings import pages as vulnerabilities_pages
from project_service.areas.vulnerabilities.findings import routes as vulnerabilities
from project_service.areas.webhooks import pages as web_hook_pages
from project_service.areas.webhooks import routes as web_hooks
from project_service.domain.accounts.users import user_named
from project_service.domain.namespaces import Group
from project_service.domain.paths.path_registry import find_by_path
from project_service.domain.projects import Project
from project_service.domain.repositories import maintenance
from project_service.kit.http.errors import UnknownRoute
from project_service.transfers import home as transfers_home
from project_service.transfers import pages as transfers_pages
from project_service.transfers import routes as transfers

full_path_pages = PageBlueprint("addresses", __name__)


@full_path_pages.get("/<path:full_path>", reads_repository=True)
@full_path_pages.allow(Ability.ANYBODY)
def show_full_path(full_path: str) -> ResponseReturnValue:
    """Show the user, group or project of a full path to callers who may see it."""
    project_or_namespace = find_by_path(full_path.strip("/"))
    if isinstance(project_or_namespace, Project):
        judge(caller(), Ability.READ_PROJECT, project_or_namespace)
        g.subject = project_or_namespace
        return projects_pages.show_project(project_or_namespace)
    if isinstance(project_or_namespace, Group):
        judge(caller(), Ability.READ_GROUP, project_or_namespace)
        return groups_pages.show_group(project_or_namespace)
    # bots, which notes and events name as their authors, have no namespace
    user = user_named(full_path) if project_or_namespace is None else project_or_namespace.owner
    if user is None:
        raise UnknownRoute
    return profile_pages.show_user(user)


APIS = (
    accounts.api,
    resource_tokens.api,
    groups.api,
    group_lookups.api,
    transfers.api,
    projects.api,
    alerts.api,
    alert_integrations.api,
    heartbeats.api,
    silences.api,
    members.api,
    invitation_routes.api,
    variables.api,
    effective_variables.api,
    variables.inherited_api,
    protected_refs.branches,
    protected_refs.tags,
    content_routes.api,
    commit_routes.api,
    file_routes.api,
    ref_routes.api,
    writing_routes.api,
    release_routes.api,
    error_tracking.api,
    error_routes.api,
    error_release_routes.api,
    namespaces.api,
    activity.api,
    issues.api,
    discussions.api,
    issue_label_events.api,
    issue_links.api,
    across_routes.api,
    milestones.api,
    milestones.group_api,
    merge_requests.api,
    labels.api,
    labels.group_api,
    environments.api,
    vulnerabilities.api,
    web_hooks.api,
    search.api,
    todos.api,
    uploads.api,
    notification_channels.api,
    notification_rules.api,
    notification_settings.api,
    avatars.api,
    audit.api,
    instance.api,
)
PAGES = (
    sign_in_pages.sessions,
    token_pages.pages,
    password_pages.pages,
    two_factor_pages.pages,
    profile_pages.pages,
    accounts_admin.pages,
    groups_settings.pages,
    groups_pages.pages,
    home_pages.pages,
    projects_pages.pages,
    projects_settings.pages,
    members_pages.pages,
    invitation_pages.pages,
    resource_token_pages.pages,
    variables_pages.pages,
    effective_variable_pages.pages,
    error_tracking_pages.pages,
    error_pages.pages,
    error_event_pages.pages,
    error_comment_pages.pages,
    error_release_pages.pages,
    protected_ref_pages.pages,
    repositories_pages.pages,
    repository_overview_pages.pages,
    file_pages.pages,
    writing_pages.pages,
    ref_pages.pages,
    release_pages.pages,
    compare_pages.pages,
    issue_list_pages.pages,
    issues_pages.pages,
    issue_link_pages.pages,
    merge_requests_pages.pages,
    milestones_pages.pages,
    label_pages.pages,
    alerts_pages.pages,
    alert_list_pages.pages,
    alert_statistics_pages.pages,
    alerts_settings.pages,
    alerts_requests.pages,
    todo_pages.pages,
    upload_pages.pages,
    avatar_pages.pages,
    search_pages.pages,
    heartbeat_pages.pages,
    silence_pages.pages,
    notification_actions.pages,
    environments_pages.pages,
    vulnerabilities_lists.list_pages,
    vulnerabilities_pages.pages,
    transfers_pages.pages,
    web_hook_pages.pages,
    overview_pages.pages,
    project_admin_pages.pages,
    group_admin_pages.pages,
    notification_channel_pages.pages,
    notification_rule_pages.pages,
    notification_setting_pages.pages,
    notification_links.pages,
    instance_pages.pages,
    styleguide.pages,
    audit_pages.pages,
    full_path_pages,
)
# loaded for what they register; modules called ``jobs``, ``search_scope`` or ``todo_target`` are found by their names
LOADED = (
    *(activity_pages, maintenance, alerts_home, errors_home, findings_home, issues_home, todos_home, transfers_home),
    notification_timeline,
    issue_label_events_panel,
    notification_panels,
    notification_unsubscribing,
)
