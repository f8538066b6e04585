"""Forms of personal settings."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

from wtforms import BooleanField, SelectField, SelectMultipleField, TimeField
from wtforms.widgets import CheckboxInput, ListWidget

from project_service.areas.notifications.personal.service import OWN_EVENTS, PARTICIPATING
from project_service.domain.notifications.models import CUSTOM, GLOBAL
from project_service.kit.http.forms import Form

LEVELS = {
    GLOBAL: "Global: as for everything above",
    "watch": "Watch: all alerts, errors, findings and incidents",
    PARTICIPATING: "Participate: what rules tell members",
    "mention": "On mention: as participate",
    "disabled": "Disabled: nothing",
    CUSTOM: "Custom: the events chosen below",
}
DAYS: dict[Any, str] = dict(
    enumerate(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"), start=1)
)


class LevelForm(Form):
    """A level, and the events of the level ``custom``."""

    level = SelectField("Level", choices=LEVELS)
    events = SelectMultipleField(
        "Custom events",
        choices={name: name.replace("_", " ").capitalize() for name in OWN_EVENTS},
        option_widget=CheckboxInput(),
        widget=ListWidget(prefix_label=False),
    )

    def fields(self) -> dict[str, Any]:
        """Return what the service takes; events are stored only with their level."""
        chosen = {name: name in (self.events.data or ()) for name in OWN_EVENTS}
        return {"level": self.level.data} | (chosen if self.level.data == CUSTOM else {})


def level_form(shown: dict[str, Any], *, everywhere: bool = False) -> LevelForm:
    """Return the form of a setting; everywhere there is nothing above."""
    chosen = [name for name in OWN_EVENTS if shown.get("events", {}).get(name)]
    form = LevelForm(formdata=None, data={"level": shown["level"], "events": chosen})
    if everywhere:
        form.level.choices = {name: text for name, text in LEVELS.items() if name != GLOBAL}
    return form


class QuietHoursForm(Form):
    """Hours in which personal messages wait."""

    enabled = BooleanField("Quiet hours")
    time_zone = SelectField(
        "Time zone", choices={zone: zone for zone in sorted(available_timezones())}, validate_choice=False
    )
    days = SelectMultipleField(
        "Days",
        coerce=int,
        choices=DAYS,
        option_widget=CheckboxInput(),
        widget=ListWidget(prefix_label=False),
    )
    starts = TimeField("From")
    ends = TimeField("To")
    except_critical = BooleanField("Critical ones are sent all the same")

    def fields(self) -> dict[str, Any]:
        """Return what the service takes."""
        times = {name: self[name].data.strftime("%H:%M") if self[name].data else "" for name in ("starts", "ends")}
        plain = {name: self[name].data for name in ("enabled", "time_zone", "except_critical")}
        return plain | times | {"days": self.days.data or []}
