"""The form of a heartbeat."""

from __future__ import annotations

from typing import Any

from wtforms import IntegerField, SelectField, StringField
from wtforms.validators import Optional

from project_service.areas.heartbeats import service
from project_service.areas.heartbeats.schemas import SEVERITIES
from project_service.domain.heartbeats.models import ALERT, CRON, INTERVAL, Heartbeat
from project_service.kit.http.forms import Form

KINDS: dict[Any, str] = {
    INTERVAL: "Interval: a call every so many seconds",
    CRON: "Cron: calls by a cron expression",
    ALERT: "Alert: a firing alert, such as Prometheus' Watchdog, counts as a call",
}
NAMES = (
    *("name", "kind", "period", "schedule", "time_zone", "matcher_title", "grace"),
    *("severity", "environment", "runbook"),
)


class HeartbeatForm(Form):
    """A heartbeat; fields of other kinds than the chosen one have no effect."""

    name = StringField("Name", description="What calls, such as Nightly backup.", render_kw={"autocomplete": "off"})
    kind = SelectField("Kind", choices=KINDS, default=INTERVAL)
    period = IntegerField(
        "Period in seconds",
        validators=[Optional()],
        default=service.DEFAULT_PERIOD_SECONDS,
        description="Of interval and alert: 60 to 31536000. 3600 is an hour, 86400 a day.",
    )
    schedule = StringField(
        "Cron expression", description="Of cron: minute, hour, day, month, day of the week, such as 30 2 * * *."
    )
    time_zone = StringField("Time zone", default="UTC", description="Of cron: a name such as Europe/Berlin.")
    matcher_title = StringField(
        "Title of the alert",
        default=service.DEFAULT_TITLE,
        description=(
            "Of alert. Set repeat_interval of its route in Alertmanager below period and grace:"
            " a period of 600 seconds goes with a repeat_interval of 5m."
        ),
    )
    grace = IntegerField(
        "Grace in seconds",
        validators=[Optional()],
        default=service.DEFAULT_GRACE_SECONDS,
        description="How late a call may be before an alert is opened: 60 to 31536000.",
    )
    severity = SelectField("Severity of the alert", choices={word: word.capitalize() for word in SEVERITIES})
    environment = StringField("Environment of the alert (optional)")
    runbook = StringField("Runbook (optional)", description="A URL that the alert shows.")

    def fields(self) -> dict[str, Any]:
        """Return what the service takes."""
        return {name: self[name].data for name in NAMES}


def form_of(heartbeat: Heartbeat) -> HeartbeatForm:
    """Return the form of a stored heartbeat."""
    columns = {"period": "period_seconds", "grace": "grace_seconds"}
    values = {name: getattr(heartbeat, columns.get(name, name)) for name in NAMES}
    values["matcher_title"] = values["matcher_title"] or service.DEFAULT_TITLE
    return HeartbeatForm(formdata=None, data=values)
