"""Forms of the pages about alerts."""

from __future__ import annotations

from wtforms import TextAreaField

from project_service.kit.http.forms import Form


class CommentForm(Form):
    """Form of a comment on an alert."""

    note = TextAreaField("Comment", render_kw={"rows": 3, "data-markdown": True})
