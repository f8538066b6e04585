"""The form of a silence."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from wtforms import BooleanField, DateTimeLocalField, SelectField, StringField, TextAreaField
from wtforms.validators import Optional

from project_service.domain.silences.matching import IS, MAX_MATCHERS, OPERATORS, Matcher
from project_service.domain.silences.models import Silence
from project_service.kit.http.forms import Form

HOUR_SECONDS = 3600
UNTIL = "until"
LENGTHS: dict[Any, str] = {
    str(HOUR_SECONDS // 2): "30 minutes",
    str(HOUR_SECONDS): "1 hour",
    str(4 * HOUR_SECONDS): "4 hours",
    str(24 * HOUR_SECONDS): "1 day",
    str(7 * 24 * HOUR_SECONDS): "1 week",
    UNTIL: "Until the time below",
}
EMPTY_ROWS = 3  # offered besides those that are filled in
CONDITIONS: dict[Any, str] = {name: name.replace("_", " ") for name in OPERATORS}


class SilenceForm(Form):
    """A silence; an empty start is now. ``field_1`` and so on are its matchers."""

    starts_at = DateTimeLocalField("From (UTC)", [Optional()], description="Empty: now.")
    length = SelectField("For", choices=LENGTHS, default=str(HOUR_SECONDS), description="From now, or from its start.")
    ends_at = DateTimeLocalField("Until (UTC)", [Optional()])
    comment = TextAreaField("Comment", description="Why, such as the change that is being made.")
    ends_when_resolved = BooleanField("End earlier, 10 minutes after nothing that it matched is open")
    hold_incidents = BooleanField("Open no incidents meanwhile", default=True)

    def __init__(self, *args: Any, matchers: Sequence[Matcher] = (), **options: Any) -> None:
        super().__init__(*args, **options)
        self.shown = min(len(matchers) + EMPTY_ROWS, MAX_MATCHERS)
        for number, matcher in enumerate(matchers, start=1):
            for part in ("field", "operator", "value"):
                self[f"{part}_{number}"].data = matcher[part]

    def rows(self) -> list[tuple[Any, Any, Any]]:
        """Return the fields of the matchers that are shown: those that are filled in, and some empty ones."""
        every = [(self[f"field_{n}"], self[f"operator_{n}"], self[f"value_{n}"]) for n in NUMBERS]
        last = max((number for number, row in zip(NUMBERS, every, strict=True) if row[0].data), default=0)
        return every[: max(self.shown, last)]

    def new_fields(self) -> dict[str, Any]:
        """Return what the service takes of a new or a pending silence."""
        matchers = [
            {"field": field.data.strip(), "operator": operator.data, "value": value.data or ""}
            for field, operator, value in self.rows()
            if (field.data or "").strip()
        ]
        fields = {"matchers": matchers, "hold_incidents": self.hold_incidents.data} | self.changed_fields()
        return fields | ({"starts_at": _utc(self.starts_at.data)} if self.starts_at.data else {})

    def changed_fields(self) -> dict[str, Any]:
        """Return what the service takes of an active silence."""
        fields: dict[str, Any] = {"comment": self.comment.data, "ends_when_resolved": self.ends_when_resolved.data}
        if self.length.data == UNTIL:
            return fields | ({"ends_at": _utc(self.ends_at.data)} if self.ends_at.data else {})
        return fields | {"duration": int(self.length.data)}


NUMBERS = range(1, MAX_MATCHERS + 1)
for _number in NUMBERS:
    setattr(SilenceForm, f"field_{_number}", StringField("Field", render_kw={"autocomplete": "off"}))
    setattr(SilenceForm, f"operator_{_number}", SelectField("Condition", choices=CONDITIONS, default=IS))
    setattr(SilenceForm, f"value_{_number}", StringField("Value", render_kw={"autocomplete": "off"}))


def form_of(silence: Silence) -> SilenceForm:
    """Return the form of a stored silence."""
    values = {
        "starts_at": silence.starts_at.replace(tzinfo=None),
        "ends_at": silence.ends_at.replace(tzinfo=None),
        "length": UNTIL,
        "comment": silence.comment,
        "hold_incidents": silence.hold_incidents,
        "ends_when_resolved": silence.ends_when_resolved,
    }
    return SilenceForm(formdata=None, data=values, matchers=silence.matchers)


def _utc(moment: dt.datetime) -> dt.datetime:
    return moment.replace(tzinfo=dt.UTC)
