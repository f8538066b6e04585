"""The form of an import."""

from __future__ import annotations

from typing import Any

from flask_wtf.file import FileField
from wtforms import RadioField, StringField

from project_service.areas.projects.forms import NamedProjectForm

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

    def __init__(self, *args: Any, remote: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        self.remote = remote
        if not remote:
            del self.source, self.url

    @property
    def from_url(self) -> bool:
        """Whether the archive is at an address."""
        return self.remote and self.source.data == FROM_URL
