"""Forms of the pages about groups."""

from __future__ import annotations

from wtforms import RadioField, SelectField, StringField, TextAreaField

from project_service.kit.http.forms import Form

VISIBILITY_TEXTS = {
    "private": "Private: members only",
    "internal": "Internal: all signed-in users",
    "public": "Public: everyone",
}
PROJECT_CREATION_TEXTS = {
    "noone": "Nobody",
    "maintainer": "Maintainers and owners",
    "developer": "Developers, maintainers and owners",
}
SUBGROUP_CREATION_TEXTS = {"owner": "Owners", "maintainer": "Maintainers and owners"}


class GroupForm(Form):
    """A new group or subgroup."""

    name = StringField("Group name")
    path = StringField("Group URL", description="The last part of its address: letters, digits, “_”, “-” and “.”.")
    description = TextAreaField("Description (optional)")
    visibility = RadioField("Visibility level", choices=VISIBILITY_TEXTS, default="private")


class GroupDetailsForm(Form):
    """Name, description, visibility and who may create something in a group."""

    name = StringField("Group name")
    description = TextAreaField("Description", render_kw={"rows": 3})
    visibility = RadioField("Visibility level", choices=VISIBILITY_TEXTS)
    project_creation_level = SelectField("Who may create projects", choices=PROJECT_CREATION_TEXTS)
    subgroup_creation_level = SelectField("Who may create subgroups", choices=SUBGROUP_CREATION_TEXTS)


class GroupPathForm(Form):
    """The last part of the address of a group."""

    path = StringField("Group URL", render_kw={"spellcheck": "false", "autocapitalize": "off"})


class GroupDeleteForm(Form):
    """The full path, typed to confirm a deletion."""

    typed_path = StringField(
        "Full path", render_kw={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}
    )
