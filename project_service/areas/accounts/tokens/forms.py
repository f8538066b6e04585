"""Forms for personal access tokens."""

from __future__ import annotations

from wtforms import DateField, SelectMultipleField, StringField
from wtforms.validators import Optional
from wtforms.widgets import CheckboxInput, ListWidget

from project_service.domain.accounts.tokens import SCOPES
from project_service.kit.http.forms import Form

SCOPE_TEXTS = {
    "api": "api: read and write everything",
    "read_user": "read_user: read users and activity",
    "read_api": "read_api: read everything",
    "read_repository": "read_repository: clone and fetch with git",
    "write_repository": "write_repository: clone, fetch and push with git",
    "read_registry": "read_registry: not used by this server",
    "write_registry": "write_registry: not used by this server",
    "self_rotate": "self_rotate: replace this token by a new one, by the API",
    "sudo": "sudo: act as any other user (administrators)",
}


class TokenForm(Form):
    """A new access token."""

    name = StringField("Token name", description="What it is for: you will see this name in the list.")
    expires_at = DateField("Expires at", [Optional()], description="From this day on it is not accepted. Empty: never.")
    scopes = SelectMultipleField(
        "Scopes",
        choices={scope: SCOPE_TEXTS[scope] for scope in SCOPES},
        widget=ListWidget(prefix_label=False),
        option_widget=CheckboxInput(),
    )
