"""Forms of a user's own settings, and of users in the administration area."""

from __future__ import annotations

from wtforms import BooleanField, EmailField, HiddenField, PasswordField, RadioField, StringField, TextAreaField
from wtforms.validators import DataRequired, EqualTo

from project_service.kit.http.forms import Form

THEME_TEXTS = {"system": "As the system says", "light": "Light", "dark": "Dark"}


class OwnPasswordForm(Form):
    """The own password, for an action that matters."""

    current_password = PasswordField(
        "Current password", [DataRequired("is missing")], render_kw={"autocomplete": "current-password"}
    )


class ProfileForm(OwnPasswordForm):
    """Name, e-mail address, text about oneself and theme."""

    name = StringField("Full name", render_kw={"autocomplete": "name"})
    email = EmailField("E-mail", render_kw={"autocomplete": "email"})
    bio = TextAreaField("About you", render_kw={"rows": 3}, description="At most 255 characters, seen by everyone.")
    theme = RadioField("Theme", choices=THEME_TEXTS)
    current_password = PasswordField(
        "Current password",
        description="Only needed to change the e-mail address.",
        render_kw={"autocomplete": "current-password"},
    )


class PasswordForm(OwnPasswordForm):
    """A change of the password."""

    new_password = PasswordField(
        "New password",
        [DataRequired("is missing")],
        description="At least 8 characters.",
        render_kw={"autocomplete": "new-password"},
    )
    repeated = PasswordField(
        "New password again",
        [DataRequired("is missing"), EqualTo("new_password", "is another one")],
        render_kw={"autocomplete": "new-password"},
    )


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
