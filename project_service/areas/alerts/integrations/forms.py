"""Forms of the pages about integrations and the settings of incidents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wtforms import BooleanField, SelectField, StringField, TextAreaField

from project_service.areas.alerts.integrations.service import NAMES, TYPES
from project_service.areas.alerts.models import HTTP, OPSGENIE, PROMETHEUS, AlertIntegration
from project_service.areas.alerts.payloads.payload_mapping import TARGETS
from project_service.areas.alerts.receivers.presets import ALERTMANAGER, PRESETS
from project_service.kit.http.errors import ServiceError
from project_service.kit.http.forms import Form

CODE = {"spellcheck": "false", "autocomplete": "off"}
# Prometheus sends by its Alertmanager: the type has the preset of that
TOOLS = sorted((PRESETS.keys() - {ALERTMANAGER}), key=lambda name: PRESETS[name].name.lower())


def _choices() -> dict[str, str]:
    any_tool = ("template", "generic")
    named = [name for name in TOOLS if name not in any_tool]
    return {
        HTTP: TYPES[HTTP],
        **{name: PRESETS[name].name for name in any_tool},
        PROMETHEUS: TYPES[PROMETHEUS],
        **{name: PRESETS[name].name for name in named},
        OPSGENIE: TYPES[OPSGENIE],
    }


class IntegrationForm(Form):
    """Form of an integration of any type."""

    type = SelectField(
        "Integration type",
        choices=_choices(),
        description="The monitoring tool. Prometheus: the webhook of its Alertmanager. "
        "One that is not listed: HTTP Endpoint, with the fields of its messages mapped below. "
        "Opsgenie: no alerts are received here; the list of alerts leads to Opsgenie.",
    )
    name = StringField(
        "Name",
        description="Shown as the source of alerts. An HTTP endpoint needs one; others are called as their tool "
        "without. A name that is taken gets a number.",
        render_kw={"autocomplete": "off", "placeholder": "Where the alerts come from"},
    )
    active = BooleanField(
        "Active",
        default=True,
        description="Without it alerts are refused, test alerts too. Saving creates an address and a key, which "
        "can be seen at any time afterwards.",
    )
    short_address = BooleanField(
        "Short address",
        description="Receive at …/alerts/notify.json, for monitors that know no other; one endpoint of a project.",
    )
    target_url = StringField("Opsgenie URL", description="Only for Opsgenie: where the list of alerts leads to.")
    payload_example = TextAreaField(
        "Sample payload",
        description="Optional, JSON. Its fields can be mapped to those of alerts; of a batch those of the first alert.",
        render_kw=CODE | {"rows": 8, "placeholder": '{ "event": { "name": "Disk is full" } }'},
    )
    resolved_words = StringField(
        "Values that mean resolved",
        description="In the field that is mapped to the end time, separated by commas, in any case.",
        render_kw={"autocomplete": "off"},
    )
    time_zone = StringField(
        "Zone of times without one",
        description="Such as Europe/Berlin.",
        render_kw={"autocomplete": "off", "placeholder": "UTC"},
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.misfits: dict[str, str] = {}

    @property
    def preset_id(self) -> str | None:
        """The preset of the chosen tool."""
        return ALERTMANAGER if self.type.data == PROMETHEUS else self.type.data if self.type.data in PRESETS else None

    @property
    def integration_type(self) -> str:
        """The type of the integration for the chosen tool."""
        return PRESETS[self.type.data].address if self.type.data in PRESETS else self.type.data or HTTP

    @property
    def default_name(self) -> str:
        """The name of an integration that was given none."""
        return PRESETS[self.type.data].name if self.type.data in TOOLS else NAMES.get(self.type.data, "")

    def show(self, integration: AlertIntegration) -> None:
        """Fill in what is stored in another form than it is shown."""
        self.type.data = tool_of(integration)
        self.resolved_words.data = ", ".join(integration.resolved_values or ())

    def keep_type(self, integration: AlertIntegration) -> None:
        """Allow only tools that send to the same address as before."""
        if not self.type.data or self.integration_type != integration.type:
            self.type.data = tool_of(integration)

    def refuse(self, error: ServiceError) -> None:
        """Attach the messages of an error to their fields, mapped ones included."""
        messages = error.message if isinstance(error.message, dict) else {}
        self.misfits = {
            target: "; ".join(messages[f"map_{target}"]) for target in TARGETS if f"map_{target}" in messages
        }
        if not self.misfits:
            super().refuse(error)


def tool_of(integration: AlertIntegration) -> str:
    """Return the choice of the form for an integration."""
    return integration.preset if integration.preset in TOOLS else integration.type


def tools_beside(integration: AlertIntegration) -> list[tuple[str, str]]:
    """Return the choices that send to the same address as an integration."""
    if integration.type != HTTP:
        return []
    return [(HTTP, TYPES[HTTP]), *((name, PRESETS[name].name) for name in TOOLS if PRESETS[name].address == HTTP)]


class TestAlertForm(Form):
    """Form of a test alert."""

    __test__ = False  # no test, whatever its name

    payload = TextAreaField(
        "Test payload",
        description="JSON. This makes a real alert, with all that follows from one.",
        render_kw=CODE | {"rows": 10, "placeholder": '{ "title": "Disk is full", "severity": "high" }'},
    )


class IncidentSettingsForm(Form):
    """Form of the incident settings."""

    create_issue = BooleanField("Create an incident for each alert that is triggered")
    auto_close_incident = BooleanField("Close the incident when a recovery alert resolves its alert")
    issue_template_key = SelectField(
        "Incident template",
        validate_choice=False,  # the rules say what is not found
        description="What every incident says besides: the files .gitlab/issue_templates/*.md of the repository.",
    )

    def offer(self, templates: Iterable[str]) -> None:
        """Set the choices of issue templates."""
        self.issue_template_key.choices = {"": "No template"} | {name: name for name in templates}
