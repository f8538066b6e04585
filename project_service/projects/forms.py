"""Forms of the pages about projects."""

from __future__ import annotations

from wtforms import RadioField, SelectField, StringField, TextAreaField

from project_service.kit.forms import Form

VISIBILITY_TEXTS = {
    "private": "Private: members only",
    "internal": "Internal: everybody who is signed in",
    "public": "Public: everybody",
}


class ProjectForm(Form):
    """A new project."""

    name = StringField("Project name")
    namespace_id = SelectField("Where", coerce=int, description="Your own namespace or a group.")
    path = StringField("Project slug", description="The last part of its address; made from the name when empty.")
    description = TextAreaField("Description (optional)")
    visibility = RadioField("Visibility level", choices=VISIBILITY_TEXTS, default="private")
