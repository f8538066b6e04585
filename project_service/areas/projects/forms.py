"""Forms of the pages about projects."""

from __future__ import annotations

from typing import Any

from flask import request
from wtforms import BooleanField, RadioField, SelectField, StringField, TextAreaField

from project_service.domain.namespaces import Namespace
from project_service.kit.http.forms import Form

VISIBILITY_TEXTS = {
    "private": "Private: members only",
    "internal": "Internal: all signed-in users",
    "public": "Public: everyone",
}


class NamedProjectForm(Form):
    """Name and namespace of a new project, which all forms that create one have."""

    name = StringField("Project name")
    namespace_id = SelectField("Where", coerce=int, description="Your own namespace or a group.")
    path = StringField("Project slug", description="The last part of its address; made from the name when empty.")

    def set_namespaces(self, namespaces: list[Namespace]) -> None:
        """Set the choices; by default ``namespace_id`` of the query string or else the first is selected."""
        choices: dict[Any, str] = {namespace.id: namespace.full_path for namespace in namespaces}
        self.namespace_id.choices = choices
        if request.method == "GET":
            selected = request.args.get("namespace_id")
            self.namespace_id.data = next((key for key in choices if str(key) == selected), namespaces[0].id)


class ProjectForm(NamedProjectForm):
    """A new, empty project."""

    description = TextAreaField("Description (optional)")
    visibility = RadioField("Visibility level", choices=VISIBILITY_TEXTS, default="private")
    initialize_with_readme = BooleanField(
        "Initialize the repository with a README", description="So that it can be cloned at once."
    )
