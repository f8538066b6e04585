"""Integrations on the operations settings page, and the pages of one integration.

Maintainers configure; developers get a list without keys, from which they may send a test alert.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.access.page_parts import sections
from project_service.access.pages import PageBlueprint
from project_service.areas.alerts import queries
from project_service.areas.alerts.alerts import service
from project_service.areas.alerts.integrations import examples, request_log, samples
from project_service.areas.alerts.integrations import service as integrations
from project_service.areas.alerts.integrations.forms import (
    IncidentSettingsForm,
    IntegrationForm,
    TestAlertForm,
    tools_beside,
)
from project_service.areas.alerts.integrations.word_tables import (
    default_resolved,
    posted_severities,
    resolved_values,
    severity_rows,
)
from project_service.areas.alerts.models import HTTP, OPSGENIE, PROMETHEUS, AlertIntegration, Severity
from project_service.areas.alerts.payloads import payload_mapping
from project_service.areas.alerts.receivers.presets import PRESETS
from project_service.domain.projects import Project
from project_service.domain.repositories import contents
from project_service.kit.db.session import db
from project_service.kit.http.errors import Invalid
from project_service.kit.http.fields import whole_number
from project_service.kit.http.forms import Form, confirmation

pages = PageBlueprint("alert_settings_pages", __name__)
SETTINGS = "/<path:project>/-/settings/operations"
BASE_PATH = f"{SETTINGS}/integrations"
ONE = f"{BASE_PATH}/<int:integration_id>"
MAX_LINKED_ALERTS = 10  # after a test with several
SEVERITIES = [(severity.name.lower(), severity.title) for severity in Severity]
INTEGRATIONS, INCIDENTS = "integrations", "settings"
TABS = {INTEGRATIONS: "Current integrations", INCIDENTS: "Alert settings"}


def fill(project: Project) -> dict[str, Any]:
    """The context of the section: integrations and incident settings."""
    configures = allowed(caller(), Ability.ADMIN_OPERATIONS, project)
    tabs = TABS if configures else {INTEGRATIONS: TABS[INTEGRATIONS]}
    asked = request.args.get("alerts", INTEGRATIONS)
    integrations = list(db.session.scalars(queries.integrations_of(project)))
    tab = asked if asked in tabs else INTEGRATIONS
    return {
        "alert_tabs": tabs,
        "alert_tab": tab,
        "integrations": integrations,
        "configures": configures,
        "tools": {integration.id: _tool_name(integration) for integration in integrations},
        "refused": request_log.refused_counts(integrations) if configures else {},
        "tested": request_log.newest_tests(integrations) if configures else {},
        "former_addresses": queries.former_addresses(project, integrations) if configures else {},
        "incident_form": _stored_incident_form(project) if tab == INCIDENTS else None,
    }


def _tool_name(integration: AlertIntegration) -> str:
    preset = PRESETS.get(integration.preset or "") if integration.type == HTTP else None
    return preset.name if preset is not None else integrations.TYPES[integration.type]


def _stored_incident_form(project: Project) -> IncidentSettingsForm:
    return _offering(project, IncidentSettingsForm(formdata=None, obj=queries.incident_setting_of(project.id)))


def _offering(project: Project, form: IncidentSettingsForm) -> IncidentSettingsForm:
    """Return the form with the templates of the repository, which only a shown form needs."""
    form.offer(contents.issue_templates(project))
    return form


sections.add(sections.Section("operations", "alerts", "Alerts", 10, Ability.READ_ALERTS, "alerts/section.html", fill))


@pages.post(f"{SETTINGS}/alerts", reads_repository=True)
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def save_alert_settings(project: Project) -> ResponseReturnValue:
    """Save the incident settings."""
    form = IncidentSettingsForm()
    names = ("create_issue", "auto_close_incident", "issue_template_key")
    if form.accepted(lambda: service.save_incident_setting(project, **{name: form[name].data for name in names})):
        flash("The settings of alerts have been successfully saved.")
        return redirect(f"/{project.full_path}/-/settings/operations?alerts={INCIDENTS}#alerts")
    return sections.show(project, "operations", status=422, incident_form=_offering(project, form), alert_tab=INCIDENTS)


@pages.get(f"{BASE_PATH}/new")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def new_integration(project: Project) -> ResponseReturnValue:
    """Show the form for a new integration."""
    return _form_page(project, None, IntegrationForm())


@pages.post(f"{BASE_PATH}/new")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def create_integration(project: Project) -> ResponseReturnValue:
    """Add an integration, or show the fields of its sample."""
    form = IntegrationForm()
    if "parse" in request.form:
        return _form_page(project, None, form, parsed=True)

    def create() -> AlertIntegration:
        fields = _fields(form)
        short_address = form.short_address.data
        return integrations.create_integration(
            project, type=form.integration_type, short_address=short_address, **fields
        )

    if accepted := form.accepted(create):
        return redirect(_after_saving(accepted.result))
    return _form_page(project, None, form, parsed=True), 422


@pages.post(f"{BASE_PATH}/preview")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def preview_integration(project: Project) -> ResponseReturnValue:
    """Show the part of the page with the parsed sample, for scripts that replace it."""
    form = IntegrationForm()
    sample = samples.read_sample(project, form, None, shows_rows=False)
    # rows that a user is typing in are not replaced, unless another tool was chosen
    is_other_tool = request.form.get("severities_of", "") != (form.preset_id or "")
    return render_template(
        "alerts/_preview_parts.html",
        default_resolved=default_resolved(form.preset_id),
        sample=sample,
        preset=PRESETS.get(form.preset_id or ""),
        severities=SEVERITIES,
        severity_rows=severity_rows(None, form.preset_id, sample.alerts or ()) if is_other_tool else None,
        stored=payload_mapping.values_of,
        targets=payload_mapping.TARGETS if "parsed_example" in request.form else (),
        field_labels=payload_mapping.LABELS,
    )


@pages.get(f"{ONE}/edit")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def edit_integration(project: Project, integration_id: int) -> ResponseReturnValue:
    """Show the form of one integration."""
    integration = queries.find_integration(project, integration_id)
    form = IntegrationForm(obj=integration)
    form.show(integration)
    logged = whole_number(request.args.get("request", ""))
    if logged is not None and integration.type != OPSGENIE:
        form.payload_example.data = request_log.body_of(integration, logged)
    return _form_page(project, integration, form, parsed=bool(form.payload_example.data) or form.preset_id is not None)


@pages.post(f"{ONE}/edit")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def update_integration(project: Project, integration_id: int) -> ResponseReturnValue:
    """Change an integration, or show the fields of its sample."""
    integration = queries.find_integration(project, integration_id)
    form = IntegrationForm()
    form.keep_type(integration)
    if "parse" in request.form:
        return _form_page(project, integration, form, parsed=True)
    if form.accepted(lambda: integrations.update_integration(integration, **_fields(form))):
        return redirect(_after_saving(integration))
    return _form_page(project, integration, form, parsed=True), 422


@pages.get(f"{ONE}/credentials")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def show_credentials(project: Project, integration_id: int) -> ResponseReturnValue:
    """Show URL and key of an integration."""
    integration = queries.find_integration(project, integration_id)
    address = integrations.address_of(integration)
    return _page(
        "credentials",
        integration,
        form=Form(),
        examples=examples.examples_of(integration, address) if address else {},
        preset=PRESETS.get(integration.preset or ""),
        instructions=examples.instructions_of(integration, address) if address else [],
        grouping=samples.grouping_text(
            PRESETS.get(integration.preset or ""),
            integration.mapping,
            is_batch_alert=integration.type == PROMETHEUS,
        ),
        old_addresses=[
            (
                integrations.address_of(integration, path),
                next((use for use in uses if use.integration_id == integration.id), None),
            )
            for path, uses in queries.former_addresses(project, [integration]).items()
        ],
    )


@pages.get(f"{ONE}/reset_key")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def ask_reset_key(project: Project, integration_id: int) -> ResponseReturnValue:
    """Ask before a key is reset."""
    integration = queries.find_integration(project, integration_id)
    return confirmation(
        title="Reset key",
        question=f"Reset the authorization key of {integration.name}? Every alert source needs the new one.",
        button="Reset key",
        back=_address(integration, "credentials"),
        project=project,
    )


@pages.post(f"{ONE}/reset_key")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def reset_key(project: Project, integration_id: int) -> ResponseReturnValue:
    """Reset the key of an integration."""
    integration = queries.find_integration(project, integration_id)
    integrations.reset_key(integration)
    flash("The key was reset. The old one no longer works.")
    return redirect(_address(integration, "credentials"))


@pages.get(f"{ONE}/test")
@pages.signed_in
@pages.allow(Ability.READ_ALERTS)
def show_test(project: Project, integration_id: int) -> ResponseReturnValue:
    """Show the form for a test alert."""
    integration = queries.find_integration(project, integration_id)
    form = TestAlertForm()
    form.payload.data = (integration.payload_example or "") if integration.type == HTTP else ""
    return _page("test", integration, form=form, **_outcome(project))


@pages.post(f"{ONE}/test")
@pages.signed_in
@pages.allow(Ability.READ_ALERTS)
def send_test(project: Project, integration_id: int) -> ResponseReturnValue:
    """Send a test alert on behalf of the user, who does not see the key."""
    integration = queries.find_integration(project, integration_id)
    form = TestAlertForm()
    if accepted := form.accepted(lambda: integrations.send_test(integration, form.payload.data or "")):
        # a page of its own, so that to load it again sends nothing
        outcome = {
            "sent": len(accepted.result.iids),
            "alerts": ",".join(map(str, dict.fromkeys(accepted.result.iids[:MAX_LINKED_ALERTS]))),
            "unreadable": ",".join(accepted.result.unreadable_times),
            "note": accepted.result.note,
        }
        return redirect(f"{_address(integration, 'test')}?{urlencode({k: v for k, v in outcome.items() if v != ''})}")
    return _page("test", queries.find_integration(project, integration_id), form=form, **_outcome(project)), 422


def _outcome(project: Project) -> dict[str, Any]:
    """What became of the test alert that was sent before this page: its alerts, and the times that were ignored."""
    numbers = (whole_number(text) for text in request.args.get("alerts", "").split(",")[:MAX_LINKED_ALERTS])
    alerts = list(
        db.session.scalars(queries.alerts_numbered(project, [number for number in numbers if number is not None]))
    )
    fields = request.args.get("unreadable", "").split(",")
    times = {
        field: unreadable
        for alert in alerts
        for field, unreadable in (alert.unreadable_times or {}).items()
        if field in fields
    }
    return {
        "sent": whole_number(request.args.get("sent", "")) if request.method == "GET" else None,
        "alerts": alerts,
        "unreadable_times": times,
        "note": request.args.get("note", ""),
        "field_labels": payload_mapping.LABELS,
    }


@pages.get(f"{ONE}/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def ask_delete_integration(project: Project, integration_id: int) -> ResponseReturnValue:
    """Ask before an integration is deleted."""
    integration = queries.find_integration(project, integration_id)
    return confirmation(
        title="Delete integration",
        question=f"Delete {integration.name}? Its address stops working. The alerts that came through it stay.",
        button="Delete integration",
        back=_section_path(project),
        project=project,
    )


@pages.post(f"{ONE}/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def delete_integration(project: Project, integration_id: int) -> ResponseReturnValue:
    """Delete an integration."""
    integrations.delete_integration(queries.find_integration(project, integration_id))
    flash("The integration has been successfully removed.")
    return redirect(_section_path(project))


def _fields(form: IntegrationForm) -> dict[str, Any]:
    is_reset = "reset_preset" in request.form
    # Opsgenie receives nothing: its fields of payloads are hidden, and their values are ignored
    has_sample = form.integration_type != OPSGENIE and not is_reset
    text, chosen = (samples.sample_text(form), samples.chosen_fields()) if has_sample else ("", {})
    if chosen and text != samples.parsed_text():
        raise Invalid(payload_example=integrations.CHANGED)
    return {
        "name": (form.name.data or "").strip() or form.default_name,
        "active": form.active.data,
        "target_url": form.target_url.data or None,
        "preset": form.preset_id,
        "severity_mapping": None if is_reset else posted_severities(form.preset_id),
        "resolved_values": None if is_reset else resolved_values(form.resolved_words.data),
        "time_zone": (form.time_zone.data or "").strip() or None,
        **integrations.map_sample(text, chosen),
    }


def _form_page(
    project: Project, integration: AlertIntegration | None, form: IntegrationForm, *, parsed: bool = False
) -> str:
    sample = samples.Sample()
    if parsed:
        sample = samples.read_sample(project, form, integration)
        is_seen = form.integration_type != OPSGENIE or "parse" in request.form
        if sample.problem and is_seen and not form.payload_example.errors:
            form.payload_example.errors = [sample.problem]
    preset = PRESETS.get(form.preset_id or "")
    return render_template(
        "alerts/integration_form.html",
        project=project,
        integration=integration,
        form=form,
        tools=tools_beside(integration) if integration is not None else [],
        sample=sample,
        preset=preset,
        described=samples.described,
        severities=SEVERITIES,
        severity_rows=severity_rows(integration, form.preset_id, sample.alerts or ()),
        default_resolved=default_resolved(form.preset_id),
        targets=payload_mapping.TARGETS,
        hint=payload_mapping.hint_of,
        stored=payload_mapping.values_of,
        field_labels=payload_mapping.LABELS,
        fitting=payload_mapping.fitting,
        offers_short_address=integration is None
        and (bool(form.short_address.errors) or not queries.has_short_address(project)),
        tab="edit",
    )


def _page(tab: str, integration: AlertIntegration, **values: Any) -> str:
    return render_template(
        f"alerts/{tab}.html",
        project=integration.project,
        integration=integration,
        tab=tab,
        address=integrations.address_of(integration),
        configures=allowed(caller(), Ability.ADMIN_OPERATIONS, integration.project),
        **values,
    )


def _after_saving(integration: AlertIntegration) -> str:
    if "test" in request.form and integration.type != OPSGENIE:
        return _address(integration, "test")
    flash("Integration successfully saved. Its address and key are below.")
    return _address(integration, "credentials")


def _address(integration: AlertIntegration, tab: str) -> str:
    return f"/{integration.project.full_path}/-/settings/operations/integrations/{integration.id}/{tab}"


def _section_path(project: Project) -> str:
    return f"/{project.full_path}/-/settings/operations#alerts"
