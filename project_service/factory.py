"""The application, put together: the one module that knows every area."""

from __future__ import annotations

import os
from pathlib import Path

import redis
import structlog
from flask import Flask, Response, request
from flask.globals import request_ctx
from werkzeug.exceptions import MethodNotAllowed

from project_service import addresses, document
from project_service.access import navigation
from project_service.access.api import before_options, wrong_method
from project_service.access.pages import CookieSessions, csrf, error_page, is_for_programs, sign_with
from project_service.access.receivers import KnownReceivers
from project_service.accounts import jobs as accounts_jobs
from project_service.accounts import pages as accounts_pages
from project_service.accounts import routes as accounts
from project_service.activity import jobs as activity_jobs
from project_service.activity import pages as activity_pages
from project_service.activity import routes as activity
from project_service.alerts import incidents
from project_service.alerts import pages as alerts_pages
from project_service.alerts import settings_pages as alerts_settings
from project_service.alerts.receivers import receivers
from project_service.environments import pages as environments_pages
from project_service.environments import routes as environments
from project_service.error_tracking import pages as error_tracking_pages
from project_service.error_tracking import routes as error_tracking
from project_service.groups import pages as groups_pages
from project_service.groups import routes as groups
from project_service.instance import routes as instance
from project_service.instance.probes import probes
from project_service.issues import pages as issues_pages
from project_service.issues import routes as issues
from project_service.kit import answers, current, database, encryption, kept, logs, markdown, secrets
from project_service.kit.errors import Unavailable
from project_service.kit.proxies import TrustedProxies
from project_service.kit.storage import open_storage
from project_service.kit.urls import API, RawPaths, Segment
from project_service.labels import routes as labels
from project_service.members import jobs as members_jobs
from project_service.members import pages as members_pages
from project_service.members import routes as members
from project_service.merge_requests import pages as merge_requests_pages
from project_service.merge_requests import routes as merge_requests
from project_service.milestones import pages as milestones_pages
from project_service.milestones import routes as milestones
from project_service.namespaces import jobs as namespaces_jobs
from project_service.namespaces import routes as namespaces
from project_service.planning.signals import issue_closed
from project_service.projects import pages as projects_pages
from project_service.projects import routes as projects
from project_service.protected_tags import pages as protected_tags_pages
from project_service.protected_tags import routes as protected_tags
from project_service.settings import Settings
from project_service.transfers import pages as transfers_pages
from project_service.transfers import routes as transfers
from project_service.variables import pages as variables_pages
from project_service.variables import routes as variables
from project_service.vulnerabilities import pages as vulnerabilities_pages
from project_service.vulnerabilities import routes as vulnerabilities

APIS = (
    accounts.api,
    groups.api,
    transfers.api,
    projects.api,
    members.api,
    variables.api,
    protected_tags.api,
    error_tracking.api,
    namespaces.api,
    activity.api,
    issues.api,
    milestones.api,
    merge_requests.api,
    labels.api,
    environments.api,
    vulnerabilities.api,
    instance.api,
)
PAGES = (
    accounts_pages.sessions,
    accounts_pages.pages,
    groups_pages.pages,
    projects_pages.pages,
    members_pages.pages,
    variables_pages.pages,
    error_tracking_pages.pages,
    protected_tags_pages.pages,
    issues_pages.pages,
    merge_requests_pages.pages,
    milestones_pages.pages,
    alerts_pages.pages,
    alerts_settings.pages,
    environments_pages.pages,
    vulnerabilities_pages.pages,
    transfers_pages.pages,
    addresses.pages,
)
# loaded for what they register: jobs that are known by name, panels of other areas' pages
LOADED = (accounts_jobs, activity_jobs, activity_pages, namespaces_jobs, members_jobs)
LARGEST_BODY = 10 << 20
REDIS_TIMEOUT_SECONDS = 3

log = structlog.get_logger(__name__)


def create_app(settings: Settings | None = None) -> answers.Application:
    """Make the application of these settings; without any they are read from the environment."""
    settings = settings or Settings.from_environment()
    logs.configure(settings.log_level)
    os.umask(0o077)  # what we write is ours alone: databases, files, sockets
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    app = answers.Application(
        "project_service", template_folder=str(_folder("templates")), static_folder=str(_folder("static"))
    )
    app.session_interface = CookieSessions()
    _configure(app, settings)
    database.init_app(app, settings)
    kept.init_app(app)
    app.extensions["redis"] = redis.Redis.from_url(
        settings.redis_url, socket_timeout=REDIS_TIMEOUT_SECONDS, socket_connect_timeout=REDIS_TIMEOUT_SECONDS
    )
    app.extensions["storage"] = open_storage(settings)
    csrf.init_app(app)
    app.before_request(answers.before)
    app.before_request(_use_keys)
    app.before_request(before_options)
    app.after_request(answers.after)
    app.teardown_request(_close_uploads)
    app.register_error_handler(Exception, _handle)
    app.register_blueprint(probes)
    document.init_app(app, APIS)
    navigation.init_app(app)
    markdown.init_app(app.jinja_env)
    app.register_blueprint(receivers)
    issue_closed.connect(incidents.on_issue_closed)
    for pages in PAGES:
        app.register_blueprint(pages)
    receiving = KnownReceivers(app.wsgi_app, app, lambda: _has_proven_keys(app))
    answering = answers.KnownAnswers(RawPaths(receiving, _endings(app)), kept.answers_of(app))
    app.wsgi_app = TrustedProxies(answering, settings.trusted_proxies)  # type: ignore[method-assign]
    return app


def _configure(app: answers.Application, settings: Settings) -> None:
    keyring = secrets.init(settings)
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
        MAX_CONTENT_LENGTH=LARGEST_BODY,
        MAX_FORM_MEMORY_SIZE=LARGEST_BODY,
        WTF_CSRF_CHECK_DEFAULT=False,
        WTF_CSRF_TIME_LIMIT=None,
    )
    app.url_map.converters["default"] = app.url_map.converters["string"] = Segment
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False


def _use_keys() -> None:
    """Sign with the keys as they are now, and answer nothing with one that is not this database's."""
    app = current.app()
    if _has_proven_keys(app):
        return
    keyring = secrets.keyring()
    sign_with(app, keyring)
    if request.blueprint == "probes":
        return
    try:
        encryption.prove_key()
    except secrets.SecretKeyMissing as error:
        log.error("this process has another key than the database", error=str(error))
        raise Unavailable from error
    app.extensions["proven"] = keyring


def _has_proven_keys(app: Flask) -> bool:
    """Whether the keys, as they are now, are known to be those of the database."""
    return app.extensions.get("proven") is secrets.keyring()


def _close_uploads(_error: BaseException | None) -> None:
    # files of a form lie on disk until they are closed
    current.request().close()


def _handle(error: Exception) -> Response:
    has_addresses = request_ctx.url_adapter is not None  # without a host that can be one no page can be made
    if has_addresses and not answers.is_api() and request.blueprint != "probes" and not is_for_programs():
        return error_page(answers.as_service_error(error))
    if isinstance(error, MethodNotAllowed):
        return answers.render(wrong_method(error))
    return answers.render(answers.as_service_error(error))


def _endings(app: answers.Application) -> frozenset[str]:
    """The fixed words that routes of the API end with."""
    rules = (rule.rule for rule in app.url_map.iter_rules() if rule.rule.startswith(API))
    return frozenset(word for rule in rules if not (word := rule.rpartition("/")[2]).startswith("<"))


def _folder(name: str) -> Path:
    # beside the package in a checkout, inside it when it was installed from a wheel
    inside = Path(__file__).parent / name
    return inside if inside.exists() else Path(__file__).parents[1] / name
