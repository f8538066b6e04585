"""Forms for access tokens of projects and groups, and for leaked tokens."""

from __future__ import annotations

from typing import Any

from wtforms import DateField, PasswordField, SelectField, SelectMultipleField, StringField
from wtforms.validators import DataRequired, Optional
from wtforms.widgets import CheckboxInput, ListWidget

from project_service.areas.accounts.tokens.forms import SCOPE_TEXTS
from project_service.domain.access_levels import MEMBER_ROLES, Role
from project_service.domain.accounts.tokens import RESOURCE_SCOPES
from project_service.kit.http.forms import Form

EXPIRY_HELP = "From this day on it is not accepted; at most a year ahead."


class ResourceTokenForm(Form):
    """A new access token of a project or group."""

    name = StringField("Token name", description="What it is for: members see this name in the name of its bot.")
    expires_at = DateField("Expires at", [Optional()], description=f"{EXPIRY_HELP} Empty: in a year.")
    access_level = SelectField("Role", coerce=int, description="What the token may do; not above your own role.")
    scopes = SelectMultipleField(
        "Scopes",
        choices={scope: SCOPE_TEXTS[scope] for scope in RESOURCE_SCOPES},
        widget=ListWidget(prefix_label=False),
        option_widget=CheckboxInput(),
    )

    def set_roles(self, highest: Role) -> None:
        """Offer the roles up to that of the caller."""
        choices: dict[Any, str] = {int(role): role.title for role in MEMBER_ROLES if role <= highest}
        self.access_level.choices = choices


class RotateForm(Form):
    """When the new secret of a token expires."""

    expires_at = DateField("Expires at", [DataRequired("is missing")], description=EXPIRY_HELP)


class LeakedTokenForm(Form):
    """The text of a token that others have seen."""

    secret = PasswordField(
        "Leaked token",
        [DataRequired("The token is missing.")],
        description="The whole text. It is not stored.",
        render_kw={"autocomplete": "off", "spellcheck": "false"},
    )
