"""Forms of the pages about issues."""

from __future__ import annotations

from wtforms import BooleanField, DateField, SelectField, SelectMultipleField, StringField, TextAreaField
from wtforms.validators import Optional
from wtforms.widgets import CheckboxInput, ListWidget

from project_service.kit.http.forms import Form


class IssueForm(Form):
    """Create or edit an issue. Assignees and the fields below them are for reporters and above."""

    title = StringField("Title")
    description = TextAreaField("Description", render_kw={"rows": 8, "data-markdown": True})
    confidential = BooleanField(
        "Confidential", description="Only for reporters and above, the author and the assignees."
    )
    assignee_ids = SelectMultipleField(
        "Assignees", coerce=int, widget=ListWidget(prefix_label=False), option_widget=CheckboxInput()
    )
    labels = StringField(
        "Labels",
        description="Separated by commas. Labels that do not exist are created.",
        render_kw={"data-picks": "label-titles", "list": "label-titles", "autocomplete": "off"},
    )
    milestone_id = SelectField("Milestone", coerce=int)
    due_date = DateField("Due date", [Optional()])


class NoteForm(Form):
    """A comment."""

    note = TextAreaField("Comment", render_kw={"rows": 4, "data-markdown": True})
    confidential = BooleanField("Internal note", description="Only for reporters and above.")
