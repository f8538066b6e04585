"""Forms of the pages of errors."""

from __future__ import annotations

from wtforms import StringField, TextAreaField

from project_service.kit.http.forms import Form


class ErrorIssueForm(Form):
    """Link an existing issue to an error."""

    issue_iid = StringField("Issue number", render_kw={"inputmode": "numeric", "autocomplete": "off"})


class ErrorCommentForm(Form):
    """Comment on an error."""

    note = TextAreaField("Comment", render_kw={"rows": 3})
