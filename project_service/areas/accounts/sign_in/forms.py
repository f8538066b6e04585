"""Forms of signing in: password, second factor, forgotten password."""

from __future__ import annotations

from wtforms import (
    EmailField,
    HiddenField,
    PasswordField,
    StringField,
)
from wtforms.validators import DataRequired

from project_service.areas.accounts.profile.forms import OwnPasswordForm
from project_service.kit.http.forms import Form


class SignInForm(Form):
    """Username or email, and password."""

    login = StringField("Username or email", [DataRequired("Say who you are.")], render_kw={"autocomplete": "username"})
    password = PasswordField(
        "Password", [DataRequired("The password is missing.")], render_kw={"autocomplete": "current-password"}
    )


class SetupForm(OwnPasswordForm):
    """A first code of the authenticator, and the own password."""

    code = StringField(
        "Code from the app",
        [DataRequired("is missing")],
        description="Six digits.",
        render_kw={"autocomplete": "one-time-code", "inputmode": "numeric", "maxlength": 20},
    )


class CodeForm(Form):
    """A code of the authenticator, or a recovery code."""

    code = StringField(
        "Two-factor code",
        [DataRequired("is missing")],
        description="Six digits from your app, or a recovery code.",
        render_kw={"autocomplete": "one-time-code", "autocapitalize": "off", "autofocus": True, "maxlength": 100},
    )


class ResetRequestForm(Form):
    """The e-mail address of an account whose password was forgotten."""

    email = EmailField("E-mail", [DataRequired("is missing")], render_kw={"autocomplete": "email"})


class NewPasswordForm(Form):
    """A new password, with the token of a mail."""

    reset_password_token = HiddenField()
    new_password = PasswordField(
        "New password",
        [DataRequired("is missing")],
        description="At least 8 characters.",
        render_kw={"autocomplete": "new-password"},
    )
    repeated = PasswordField(
        "New password again", [DataRequired("is missing")], render_kw={"autocomplete": "new-password"}
    )
