"""Forms of the pages about integrations and the settings of incidents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wtforms import BooleanField, SelectField, StringField, TextAreaField

from project_service.areas.alerts.integrations.service import TYPES
from project_service.areas.alerts.receivers.payload_mapping import TARGETS
from project_service.kit.http.errors import ServiceError
from project_service.kit.http.forms import Form

CODE = {"spellcheck": "false", "autocomplete": "off"}


class IntegrationForm(Form):
    """Form of an integration of any type."""

    type = SelectField(
        "Integration type",
        choices=TYPES,
        description="HTTP endpoint: any tool that can send JSON, each with an address and key of its own. "
        "Prometheus: the webhook of an Alertmanager. "
        "Opsgenie: no alerts are received here; the list of alerts leads to Opsgenie.",
    )
    name = StringField(
        "Name",
        description="Shown as the source of alerts. An HTTP endpoint needs one; Prometheus and Opsgenie are called so "
        "without. A name that is taken gets a number.",
        render_kw={"autocomplete": "off", "placeholder": "Where the alerts come from"},
    )
    active = BooleanField(
        "Active",
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
        description="Optional, JSON. Its fields can be mapped to those of alerts.",
        render_kw=CODE | {"rows": 8, "placeholder": '{ "event": { "name": "Disk is full" } }'},
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.misfits: dict[str, str] = {}

    def refuse(self, error: ServiceError) -> None:
        """Attach the messages of an error to their fields, mapped ones included."""
        messages = error.message if isinstance(error.message, dict) else {}
        self.misfits = {
            target: "; ".join(messages[f"map_{target}"]) for target in TARGETS if f"map_{target}" in messages
        }
        if not self.misfits:
            super().refuse(error)


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
    send_email = BooleanField(
        "Send an e-mail to owners and maintainers for new alerts", description="Repetitions of an open alert send none."
    )
    send_recovery_email = BooleanField("Send an e-mail to owners and maintainers when an alert recovers")
    auto_close_incident = BooleanField("Close the incident when a recovery alert resolves its alert")
    issue_template_key = SelectField(
        "Incident template",
        validate_choice=False,  # the rules say what is not found
        description="What every incident says besides: the files .gitlab/issue_templates/*.md of the repository.",
    )

    def offer(self, templates: Iterable[str]) -> None:
        """Set the choices of issue templates."""
        self.issue_template_key.choices = [("", "No template"), *((name, name) for name in templates)]
