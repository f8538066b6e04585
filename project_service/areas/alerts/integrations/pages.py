"""Integrations on the operations settings page, and the pages of one integration.

Maintainers configure; developers get a list without keys, from which they may send a test alert.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from flask import redirect, render_template, request

from project_service.access import sections
from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.access.pages import PageBlueprint
from project_service.areas.alerts import queries
from project_service.areas.alerts.alerts import service
from project_service.areas.alerts.integrations import examples
from project_service.areas.alerts.integrations import service as integrations
from project_service.areas.alerts.integrations.forms import IncidentSettingsForm, IntegrationForm, TestAlertForm
from project_service.areas.alerts.models import HTTP, OPSGENIE, PROMETHEUS, AlertIntegration
from project_service.areas.alerts.receivers import grouping, payload_mapping, payloads
from project_service.domain.projects import Project
from project_service.domain.repositories import contents
from project_service.kit import mail
from project_service.kit.db.session import db
from project_service.kit.http.errors import Invalid
from project_service.kit.http.fields import whole_number
from project_service.kit.http.forms import Form, confirmation

pages = PageBlueprint("alert_settings_pages", __name__)
SETTINGS = "/<path:project>/-/settings/operations"
BASE_PATH = f"{SETTINGS}/integrations"
ONE = f"{BASE_PATH}/<int:integration_id>"
MAX_LINKED_ALERTS = 10  # after a test with several
INTEGRATIONS, INCIDENTS = "integrations", "settings"
TABS = {INTEGRATIONS: "Current integrations", INCIDENTS: "Alert settings"}


def fill(project: Project) -> dict[str, Any]:
    """The context of the section: integrations and incident settings."""
    configures = allowed(caller(), Ability.ADMIN_OPERATIONS, project)
    tabs = TABS if configures else {INTEGRATIONS: TABS[INTEGRATIONS]}
    asked = request.args.get("alerts", INTEGRATIONS)
    found = list(db.session.scalars(queries.integrations_of(project)))
    tab = asked if asked in tabs else INTEGRATIONS
    return {
        "alert_tabs": tabs,
        "alert_tab": tab,
        "integrations": found,
        "integration_types": integrations.TYPES,
        "configures": configures,
        "alert_settings_saved": "saved" in request.args,
        "alert_integration_removed": "removed" in request.args,
        "mail_is_on": mail.is_on(),
        "former_addresses": queries.former_addresses(project, found) if configures else {},
        "incident_form": _stored_incident_form(project) if tab == INCIDENTS else None,
    }


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
def save_alert_settings(project: Project) -> Any:
    """Save the incident settings."""
    form = IncidentSettingsForm()
    names = ("create_issue", "send_email", "send_recovery_email", "auto_close_incident", "issue_template_key")
    if form.accepted(lambda: service.save_incident_setting(project, **{name: form[name].data for name in names})):
        return redirect(f"/{project.full_path}/-/settings/operations?alerts={INCIDENTS}&saved=1#alerts")
    return sections.show(project, "operations", status=422, incident_form=_offering(project, form), alert_tab=INCIDENTS)


@pages.get(f"{BASE_PATH}/new")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def new_integration(project: Project) -> Any:
    """Show the form for a new integration."""
    return _form_page(project, None, IntegrationForm())


@pages.post(f"{BASE_PATH}/new")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def create_integration(project: Project) -> Any:
    """Add an integration, or show the fields of its sample."""
    form = IntegrationForm()
    if "parse" in request.form:
        return _form_page(project, None, form, parsed=True)

    def create() -> AlertIntegration:
        fields = _fields(form)
        sample = {name: fields.pop(name) for name in ("payload_example", "mapping")}
        fields["short_address"] = form.short_address.data
        integration = integrations.create_integration(project, type=form.type.data, **fields)
        return integrations.update_integration(integration, **sample)

    if accepted := form.accepted(create):
        return redirect(_after_saving(accepted.result))
    return _form_page(project, None, form, parsed=True), 422


@pages.post(f"{BASE_PATH}/preview")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def preview_integration(project: Project) -> Any:
    """Show the part of the page with the parsed sample, for scripts that replace it."""
    form = IntegrationForm()
    return render_template(
        "alerts/_preview_parts.html",
        sample=_read_sample(project, form, {}),
        stored=payload_mapping.values_of,
        targets=payload_mapping.TARGETS if "parsed_example" in request.form else (),
        field_labels=payload_mapping.LABELS,
    )


@pages.get(f"{ONE}/edit")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def edit_integration(project: Project, integration_id: int) -> Any:
    """Show the form of one integration."""
    integration = queries.find_integration(project, integration_id)
    return _form_page(project, integration, IntegrationForm(obj=integration), parsed=bool(integration.payload_example))


@pages.post(f"{ONE}/edit")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def update_integration(project: Project, integration_id: int) -> Any:
    """Change an integration, or show the fields of its sample."""
    integration = queries.find_integration(project, integration_id)
    form = IntegrationForm()
    form.type.data = integration.type
    if "parse" in request.form:
        return _form_page(project, integration, form, parsed=True)
    if form.accepted(lambda: integrations.update_integration(integration, **_fields(form))):
        return redirect(_after_saving(integration))
    return _form_page(project, integration, form, parsed=True), 422


@pages.get(f"{ONE}/credentials")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def show_credentials(project: Project, integration_id: int) -> Any:
    """Show URL and key of an integration."""
    integration = queries.find_integration(project, integration_id)
    address = integrations.address_of(integration)
    return _page(
        "credentials",
        integration,
        form=Form(),
        saved="saved" in request.args,
        reset="reset" in request.args,
        examples=examples.examples_of(integration, address) if address else {},
        grouping=grouping.OF_PROMETHEUS
        if integration.type == PROMETHEUS
        else grouping.description_of(integration.mapping),
        old_addresses=[
            (
                integrations.address_of(integration, path),
                next((one for one in uses if one.integration_id == integration.id), None),
            )
            for path, uses in queries.former_addresses(project, [integration]).items()
        ],
    )


@pages.get(f"{ONE}/reset_key")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def ask_reset_key(project: Project, integration_id: int) -> Any:
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
def reset_key(project: Project, integration_id: int) -> Any:
    """Reset the key of an integration."""
    integration = queries.find_integration(project, integration_id)
    integrations.reset_key(integration)
    return redirect(f"{_address(integration, 'credentials')}?reset=1")


@pages.get(f"{ONE}/test")
@pages.signed_in
@pages.allow(Ability.READ_ALERTS)
def show_test(project: Project, integration_id: int) -> Any:
    """Show the form for a test alert."""
    integration = queries.find_integration(project, integration_id)
    form = TestAlertForm()
    form.payload.data = (integration.payload_example or "") if integration.type == HTTP else ""
    return _page("test", integration, form=form, **_outcome(project))


@pages.post(f"{ONE}/test")
@pages.signed_in
@pages.allow(Ability.READ_ALERTS)
def send_test(project: Project, integration_id: int) -> Any:
    """Send a test alert on behalf of the user, who does not see the key."""
    integration = queries.find_integration(project, integration_id)
    form = TestAlertForm()
    if accepted := form.accepted(lambda: integrations.send_test(integration, form.payload.data or "")):
        # a page of its own, so that to load it again sends nothing
        outcome = {
            "sent": len(accepted.result.iids),
            "alerts": ",".join(map(str, dict.fromkeys(accepted.result.iids[:MAX_LINKED_ALERTS]))),
            "unreadable": ",".join(accepted.result.unreadable_times),
        }
        return redirect(f"{_address(integration, 'test')}?{urlencode({k: v for k, v in outcome.items() if v != ''})}")
    return _page("test", queries.find_integration(project, integration_id), form=form, **_outcome(project)), 422


def _outcome(project: Project) -> dict[str, Any]:
    """What became of the test alert that was sent before this page: its alerts, and the times that were ignored."""
    numbers = (whole_number(text) for text in request.args.get("alerts", "").split(",")[:MAX_LINKED_ALERTS])
    alerts = list(db.session.scalars(queries.alerts_numbered(project, [one for one in numbers if one is not None])))
    fields = request.args.get("unreadable", "").split(",")
    times = {field: found for one in alerts for field, found in (one.unreadable_times or {}).items() if field in fields}
    return {
        "sent": whole_number(request.args.get("sent", "")) if request.method == "GET" else None,
        "alerts": alerts,
        "unreadable_times": times,
        "field_labels": payload_mapping.LABELS,
    }


@pages.get(f"{ONE}/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def ask_delete_integration(project: Project, integration_id: int) -> Any:
    """Ask before an integration is deleted."""
    integration = queries.find_integration(project, integration_id)
    return confirmation(
        title="Delete integration",
        question=f"Delete {integration.name}? Its address stops working. The alerts that came through it stay.",
        button="Delete integration",
        back=f"/{project.full_path}/-/settings/operations#alerts",
        project=project,
    )


@pages.post(f"{ONE}/delete")
@pages.signed_in
@pages.allow(Ability.ADMIN_OPERATIONS)
def delete_integration(project: Project, integration_id: int) -> Any:
    """Delete an integration."""
    integrations.delete_integration(queries.find_integration(project, integration_id))
    return redirect(f"/{project.full_path}/-/settings/operations?removed=1#alerts")


@dataclass(frozen=True, slots=True)
class Sample:
    """The parsed sample of a form: its fields, the mapping, the alerts it would create, or its problem."""

    fields: list[payload_mapping.SampleField] = field(default_factory=list)
    chosen: dict[str, str] = field(default_factory=dict)
    alerts: list[payloads.ParsedAlert] | None = None
    unreadable_times: dict[str, dict[str, str]] = field(default_factory=dict)
    grouping: str = field(default_factory=lambda: grouping.description_of({}))
    has_fingerprint: bool = False
    is_new_environment: bool = False  # the alert names an environment that the project does not have
    problem: str | None = None
    has_changed: bool = False
    left_out_after: int | None = None  # how many fields are offered, when that is not all of them


def _read_sample(project: Project, form: IntegrationForm, stored: dict[str, Any]) -> Sample:
    """Parse the sample of a submitted form, or of the stored integration."""
    text = _sample_text(form)
    if not text.strip():
        return Sample()
    try:
        payload = payload_mapping.read_sample(text)
    except payload_mapping.Unusable as error:
        return Sample(problem=str(error))
    fields = payload_mapping.fields_of(payload, payload_mapping.MAX_FIELDS + 1)
    offered = fields[: payload_mapping.MAX_FIELDS]
    has_changed = request.method == "POST" and text != _parsed_text()
    chosen = payload_mapping.chosen_of(stored) if request.method == "GET" else {} if has_changed else _chosen()
    mapped = payload_mapping.mapping_of(payload, chosen)
    reports = integrations.alerts_in(form.type.data, payload, mapped)
    alerts = None if reports is None else [one.parse() for one in reports]
    first = alerts[0] if alerts else None
    given = payload_mapping.has_fingerprint(payload, mapped)
    environment = first.environment if first else None
    is_prometheus = (
        first is not None and first.monitoring_tool == payloads.PROMETHEUS_TOOL and "startsAt" in first.payload
    )
    return Sample(
        list(dict.fromkeys([*offered, *payload_mapping.mapped_fields(payload, chosen).values()])),
        chosen,
        alerts,
        unreadable_times=reports[0].unreadable_times if reports else {},
        grouping=grouping.OF_PROMETHEUS if is_prometheus else grouping.description_of(mapped, is_given=given),
        has_fingerprint=given or "fingerprint" in mapped or is_prometheus,
        is_new_environment=environment is not None and not queries.has_environment(project, environment),
        problem=integrations.NO_BATCH if reports is None else None,
        has_changed=has_changed and bool(_parsed_text()),
        left_out_after=len(offered) if len(fields) > len(offered) else None,
    )


def _fields(form: IntegrationForm) -> dict[str, Any]:
    # only HTTP endpoints have a sample: for other types the field is hidden and its value is ignored
    text, chosen = (_sample_text(form), _chosen()) if form.type.data == HTTP else ("", {})
    if chosen and text != _parsed_text():
        raise Invalid(payload_example=integrations.CHANGED)
    return {
        "name": (form.name.data or "").strip() or integrations.NAMES.get(form.type.data, ""),
        "active": form.active.data,
        "target_url": form.target_url.data or None,
        **integrations.map_sample(text, chosen),
    }


def _sample_text(form: IntegrationForm) -> str:
    return (form.payload_example.data or "").replace("\r\n", "\n")


def _parsed_text() -> str:
    """The sample at the time its fields were parsed, sent as a hidden field."""
    return request.form.get("parsed_example", "").replace("\r\n", "\n")


def _chosen() -> dict[str, str]:
    names = {target: request.form.get(f"map_{target}", "") for target in payload_mapping.TARGETS}
    return {target: key for target, key in names.items() if key}


def _form_page(
    project: Project, integration: AlertIntegration | None, form: IntegrationForm, *, parsed: bool = False
) -> str:
    sample = Sample()
    if parsed:
        sample = _read_sample(project, form, integration.mapping if integration is not None else {})
        is_seen = form.type.data == HTTP or "parse" in request.form
        if sample.problem and is_seen and not form.payload_example.errors:
            form.payload_example.errors = [sample.problem]
    return render_template(
        "alerts/integration_form.html",
        project=project,
        integration=integration,
        form=form,
        sample=sample,
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
    return f"{_address(integration, 'credentials')}?saved=1"


def _address(integration: AlertIntegration, tab: str) -> str:
    return f"/{integration.project.full_path}/-/settings/operations/integrations/{integration.id}/{tab}"
