"""The form of a milestone."""

from __future__ import annotations

from wtforms import DateField, StringField, TextAreaField
from wtforms.validators import Optional

from project_service.kit.http.forms import Form


class MilestoneForm(Form):
    """Create or edit a milestone."""

    title = StringField("Title")
    description = TextAreaField("Description", render_kw={"rows": 5, "data-markdown": True})
    start_date = DateField("Start date", [Optional()])
    due_date = DateField("Due date", [Optional()])
