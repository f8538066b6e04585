"""Error tracking on the operations settings page: settings, client keys and mails."""

from __future__ import annotations

import re
from typing import Any

from flask import redirect, request, url_for
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability
from project_service.access.page_parts import navigation, sections
from project_service.access.pages import PageBlueprint
from project_service.areas.error_tracking.collection import event_limits
from project_service.areas.error_tracking.collection.envelopes import CHECK_IN
from project_service.areas.error_tracking.sentry import projects
from project_service.areas.error_tracking.sentry.client import SentryFailed, host_of
from project_service.areas.error_tracking.sentry.projects import SentryProject
from project_service.areas.error_tracking.sentry_cli import upload_guides
from project_service.areas.error_tracking.settings import client_keys, ignore_rules, queries, service
from project_service.areas.error_tracking.settings.forms import (
    INTEGRATED,
    SENTRY,
    ErrorIgnoreRuleForm,
    ErrorTrackingForm,
)
from project_service.areas.error_tracking.settings.models import IGNORE_PATTERNS, ErrorTrackingSetting
from project_service.domain import instance_settings
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.http.errors import Invalid
from project_service.kit.http.forms import Form, confirmation

pages = PageBlueprint("error_tracking_pages", __name__)

BASE_PATH = "/<path:project>/-/settings/operations/error_tracking"
DROPPED_HOURS = 24
HEARTBEATS = "/-/heartbeats"
SERVER = re.compile(r"https?://[^@\s]{1,255}\Z")


def fill(project: Project) -> dict[str, Any]:
    """Return the template variables of the section."""
    setting = queries.setting_of(project)
    passed_over = event_limits.passed_over_items(project.id, clock.now(), DROPPED_HOURS)
    keys = list(db.session.scalars(client_keys.keys_of(project)))
    active = next((key for key in keys if key.active), None)
    return {
        "tracking": setting,
        "tracking_form": _form(setting),
        "tracking_outcome": None,
        "tracking_keys": keys,
        "dsn_of": client_keys.dsn_of,
        "tracking_dsn": None if active is None else client_keys.dsn_of(active),
        **upload_guides.variables(project),
        "tracking_dropped": _dropped(project),
        "tracking_check_ins": passed_over.pop(CHECK_IN, 0),
        "tracking_passed_over": passed_over.most_common(),
        "heartbeats": navigation.has_entry(HEARTBEATS),
        "tracking_key_form": Form(formdata=None),
        "tracking_rules": list(db.session.scalars(ignore_rules.rules_of(project))),
        "tracking_rule_form": ErrorIgnoreRuleForm(formdata=None),
    }


sections.add(
    sections.Section(
        "operations",
        "error-tracking",
        "Error tracking",
        50,
        Ability.ADMIN_OPERATIONS,
        "error_tracking/section.html",
        fill,
    )
)


@pages.post(BASE_PATH, sends_requests=True)
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def save_error_tracking(project: Project) -> ResponseReturnValue:
    """Save the settings, and test the connection if that button was used."""
    form = ErrorTrackingForm()
    if "choose" in request.form:
        return _list_projects(project, form)
    fields = _fields(form, project)
    allowed = instance_settings.outgoing_policy()

    def save() -> None:
        db.session.commit()  # no locks while the host name is resolved
        service.save(project, fields, service.url_problems(fields["api_url"], allowed))

    if not form.accepted(save):
        return sections.show(project, "operations", status=422, tracking_form=form)
    if "test" not in request.form:
        return redirect(_settings(project))
    setting = queries.find_setting(project)
    db.session.commit()  # keep what was saved, and hold no locks during the request
    return sections.show(project, "operations", tracking_outcome=service.test_connection(setting, allowed))


@pages.post(f"{BASE_PATH}/keys")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def create_error_key(project: Project) -> ResponseReturnValue:
    """Create a client key."""
    form = Form()
    if not form.accepted(lambda: client_keys.create_key(project)):
        return sections.show(project, "operations", status=422, tracking_key_form=form)
    return redirect(_settings(project))


@pages.get(f"{BASE_PATH}/keys/<int:key_id>/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def ask_delete_error_key(project: Project, key_id: int) -> ResponseReturnValue:
    """Ask before a client key is removed."""
    key = client_keys.find_key(project, key_id)
    question = f"Applications that send with {key.public_key} are refused from then on."
    return confirmation("Remove client key?", question, "Remove client key", _settings(project), project=project)


@pages.post(f"{BASE_PATH}/keys/<int:key_id>/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def delete_error_key(project: Project, key_id: int) -> ResponseReturnValue:
    """Remove a client key."""
    client_keys.delete_key(client_keys.find_key(project, key_id))
    return redirect(_settings(project))


@pages.post(f"{BASE_PATH}/ignore_rules")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def create_error_ignore_rule(project: Project) -> ResponseReturnValue:
    """Add a rule for events that are not stored."""
    form = ErrorIgnoreRuleForm()
    patterns = {name: form[name].data for name in IGNORE_PATTERNS}
    if not form.accepted(lambda: ignore_rules.create_rule(project, **patterns)):
        return sections.show(project, "operations", status=422, tracking_rule_form=form)
    return redirect(_settings(project))


@pages.get(f"{BASE_PATH}/ignore_rules/<int:rule_id>/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def ask_delete_error_ignore_rule(project: Project, rule_id: int) -> ResponseReturnValue:
    """Ask before a rule is removed."""
    rule = ignore_rules.find_rule(project, rule_id)
    question = f"Events that match “{rule.text}” are stored again."
    return confirmation("Remove ignore rule?", question, "Remove ignore rule", _settings(project), project=project)


@pages.post(f"{BASE_PATH}/ignore_rules/<int:rule_id>/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def delete_error_ignore_rule(project: Project, rule_id: int) -> ResponseReturnValue:
    """Remove a rule."""
    ignore_rules.delete_rule(project, ignore_rules.find_rule(project, rule_id))
    return redirect(_settings(project))


def _form(setting: ErrorTrackingSetting | None) -> ErrorTrackingForm:
    if setting is None:
        return ErrorTrackingForm(formdata=None, backend=INTEGRATED)
    names = ("enabled", "api_url", "organization_name", "project_name", "store_addresses", "resolve_after_days")
    form_values = {name: getattr(setting, name) for name in names}
    form_values |= {
        "backend": INTEGRATED if setting.integrated else SENTRY,
        "hidden_keys": "\n".join(setting.hidden_keys),
    }
    return ErrorTrackingForm(formdata=None, data=form_values)


def _list_projects(project: Project, form: ErrorTrackingForm) -> ResponseReturnValue:
    """Show the form again, with the projects of the Sentry server to choose one; nothing is saved."""
    try:
        accepted = form.accepted(lambda: _projects(project, form))
    except SentryFailed as error:
        return sections.show(project, "operations", tracking_form=form, tracking_outcome=(False, error.advice))
    if not accepted:
        return sections.show(project, "operations", status=422, tracking_form=form)
    offered = accepted.result
    if not offered:
        outcome = (False, "The token reaches no project of this server.")
        return sections.show(project, "operations", tracking_form=form, tracking_outcome=outcome)
    form.chosen.choices = {project_of_sentry.api_url: project_of_sentry.title for project_of_sentry in offered}
    current = (form.api_url.data or "").strip().rstrip("/")
    form.chosen.data = (
        current if any(project_of_sentry.api_url == current for project_of_sentry in offered) else offered[0].api_url
    )
    outcome = (
        True,
        f"{len(offered)} project{'' if len(offered) == 1 else 's'} found: choose one and save the changes.",
    )
    return sections.show(project, "operations", tracking_form=form, tracking_outcome=outcome)


def _projects(project: Project, form: ErrorTrackingForm) -> list[SentryProject]:
    address = (form.api_url.data or "").strip()
    if not address:
        raise Invalid(api_url=service.REQUIRED)
    if not SERVER.match(host_of(address)):
        raise Invalid(api_url="is invalid")
    token = form.token.data or _sealed_token(form, project, address) or service.stored_token(project, address)
    if not token:
        raise Invalid(token=service.REQUIRED)
    projects_of_sentry = projects.projects_of(address, token)
    form.sealed_token.data = projects.seal(token, project, host_of(address))
    return projects_of_sentry


def _sealed_token(form: ErrorTrackingForm, project: Project, address: str) -> str | None:
    sealed = form.sealed_token.data
    return projects.unseal(sealed, project, host_of(address)) if sealed else None


def _fields(form: ErrorTrackingForm, project: Project) -> service.ErrorTrackingFields:
    """Return the fields for ``service.save``."""
    if form.chosen.data:
        form.api_url.data = form.chosen.data
    address = (form.api_url.data or "").strip()
    names = (line.strip() for line in (form.hidden_keys.data or "").splitlines())
    return {
        "enabled": form.enabled.data,
        "api_url": address or None,
        "token": form.token.data or _sealed_token(form, project, address),
        "organization_name": form.organization_name.data or None,
        "project_name": form.project_name.data or None,
        "integrated": form.backend.data == INTEGRATED,
        "store_addresses": form.store_addresses.data,
        "hidden_keys": list(dict.fromkeys(filter(None, names))),
        "resolve_after_days": form.resolve_after_days.data or 0,
    }


def _dropped(project: Project) -> dict[str, int]:
    """Return how many events were not stored in the last 24 hours, by reason."""
    now = clock.now()
    refused = event_limits.refused_events(project.id, now, DROPPED_HOURS)
    return ({"over the limit": refused} if refused else {}) | queries.dropped_events(project, now, DROPPED_HOURS)


def _settings(project: Project) -> str:
    return url_for("project_pages.show_settings", project=project.full_path, page="operations")
