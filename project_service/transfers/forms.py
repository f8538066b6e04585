"""The form of an import."""

from __future__ import annotations

from typing import Any

from flask_wtf.file import FileField
from wtforms import BooleanField, RadioField, StringField, TextAreaField

from project_service.areas.projects.forms import VISIBILITY_TEXTS, NamedProjectForm

FROM_FILE, FROM_URL = "file", "url"
SOURCES = {FROM_FILE: "On this computer", FROM_URL: "On another server"}


class ImportForm(NamedProjectForm):
    """A new project from an archive: a file, or an address if the instance allows that."""

    source = RadioField("Where the archive is", choices=SOURCES, default=FROM_FILE)
    file = FileField(
        "Archive", description="A project export, ending in “.gz”.", render_kw={"accept": ".gz,application/gzip"}
    )
    url = StringField(
        "Address of the archive",
        description="http or https. The archive is fetched from there after the project was made.",
        render_kw={"autocomplete": "off", "inputmode": "url", "spellcheck": "false"},
    )

    description = TextAreaField("Description", description="Replaces that of the archive.", render_kw={"rows": 2})
    visibility = RadioField(
        "Visibility level", choices={"": "As in the archive"} | VISIBILITY_TEXTS, default="", coerce=str
    )
    overwrite = BooleanField(
        "Overwrite the project that has this slug",
        description="If there is one, and you may delete it: it is deleted once the import has succeeded.",
    )

    def __init__(self, *args: Any, remote: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        self.remote = remote
        if not remote:
            del self.source, self.url

    def overrides(self) -> dict[str, str]:
        """Return the values that replace those of the archive."""
        fields = {"description": (self.description.data or "").strip(), "visibility": self.visibility.data}
        return {name: value for name, value in fields.items() if value}

    @property
    def from_url(self) -> bool:
        """Whether the archive is at an address."""
        return self.remote and self.source.data == FROM_URL
