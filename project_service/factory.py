"""The application factory: it connects the areas with the application and with each other."""

from __future__ import annotations

import importlib
import os
import pkgutil
from pathlib import Path

import redis
import structlog
from flask import Flask, Response, current_app, request
from flask.globals import request_ctx
from werkzeug.exceptions import MethodNotAllowed, NotFound

from project_service import areas
from project_service.access import openapi
from project_service.access.api import before_options, method_not_allowed
from project_service.access.page_parts import navigation, saved_messages
from project_service.access.pages import CookieSessions, csrf, error_page, is_for_programs, sign_with
from project_service.areas.accounts.oauth.routes import oauth
from project_service.areas.alerts.effects import acknowledging, incidents, silencing
from project_service.areas.alerts.receivers import delivery_log, own_reports
from project_service.areas.alerts.receivers.routes import receivers
from project_service.areas.error_tracking.collection.collector import collector
from project_service.areas.error_tracking.sentry_cli.sentry_api import sentry_api
from project_service.areas.heartbeats.call_receiver import calls
from project_service.areas.instance.probes import probes
from project_service.areas.notifications.actions import pages as notification_actions
from project_service.areas.notifications.routing import holding as notification_holding
from project_service.areas.repositories.transport.git_http import git_http
from project_service.areas.repositories.transport.go_get import go_get
from project_service.areas.webhooks import sender as web_hook_sender
from project_service.blueprints import APIS, PAGES
from project_service.domain.alerts import alert_actions, own_alerts
from project_service.domain.hooks import hook_events
from project_service.domain.silences import holding as silence_holding
from project_service.domain.tracker.signals import issue_closed
from project_service.kit import logs, metrics
from project_service.kit.db import session
from project_service.kit.http import responses
from project_service.kit.http.clients.proxies import TrustedProxies
from project_service.kit.http.clients.view_admission import MAX_BODY_BYTES, ViewAdmission
from project_service.kit.http.errors import Unavailable
from project_service.kit.http.urls import API, RawPaths, Segment
from project_service.kit.security import encryption, key_ring
from project_service.kit.storage import open_storage
from project_service.kit.texts import markdown
from project_service.settings import Settings

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
    app.register_blueprint(oauth)
    issue_closed.connect(incidents.on_issue_closed)
    silence_holding.begun.connect(silencing.on_silence_begun)
    silence_holding.ended.connect(silencing.on_silence_ended)
    notification_holding.add_holder(silence_holding.held)
    alert_actions.acknowledged.connect(acknowledging.on_acknowledgement)
    alert_actions.asked.connect(acknowledging.on_question)
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
