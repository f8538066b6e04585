"""Forms of labels."""

from __future__ import annotations

from wtforms import IntegerField, StringField
from wtforms.validators import NumberRange, Optional

from project_service.domain.tracker.labels import DEFAULT_COLOR
from project_service.kit.http.forms import Form


class LabelForm(Form):
    """Create or edit a label."""

    title = StringField("Title")
    description = StringField("Description")
    color = StringField("Colour", default=DEFAULT_COLOR, description="#6699cc, #69c or a name such as teal.")


class PriorityForm(Form):
    """Set the priority of a label in a project."""

    priority = IntegerField("Priority", [Optional(), NumberRange(min=0, message="must be 0 or more")])
