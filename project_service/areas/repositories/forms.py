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


class ReleaseForm(Form):
    """The title and the notes of a release."""

    name = StringField("Title", description="By default the name of the tag.", render_kw={"autocomplete": "off"})
    description = TextAreaField("Release notes", description="In Markdown.", render_kw={"rows": 12})


class NewReleaseForm(Form):
    """A release to create, and its tag if that does not exist."""

    tag = StringField("Tag", description="An existing tag, or a new one.", render_kw={"autocomplete": "off"})
    ref = StringField("Create from", description="Where a new tag begins: a branch, a tag or the id of a commit.")
    name = StringField("Title", description="By default the name of the tag.", render_kw={"autocomplete": "off"})
    description = TextAreaField("Release notes", description="In Markdown.", render_kw={"rows": 12})
