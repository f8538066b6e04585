"""Forms of a user's own settings."""

from __future__ import annotations

from wtforms import EmailField, PasswordField, RadioField, SelectField, StringField, TextAreaField
from wtforms.validators import DataRequired, EqualTo

from project_service.access.page_parts.reader_times import zone_names
from project_service.kit.http.forms import Form

THEME_TEXTS = {"system": "As the system says", "light": "Light", "dark": "Dark"}


class OwnPasswordForm(Form):
    """The own password, for an action that matters."""

    current_password = PasswordField(
        "Current password", [DataRequired("is missing")], render_kw={"autocomplete": "current-password"}
    )


class ProfileForm(OwnPasswordForm):
    """Name, e-mail address, text about oneself, theme and time zone."""

    name = StringField("Full name", render_kw={"autocomplete": "name"})
    email = EmailField("E-mail", render_kw={"autocomplete": "email"})
    bio = TextAreaField("About you", render_kw={"rows": 3}, description="At most 255 characters, seen by everyone.")
    pronouns = StringField("Pronouns", description="At most 50 characters.")
    job_title = StringField("Job title", render_kw={"autocomplete": "organization-title"})
    organization = StringField("Organization", render_kw={"autocomplete": "organization"})
    location = StringField("Location")
    theme = RadioField("Theme", choices=THEME_TEXTS)
    time_zone = SelectField(
        "Time zone",
        choices=lambda: {"": "UTC"} | {name: name.replace("_", " ") for name in zone_names()},
        default="",
        description="Pages show times in this zone, and those of UTC when the pointer rests on them.",
    )
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
