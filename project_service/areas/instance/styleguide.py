"""The style guide: each component of ``templates/components/`` with sample data, for those who change pages."""

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass

from flask import render_template
from wtforms import BooleanField, RadioField, SelectField, StringField, TextAreaField

from project_service.access.abilities import Ability
from project_service.access.pages import PageBlueprint
from project_service.kit import charts, clock
from project_service.kit.http.forms import Form
from project_service.kit.http.pagination import ShownPage

pages = PageBlueprint("styleguide", __name__)
PAGE_SIZE = 20


class SampleSeverity(enum.IntEnum):
    """The severities whose colours the style sheet has."""

    CRITICAL = 0
    HIGH = 1
    MEDIUM = 2
    LOW = 3
    INFO = 4
    UNKNOWN = 5

    @property
    def title(self) -> str:
        """The word that is shown."""
        return self.name.capitalize()


@dataclass(frozen=True, slots=True)
class SamplePerson:
    """Somebody with an avatar."""

    id: int
    name: str


class SampleForm(Form):
    """A form with a field of each kind."""

    name = StringField("Name", description="A help text says what is expected.")
    key = StringField("Key")
    text = TextAreaField("Text", render_kw={"rows": 2})
    role = SelectField("Role", choices={"guest": "Guest", "developer": "Developer"})
    theme = RadioField("Theme", choices={"light": "Light", "dark": "Dark"}, default="light")
    active = BooleanField("Active")


@pages.get("/-/styleguide")
@pages.signed_in
@pages.allow(Ability.ADMINISTER)
def show_styleguide() -> str:
    """Show each component once; administrators only, since it is of no use to others."""
    form, now = SampleForm(), clock.now()
    form.key.errors = ["must be at least 8 characters; the space is not allowed"]
    form.problems.append("The form could not be saved, for a reason that belongs to no field.")
    days = [(now.date() - dt.timedelta(days=day), {SampleSeverity(day % 4): day + 1}) for day in range(14)]
    return render_template(
        "instance/styleguide.html",
        form=form,
        now=now,
        severities=list(SampleSeverity),
        people=[SamplePerson(number, f"Person {letter}") for number, letter in enumerate("ABCDEFGH")],
        page=ShownPage([None] * PAGE_SIZE, 3, 192, counted=True, following=4, before=2, size=PAGE_SIZE),
        chart=charts.stacked(days[::-1], list(SampleSeverity)),
    )
