"""The application factory, the only module that knows every area."""

from __future__ import annotations

import importlib
import os
import pkgutil
from pathlib import Path
from typing import Any

import redis
import structlog
from flask import Flask, Response, current_app, g, request
from flask.globals import request_ctx
from werkzeug.exceptions import MethodNotAllowed, NotFound

from project_service import areas
from project_service.access import navigation, openapi, saved_messages
from project_service.access.abilities import Ability, judge
from project_service.access.api import before_options, method_not_allowed
from project_service.access.identity import caller
from project_service.access.pages import CookieSessions, PageBlueprint, csrf, error_page, is_for_programs, sign_with
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
from project_service.areas.alerts.alerts import acknowledging, incidents, silencing
from project_service.areas.alerts.alerts import home as alerts_home
from project_service.areas.alerts.alerts import list_pages as alert_list_pages
from project_service.areas.alerts.alerts import pages as alerts_pages
from project_service.areas.alerts.alerts import routes as alerts
from project_service.areas.alerts.alerts import statistics_pages as alert_statistics_pages
from project_service.areas.alerts.integrations import pages as alerts_settings
from project_service.areas.alerts.integrations import request_pages as alerts_requests
from project_service.areas.alerts.integrations import routes as alert_integrations
from project_service.areas.alerts.receivers import delivery_log, own_reports
from project_service.areas.alerts.receivers.routes import receivers
from project_service.areas.audit import pages as audit_pages
from project_service.areas.audit import routes as audit
from project_service.areas.avatars import pages as avatar_pages
from project_service.areas.avatars import routes as avatars
from project_service.areas.environments import pages as environments_pages
from project_service.areas.environments import routes as environments
from project_service.areas.error_tracking.collection.collector import collector
from project_service.areas.error_tracking.errors import comment_pages as error_comment_pages
from project_service.areas.error_tracking.errors import event_pages as error_event_pages
from project_service.areas.error_tracking.errors import home as errors_home
from project_service.areas.error_tracking.errors import pages as error_pages
from project_service.areas.error_tracking.errors import routes as error_routes
from project_service.areas.error_tracking.releases import pages as error_release_pages
from project_service.areas.error_tracking.releases import routes as error_release_routes
from project_service.areas.error_tracking.releases.sentry_api import sentry_api
from project_service.areas.error_tracking.settings import pages as error_tracking_pages
from project_service.areas.error_tracking.settings import routes as error_tracking
from project_service.areas.groups import admin_pages as group_admin_pages
from project_service.areas.groups import lookup_routes as group_lookups
from project_service.areas.groups import pages as groups_pages
from project_service.areas.groups import routes as groups
from project_service.areas.groups import settings_pages as groups_settings
from project_service.areas.heartbeats import pages as heartbeat_pages
from project_service.areas.heartbeats import routes as heartbeats
from project_service.areas.heartbeats.call_receiver import calls
from project_service.areas.instance import overview_pages, styleguide
from project_service.areas.instance import pages as instance_pages
from project_service.areas.instance import routes as instance
from project_service.areas.instance.probes import probes
from project_service.areas.issues import across_routes
from project_service.areas.issues import home as issues_home
from project_service.areas.issues import list_pages as issue_list_pages
from project_service.areas.issues import pages as issues_pages
from project_service.areas.issues import routes as issues
from project_service.areas.labels import routes as labels
from project_service.areas.members import invitation_pages
from project_service.areas.members import pages as members_pages
from project_service.areas.members import routes as members
from project_service.areas.merge_requests import pages as merge_requests_pages
from project_service.areas.merge_requests import routes as merge_requests
from project_service.areas.milestones import pages as milestones_pages
from project_service.areas.milestones import routes as milestones
from project_service.areas.namespaces import routes as namespaces
from project_service.areas.notifications import timeline as notification_timeline
from project_service.areas.notifications.actions import pages as notification_actions
from project_service.areas.notifications.channels import confirmation_pages as notification_links
from project_service.areas.notifications.channels import pages as notification_channel_pages
from project_service.areas.notifications.channels import routes as notification_channels
from project_service.areas.notifications.personal import pages as notification_setting_pages
from project_service.areas.notifications.personal import routes as notification_settings
from project_service.areas.notifications.routing import holding as notification_holding
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
from project_service.areas.repositories.transport.git_http import git_http
from project_service.areas.repositories.transport.go_get import go_get
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
from project_service.areas.webhooks import sender as web_hook_sender
from project_service.domain import alert_actions, hook_events, own_alerts
from project_service.domain.namespaces import Group
from project_service.domain.path_registry import find_by_path
from project_service.domain.projects import Project
from project_service.domain.repositories import maintenance
from project_service.domain.silences import holding as silence_holding
from project_service.domain.tracker.signals import issue_closed
from project_service.kit import logs, markdown, metrics
from project_service.kit.db import session
from project_service.kit.http import responses
from project_service.kit.http.errors import Unavailable, UnknownRoute
from project_service.kit.http.proxies import TrustedProxies
from project_service.kit.http.urls import API, RawPaths, Segment
from project_service.kit.http.view_admission import MAX_BODY_BYTES, ViewAdmission
from project_service.kit.security import encryption, key_ring
from project_service.kit.storage import open_storage
from project_service.settings import Settings
from project_service.transfers import home as transfers_home
from project_service.transfers import pages as transfers_pages
from project_service.transfers import routes as transfers

full_path_pages = PageBlueprint("addresses", __name__)


@full_path_pages.get("/<path:full_path>", reads_repository=True)
@full_path_pages.allow(Ability.ANYBODY)
def show_full_path(full_path: str) -> Any:
    """Show the user, group or project of a full path to callers who may see it."""
    project_or_namespace = find_by_path(full_path.strip("/"))
    if isinstance(project_or_namespace, Project):
        judge(caller(), Ability.READ_PROJECT, project_or_namespace)
        g.subject = project_or_namespace
        return projects_pages.show_project(project_or_namespace)
    if isinstance(project_or_namespace, Group):
        judge(caller(), Ability.READ_GROUP, project_or_namespace)
        return groups_pages.show_group(project_or_namespace)
    if project_or_namespace is None or project_or_namespace.owner is None:
        raise UnknownRoute
    return profile_pages.show_user(project_or_namespace.owner)


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
    across_routes.api,
    milestones.api,
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
    ref_pages.pages,
    release_pages.pages,
    compare_pages.pages,
    issue_list_pages.pages,
    issues_pages.pages,
    merge_requests_pages.pages,
    milestones_pages.pages,
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
)
REDIS_TIMEOUT_SECONDS = 3

log = structlog.get_logger(__name__)


def create_app(settings: Settings | None = None) -> responses.Application:
    """Create the application with these settings, by default those of the environment."""
    settings = settings or Settings.from_environment()
    logs.configure(settings.log_level, settings.log_format)
    _import_registrations()
    os.umask(0o077)  # databases, files and sockets are accessible to this user only
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    app = responses.Application(
        "project_service", template_folder=str(_folder("templates")), static_folder=str(_folder("static"))
    )
    app.session_interface = CookieSessions()
    _configure(app, settings)
    session.init_app(app, settings)
    app.extensions["redis"] = redis.Redis.from_url(
        settings.redis_url, socket_timeout=REDIS_TIMEOUT_SECONDS, socket_connect_timeout=REDIS_TIMEOUT_SECONDS
    )
    app.extensions["application"] = app  # for threads, which have no current one
    app.extensions["storage"] = open_storage(settings)
    csrf.init_app(app)
    app.before_request(responses.before_request)
    app.before_request(_use_keys)
    app.before_request(before_options)
    app.after_request(responses.after_request)
    app.teardown_request(_close_uploads)
    app.register_error_handler(Exception, _handle)
    app.register_blueprint(probes)
    openapi.init_app(app, APIS)
    navigation.init_app(app)
    saved_messages.init_app(app)
    markdown.init_app(app.jinja_env)
    delivery_log.init_app(app)
    app.register_blueprint(receivers)
    app.register_blueprint(calls)
    app.register_blueprint(notification_actions.actions)
    app.register_blueprint(git_http)
    app.register_blueprint(go_get)
    app.register_blueprint(collector)
    app.register_blueprint(sentry_api)
    issue_closed.connect(incidents.on_issue_closed)
    silence_holding.begun.connect(silencing.on_silence_begun)
    silence_holding.ended.connect(silencing.on_silence_ended)
    notification_holding.add_holder(silence_holding.held)
    alert_actions.acknowledged.connect(acknowledging.on_acknowledgement)
    own_alerts.reported.connect(own_reports.on_report)
    hook_events.happened.connect(web_hook_sender.on_event)
    hook_events.happened_together.connect(web_hook_sender.on_events)
    hook_events.asked.connect(web_hook_sender.on_question)
    for pages in PAGES:
        app.register_blueprint(pages)
    endings = _endings(app)
    proxies = TrustedProxies(RawPaths(app.wsgi_app, endings), settings.trusted_proxies)
    app.admission = ViewAdmission(app, proxies, endings)
    app.wsgi_app = proxies  # type: ignore[method-assign]  # Flask documents this
    return app


def _configure(app: responses.Application, settings: Settings) -> None:
    keyring = key_ring.init(settings)
    secure = (settings.external_url or "").startswith("https://")
    app.config.update(
        SETTINGS=settings,
        EXTERNAL_URL=settings.external_url,
        METRICS_TOKEN=settings.metrics_token,
        SECRET_KEY=keyring.signing_key,
        SECRET_KEY_FALLBACKS=keyring.signing_key_fallbacks,
        SESSION_COOKIE_NAME="__Host-project_service" if secure else "project_service",
        SESSION_COOKIE_SECURE=secure,
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        MAX_CONTENT_LENGTH=MAX_BODY_BYTES,
        MAX_FORM_MEMORY_SIZE=MAX_BODY_BYTES,
        WTF_CSRF_CHECK_DEFAULT=False,
        WTF_CSRF_TIME_LIMIT=None,
    )
    app.url_map.converters["default"] = app.url_map.converters["string"] = Segment
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False


def _import_registrations() -> None:
    """Import the modules of all areas with jobs, scopes of the search and targets of to-do items."""
    for module in pkgutil.walk_packages(areas.__path__, f"{areas.__name__}."):
        if module.name.endswith((".jobs", ".search_scope", ".todo_target")):
            importlib.import_module(module.name)


def _use_keys() -> None:
    """Sign with the current keys; refuse requests if they are not the keys of this database."""
    if _has_proven_keys(current_app):
        return
    keyring = key_ring.keyring()
    sign_with(current_app, keyring)
    if request.blueprint == "probes":
        return
    try:
        encryption.prove_key()
    except key_ring.SecretKeyMissing as error:
        log.error("this process has another key than the database", error=str(error))
        raise Unavailable from error
    current_app.extensions["proven"] = keyring


def _has_proven_keys(app: Flask) -> bool:
    """Whether the current keys were compared with those of the database."""
    return app.extensions.get("proven") is key_ring.keyring()


def _close_uploads(_error: BaseException | None) -> None:
    # files of a form lie on disk until they are closed
    request.close()


def _handle(error: Exception) -> Response:
    if isinstance(error, NotFound) and request.method not in metrics.KNOWN_METHODS:
        error = MethodNotAllowed()
    has_addresses = request_ctx.url_adapter is not None  # without a host that can be one no page can be made
    if request.blueprint == receivers.name:
        error = responses.as_service_error(error)
        if error.status == 500:
            return Response(status=503)  # monitoring tools send again after 503, not all of them after 500
    if has_addresses and not responses.is_api() and request.blueprint != "probes" and not is_for_programs():
        return error_page(responses.as_service_error(error))
    if isinstance(error, MethodNotAllowed):
        return responses.render(method_not_allowed(error))
    return responses.render(responses.as_service_error(error))


def _endings(app: responses.Application) -> frozenset[str]:
    """The fixed words that routes of the API end with."""
    rules = (rule.rule for rule in app.url_map.iter_rules() if rule.rule.startswith(API))
    return frozenset(word for rule in rules if not (word := rule.rpartition("/")[2]).startswith("<"))


def _folder(name: str) -> Path:
    # beside the package in a checkout, inside it when it was installed from a wheel
    inside = Path(__file__).parent / name
    return inside if inside.exists() else Path(__file__).parents[1] / name
