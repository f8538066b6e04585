"""The form of the application settings, made of the table of settings."""

from __future__ import annotations

from typing import Any

from wtforms import BooleanField, Field, SelectField, SelectMultipleField, StringField
from wtforms.widgets import CheckboxInput, ListWidget

from project_service.areas.instance.setting_texts import grouped_settings
from project_service.domain.instance_settings import SETTINGS, Setting
from project_service.kit.http.forms import Form

CHOICES_WITH_EFFECT = {"import_sources": {"gitlab_project": "Archives of projects (gitlab_project)"}}


class SettingsForm(Form):
    """The application settings that have an effect; empty texts and numbers restore the default."""

    @classmethod
    def of(cls, values: dict[str, Any]) -> SettingsForm:
        """Return the form with the current values."""
        return cls(
            formdata=None,
            **{name: _as_typed(SETTINGS[name], value) for name, value in values.items() if hasattr(cls, name)},
        )

    def add_choices_without_effect(self, stored: dict[str, Any]) -> None:
        """Add the stored values that the form does not show, so that saving it leaves them as they are."""
        for name, shown in CHOICES_WITH_EFFECT.items():
            chosen = self[name].data or []
            kept = [value for value in stored[name] if value not in shown or value in chosen]
            self[name].data = kept + [value for value in chosen if value not in kept]

    def texts(self) -> dict[str, str]:
        """Return the values as texts, as the command line takes them."""
        return {name: _as_text(self[name].data) for name in SETTINGS if name in self}


def _field(name: str, entry: Setting, title: str, description: str) -> Field:
    if entry.kind is bool:
        return BooleanField(title, description=description)
    choices = CHOICES_WITH_EFFECT.get(name) or {choice: choice for choice in entry.choices}
    if entry.kind is list and choices:
        return SelectMultipleField(
            title,
            choices=choices,
            validate_choice=False,  # the setting checks its values
            description=description,
            widget=ListWidget(prefix_label=False),
            option_widget=CheckboxInput(),
        )
    if choices:
        return SelectField(title, choices=choices, description=description)
    keyboard = {"inputmode": "numeric"} if entry.kind is int else {}
    return StringField(title, description=description, render_kw=keyboard)


def _as_typed(entry: Setting, value: Any) -> Any:
    if entry.kind in (bool, list) and (entry.kind is bool or entry.choices):
        return value
    if entry.kind is list:
        return ", ".join(value)
    return "" if value is None else str(value)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, list) else (value or "").strip()


for _settings in grouped_settings().values():
    for _name, (_title, _description) in _settings.items():
        setattr(SettingsForm, _name, _field(_name, SETTINGS[_name], _title, _description))
