"""Forms of the pages of releases."""

from __future__ import annotations

from wtforms import StringField, TextAreaField

from project_service.kit.http.forms import Form


class ReleaseForm(Form):
    """The title and the notes of a release."""

    name = StringField("Title", description="By default the name of the tag.", render_kw={"autocomplete": "off"})
    description = TextAreaField(
        "Release notes", description="In Markdown.", render_kw={"rows": 12, "data-markdown": True}
    )


class NewReleaseForm(Form):
    """A release to create, and its tag if that does not exist."""

    tag = StringField("Tag", description="An existing tag, or a new one.", render_kw={"autocomplete": "off"})
    ref = StringField("Create from", description="Where a new tag begins: a branch, a tag or the id of a commit.")
    name = StringField("Title", description="By default the name of the tag.", render_kw={"autocomplete": "off"})
    description = TextAreaField(
        "Release notes", description="In Markdown.", render_kw={"rows": 12, "data-markdown": True}
    )
