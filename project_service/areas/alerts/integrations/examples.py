"""Commands and configuration that send alerts to an integration, for its page."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from project_service.areas.alerts.models import PROMETHEUS, AlertIntegration
from project_service.areas.alerts.receivers.presets import FORMATS, PRESETS, Instruction
from project_service.kit import clock

ALERTMANAGER = """\
route:
  receiver: project-service
receivers:
  - name: project-service
    webhook_configs:
      - url: {address}
        send_resolved: true
        http_config:
          authorization:
            type: Bearer
            credentials: {key}
"""


@dataclass(frozen=True, slots=True)
class FilledInstruction:
    """A field of a tool and the text to enter there."""

    field: str
    value: str

    @property
    def is_long(self) -> bool:
        """Whether the text has several lines."""
        return "\n" in self.value


def instructions_of(integration: AlertIntegration, address: str) -> list[FilledInstruction]:
    """Return what to enter in the tool of the integration's preset, with address and key."""
    preset = PRESETS.get(integration.preset or "")
    if preset is None:
        return []
    parts = urlsplit(address)
    values = {
        "{{URL}}": address,
        "{{URL_WITH_KEY}}": parts._replace(netloc=f"alerts:{quote(integration.token)}@{parts.netloc}").geturl(),
        "{{KEY}}": integration.token,
        "{{HOST}}": parts.netloc,
        "{{PATH}}": parts.path,
    }
    return [FilledInstruction(instruction.field, _filled(instruction, values)) for instruction in preset.instructions]


def _filled(instruction: Instruction, values: dict[str, str]) -> str:
    text = instruction.value
    for name, value in values.items():
        text = text.replace(name, FORMATS[instruction.format](value))
    return text


def examples_of(integration: AlertIntegration, address: str) -> dict[str, str]:
    """Return a ``curl`` command that works as it is printed and, for Prometheus, the configuration of Alertmanager."""
    examples = {"curl": _curl(integration, address)}
    if integration.type == PROMETHEUS:
        examples["alertmanager"] = ALERTMANAGER.format(address=address, key=integration.token)
    return examples


def _curl(integration: AlertIntegration, address: str) -> str:
    body = _batch() if integration.type == PROMETHEUS else {"title": "Test alert", "severity": "low"}
    words = [
        ("--header", f"Authorization: Bearer {integration.token}"),
        ("--header", "Content-Type: application/json"),
        ("--data", json.dumps(body, separators=(",", ":"))),
    ]
    options = " \\\n  ".join(f"{name} {shlex.quote(value)}" for name, value in words)
    return f"curl {options} \\\n  {shlex.quote(address)}"


def _batch() -> dict[str, object]:
    """The body of a webhook of Alertmanager with one alert."""
    labels = {"alertname": "TestAlert", "severity": "info"}
    alert = {
        "status": "firing",
        "labels": labels,
        "annotations": {},
        "startsAt": clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {
        "version": "4",
        "groupKey": "test",
        "status": "firing",
        "receiver": "project-service",
        "groupLabels": {},
        "commonLabels": labels,
        "commonAnnotations": {},
        "externalURL": "",
        "alerts": [alert],
    }
