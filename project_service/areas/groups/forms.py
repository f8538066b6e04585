"""Forms of the pages about groups."""

from __future__ import annotations

from wtforms import RadioField, StringField, TextAreaField

from project_service.kit.http.forms import Form

VISIBILITY_TEXTS = {
    "private": "Private: members only",
    "internal": "Internal: everybody who is signed in",
    "public": "Public: everybody",
}


class GroupForm(Form):
    """A new group or subgroup."""

    name = StringField("Group name")
    path = StringField("Group URL", description="The last part of its address: letters, digits, “_”, “-” and “.”.")
    description = TextAreaField("Description (optional)")
    visibility = RadioField("Visibility level", choices=VISIBILITY_TEXTS, default="private")
