"""Forms of users in the administration area."""

from __future__ import annotations

from wtforms import BooleanField, EmailField, StringField

from project_service.kit.http.forms import Form


class NewUserForm(Form):
    """A user whom an administrator creates."""

    name = StringField("Full name", render_kw={"autocomplete": "off"})
    username = StringField("Username", render_kw={"autocomplete": "off", "autocapitalize": "off"})
    email = EmailField("E-mail", render_kw={"autocomplete": "off"})
    admin = BooleanField("Administrator", description="May see and change everything on this instance.")


class DeleteUserForm(Form):
    """The deletion of a user, confirmed with the username."""

    typed_username = StringField("Username", render_kw={"autocomplete": "off", "autocapitalize": "off"})
    hard_delete = BooleanField(
        "Delete contributions and groups owned alone, too",
        description="Otherwise issues and comments stay, as those of a ghost user.",
    )
