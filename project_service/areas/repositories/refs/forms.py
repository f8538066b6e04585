"""Forms of the pages of repositories: a new tag, a new branch."""

from __future__ import annotations

from wtforms import StringField, TextAreaField

from project_service.kit.http.forms import Form


class NewBranchForm(Form):
    """A branch to create; ``ref`` is the revision that it begins with."""

    name = StringField("Name", render_kw={"autocomplete": "off"})
    ref = StringField("Create from", description="A branch, a tag or the id of a commit.", render_kw={"list": "refs"})


class NewTagForm(NewBranchForm):
    """A tag to create; with a message it is an annotated one."""

    message = TextAreaField("Message", description="With a message the tag is an annotated one.", render_kw={"rows": 4})
    notes = TextAreaField(
        "Release notes", description="With notes, in Markdown, the tag gets a release.", render_kw={"rows": 6}
    )
