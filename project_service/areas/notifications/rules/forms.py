"""The form of a rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wtforms import BooleanField, IntegerField, SelectField, SelectMultipleField, StringField, TextAreaField
from wtforms.validators import Optional
from wtforms.widgets import CheckboxInput, ListWidget

from project_service.areas.notifications.models import NotificationChannel
from project_service.areas.notifications.rules.matching import GROUPED_BY
from project_service.domain.notifications.models import KINDS, SEVERITIES, NotificationRule
from project_service.domain.silences.matching import FIELDS, OPERATORS
from project_service.kit.http.errors import Invalid
from project_service.kit.http.forms import Form

MEMBERS = {"members:40": "Maintainers and owners, by e-mail", "members:30": "Developers and above, by e-mail"}
MATCHER_PARTS = 3
PLAIN = (
    *("name", "events", "min_severity", "environment", "group_by", "group_wait", "group_interval"),
    *("repeat_interval", "enabled"),
)


class RuleForm(Form):
    """A rule: which events, under which conditions, to whom."""

    name = StringField("Name")
    events = SelectMultipleField(
        "Events",
        choices={kind: kind.replace("_", " ").capitalize() for kind in KINDS},
        option_widget=CheckboxInput(),
        widget=ListWidget(prefix_label=False),
    )
    targets = SelectMultipleField(
        "Who is told", option_widget=CheckboxInput(), widget=ListWidget(prefix_label=False), validate_choice=False
    )
    usernames = StringField("People", description="Usernames, separated by commas.")
    min_severity = SelectField(
        "Severity",
        choices={"": "Any"} | {name: f"{name.capitalize()} and worse" for name in SEVERITIES},
        default="",
    )
    environment = StringField("Environment", description="A name, or a wildcard such as review/*. Empty: any.")
    matchers = TextAreaField(
        "Further conditions",
        description=f"One per line: a field ({', '.join(FIELDS)}, payload.…), an operator"
        f" ({', '.join(OPERATORS)}) and a value, such as: title matches *disk*",
        render_kw={"rows": 3},
    )
    group_by = SelectMultipleField(
        "Group by",
        choices={name: name.capitalize() for name in GROUPED_BY},
        option_widget=CheckboxInput(),
        widget=ListWidget(prefix_label=False),
        description="Messages are separate for each value. Without any there is one message for all.",
    )
    group_wait = IntegerField("Seconds to wait for more before the first message", default=5)
    group_interval = IntegerField("Seconds until the next message", default=300)
    repeat_interval = IntegerField(
        "Seconds until a reminder of what nobody has acknowledged",
        [Optional()],
        description="3600 to 604800, such as 14400 for four hours. Empty: no reminders.",
    )
    enabled = BooleanField("Enabled", default=True)

    def offer(self, channels: Iterable[NotificationChannel]) -> None:
        """Set the choices of targets."""
        named: dict[Any, str] = {f"channel:{channel.id}": f"#{channel.name}" for channel in channels}
        self.targets.choices = named | MEMBERS

    def fields(self) -> dict[str, Any]:
        """Return what the service takes; ``Invalid`` for conditions that cannot be read."""
        values = {name: self[name].data for name in PLAIN}
        values["group_wait"] = -1 if values["group_wait"] is None else values["group_wait"]
        values["group_interval"] = -1 if values["group_interval"] is None else values["group_interval"]
        return values | {"targets": self._targets(), "matchers": _matchers(self.matchers.data or "")}

    def _targets(self) -> list[dict[str, Any]]:
        targets: list[dict[str, Any]] = []
        for choice in self.targets.data or ():
            kind, _, number = choice.partition(":")
            if number.isdigit():
                targets.append({"type": kind, ("id" if kind == "channel" else "access_level"): int(number)})
        names = (name.strip().lstrip("@") for name in (self.usernames.data or "").split(","))
        return targets + [{"type": "user", "username": name} for name in names if name]


def form_of(rule: NotificationRule) -> RuleForm:
    """Return the form of a stored rule."""
    chosen = [
        f"channel:{target['id']}" if target["type"] == "channel" else f"members:{target['access_level']}"
        for target in rule.targets
        if target["type"] != "user"
    ]
    people = ", ".join(target["username"] for target in rule.targets if target["type"] == "user")
    lines = "\n".join(f"{matcher['field']} {matcher['operator']} {matcher['value']}" for matcher in rule.matchers)
    values = {name: getattr(rule, name) for name in PLAIN}
    values |= {"min_severity": rule.min_severity or "", "targets": chosen, "usernames": people, "matchers": lines}
    return RuleForm(formdata=None, data=values)


def _matchers(text: str) -> list[dict[str, Any]]:
    matchers = []
    for line in filter(None, map(str.strip, text.splitlines())):
        parts = line.split(None, MATCHER_PARTS - 1)
        if len(parts) < MATCHER_PARTS - 1 or parts[1] not in OPERATORS:
            raise Invalid(matchers=f'"{line}" is not a field, an operator and a value')
        value = parts[2] if len(parts) == MATCHER_PARTS else ""
        matchers.append({"field": parts[0], "operator": parts[1], "value": value})
    return matchers
